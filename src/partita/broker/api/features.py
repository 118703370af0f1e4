"""The features of the cluster: the levels that are known, and those in force.

A new cluster begins with the levels of its `partita.*.version` options, as one of Kafka does with those of its format.
`group.version` 1 means KIP-848 groups; they are served if `group.coordinator.rebalance.protocols` lists "consumer" as
well. `transaction.version` selects how producers end transactions. (Kafka: Feature, FeatureControlManager)

Deviation: Partita knows `kraft.version` at level 0 alone, since its level 1 promises APIs that it does not serve, where
Kafka 4.4 knows both levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.config import BROKER_OPTIONS

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.topics.catalogue import TopicCatalogue

METADATA_VERSION = "metadata.version"
RANGES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 0),
    METADATA_VERSION: (7, 33),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
_KIND, _EPOCH = "feature", "epoch"


class Feature(NamedTuple):
    """A feature with the levels that are known, and the one in force; level 0 is none."""

    name: str
    lowest: int
    highest: int
    level: int


def features(config: BrokerConfig, catalogue: TopicCatalogue) -> list[Feature]:
    """Return all features."""
    kept = catalogue.kept.get(_KIND, {})
    return [
        Feature(name, low, high, config.int(option) if (option := _option(name)) else kept.get(name, high))
        for name, (low, high) in RANGES.items()
    ]


def features_epoch(catalogue: TopicCatalogue) -> int:
    """The number that grows with each change of levels, by which clients know the newer answer."""
    epoch: int = catalogue.kept.get(_KIND, {}).get(_EPOCH, 0)
    return epoch


def set_levels(catalogue: TopicCatalogue, levels: Mapping[str, int]) -> None:
    """Put levels in force, with the next epoch. Raises StorageError; then no level has changed."""
    without_option = {name: level for name, level in levels.items() if _option(name) is None}
    catalogue.keep(_KIND, {_EPOCH: features_epoch(catalogue) + 1, **without_option})
    catalogue.configure_broker({option: level for name, level in levels.items() if (option := _option(name))})


def _option(name: str) -> str | None:
    """The option that holds the level, where one has an effect here."""
    option = f"partita.{name}"
    return option if option in BROKER_OPTIONS else None


def serves_consumer_groups(config: BrokerConfig) -> bool:
    """Are KIP-848 groups served?"""
    protocols = config.list("group.coordinator.rebalance.protocols")
    return config.int("partita.group.version") > 0 and "consumer" in protocols


def serves_share_groups(config: BrokerConfig) -> bool:
    """Are share groups served?"""
    return config.int("partita.share.version") > 0


def serves_streams_groups(config: BrokerConfig, catalogue: TopicCatalogue) -> bool:
    """Are streams groups served?"""
    level = catalogue.kept.get(_KIND, {}).get("streams.version", 1)
    return level > 0 and "streams" in config.list("group.coordinator.rebalance.protocols")
