"""Checks on topics to be made, shared by CreateTopics, CreatePartitions and auto-creation.

Messages and codes are those of Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partita.broker.options import Value
from partita.broker.topics.catalogue import NewTopic, Topic, TopicCatalogue, flat
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableReplicaAssignment

PARTITIONS_PER_TOPIC_MAX = 10_000
PARTITIONS_MAX = 200_000
"""Deviation: Partita holds at most 200,000 partitions in a process and 10,000 in a topic, where Kafka refuses only
requests for 10,000 or more at once."""


class Refused(Exception):
    """A topic cannot be made; `code` and the message are the answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def stored() -> Iterator[None]:
    """Turn a disk that does not take a change into a refusal."""
    try:
        yield
    except StorageError as error:
        raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None


class NewTopics:
    """Topics that one request creates together: each is checked against those there and those before it."""

    def __init__(self, catalogue: TopicCatalogue) -> None:
        self._catalogue = catalogue
        self._planned: list[NewTopic] = []
        self._flat: dict[str, str] = {}
        self._partition_count = 0

    def collision(self, name: str) -> str | None:
        """The topic whose name differs from `name` only in periods and underscores."""
        there = self._catalogue.names_like(name)
        return there[0] if there else self._flat.get(flat(name))

    def are_too_many(self, partitions: int) -> bool:
        """Whether so many partitions more would be too many for a topic or for the broker."""
        total = self._catalogue.partition_count + self._partition_count + partitions
        return partitions > PARTITIONS_PER_TOPIC_MAX or total > PARTITIONS_MAX

    def add(self, name: str, replicas: list[list[int]], settings: dict[str, Value] | None = None) -> None:
        """Plan a topic whose name, partitions and settings are checked."""
        self._planned.append(NewTopic(name, replicas, settings or {}))
        self._flat[flat(name)] = name
        self._partition_count += len(replicas)

    @property
    def names(self) -> set[str]:
        """The names of the topics planned so far."""
        return set(self._flat.values())

    def create(self) -> dict[str, Topic]:
        """Create the planned topics with one write to the catalogue; return them by name. Raises StorageError."""
        planned, self._planned = self._planned, []
        self._flat.clear()
        self._partition_count = 0
        return {topic.name: topic for topic in self._catalogue.create_all(planned)} if planned else {}


def check_counts(partitions: int, replication: int, live_nodes: int) -> None:
    """Raise Refused unless so many partitions and replicas are possible; -1 means the broker's default."""
    if replication != -1 and replication <= 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions != -1 and partitions <= 0:
        raise Refused(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if replication > live_nodes:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition "
            f"{replication} time(s): The target replication factor of {replication} cannot be reached because only "
            f"{live_nodes} broker(s) are registered.",
        )


def manual_replicas(assignments: list[CreatableReplicaAssignment], live: set[int]) -> list[list[int]]:
    """The replicas a request lists itself, in order of partition; raise Refused when they make no sense."""
    by_index = {a.partition_index: list(a.broker_ids) for a in assignments}
    if len(by_index) != len(assignments):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Found multiple manual partition assignments for one partition"
        )
    if sorted(by_index) != list(range(len(by_index))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    replicas = [by_index[i] for i in range(len(by_index))]
    check_replicas(replicas, live)
    return replicas


def check_replicas(replicas: list[list[int]], live: set[int]) -> None:
    """Raise Refused unless every list names live nodes once, and all lists are equally long."""
    width = len(replicas[0]) if replicas else 0
    for nodes in replicas:
        if not nodes:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
            )
        for node in sorted(nodes):
            if node not in live:
                raise Refused(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes broker {node}, but no such broker is registered.",
                )
            if nodes.count(node) > 1:
                raise Refused(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes the broker {node} more than once.",
                )
        if len(nodes) != width:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(nodes)} replica(s), but this is not "
                f"consistent with previous partitions, which have {width} replica(s).",
            )
