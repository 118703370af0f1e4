"""Topics that a broker's configuration names: created at its start where they do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from partita.broker.config import ConfigError, TopicConfig, check_together, parse_topic_settings
from partita.broker.nodes import Cluster
from partita.broker.topics.catalogue import name_problem
from partita.broker.topics.checks import NewTopics, Refused, check_counts, stored


class WantedTopic(NamedTuple):
    """A topic as it is to be; -1 is the broker's default. `settings` are its own, by Kafka's names."""

    name: str
    partitions: int = -1
    replication: int = -1
    settings: Mapping[str, object] = {}


def create_wanted(cluster: Cluster, wanted: Iterable[WantedTopic]) -> None:
    """Create those that do not exist; one that does stays as it is. Raises ConfigError, and then creates none."""
    planned = NewTopics(cluster.catalogue)
    for topic in wanted:
        try:
            _plan(cluster, topic, planned)
        except (ConfigError, Refused) as error:
            raise ConfigError(f"topic {topic.name}: {error}") from None
    try:
        with stored():
            planned.create()
    except Refused as error:
        raise ConfigError(f"the topics cannot be created: {error}") from None


def _plan(cluster: Cluster, topic: WantedTopic, planned: NewTopics) -> None:
    settings = parse_topic_settings(topic.settings)
    check_together(TopicConfig(cluster.config, settings))
    problem = name_problem(topic.name)
    if problem is not None:
        raise ConfigError(problem)
    config = cluster.config
    partitions = config.int("num.partitions") if topic.partitions == -1 else topic.partitions
    replication = config.int("default.replication.factor") if topic.replication == -1 else topic.replication
    check_counts(partitions, replication, len(cluster.alive))
    if cluster.catalogue.get(topic.name) is not None:
        return
    other = planned.collision(topic.name)
    if other is not None:
        raise ConfigError(f"its name collides with that of {other}")
    if planned.are_too_many(partitions):
        raise ConfigError(f"{partitions} partitions are too many")
    planned.add(topic.name, cluster.place(partitions, replication), settings)
