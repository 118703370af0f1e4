"""Results of admin calls: frozen values that print well and turn into JSON with `as_json`."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from partita.errors import KafkaError


class Result:
    """Base of all results."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]  # every subclass is a dataclass


def cell(numbers: dict[str, list[int]]) -> str:
    """Numbers by name in a cell: orders(0,1) payments(2)."""
    return " ".join(f"{name}({','.join(map(str, found))})" for name, found in numbers.items())


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.as_json()
    # JSON has no errors: their message, which names code and resource, stands for them.
    if isinstance(value, KafkaError):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    assert not is_dataclass(value), f"{value!r} is no Result"
    return value


@dataclass(frozen=True, slots=True)
class NodeDescription(Result):
    """One broker and the address at which clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterDescription(Result):
    """The cluster's id, the node id of its controller, and the nodes that are alive."""

    cluster_id: str
    controller_id: int
    nodes: list[NodeDescription]


@dataclass(frozen=True, slots=True)
class CreatedTopic(Result):
    """A topic as it was created. A number that an old broker does not report is -1, and the settings are empty."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    configs: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicListing(Result):
    """One topic: `partitions` is the number of its partitions."""

    name: str
    topic_id: str
    partitions: int
    is_internal: bool


@dataclass(frozen=True, slots=True)
class PartitionDescription(Result):
    """One partition; leader -1: none at the moment."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


@dataclass(frozen=True, slots=True)
class TopicDescription(Result):
    """One topic with all of its partitions."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: list[PartitionDescription]


@dataclass(frozen=True, slots=True)
class OngoingMove(Result):
    """A partition that is moving: all its replicas now, those it gets, and those it loses, by broker id."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]


@dataclass(frozen=True, slots=True)
class ApiVersionRange(Result):
    """An API that a broker serves, with the lowest and highest version. Unknown ones are named by their number."""

    key: int
    name: str
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class ConfigEntry(Result):
    """One option. `source` says who set it: topic, broker (dynamic or static), group, or default."""

    name: str
    value: str | None
    source: str
    is_default: bool
    is_sensitive: bool
    is_read_only: bool
    documentation: str | None = None


@dataclass(frozen=True, slots=True)
class FoundOffset(Result):
    """The answer to one offset question; offset -1: no such record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class GroupListing(Result):
    """One group: `type` is classic, consumer, share or streams; `protocol_type` is empty for some empty groups."""

    group_id: str
    state: str
    type: str
    protocol_type: str


@dataclass(frozen=True, slots=True)
class TasksDescription(Result):
    """The tasks of a member of a streams group by role, {subtopology: [partitions]}, its process and its endpoint."""

    process_id: str
    endpoint: str | None
    active: dict[str, list[int]]
    standby: dict[str, list[int]]
    warmup: dict[str, list[int]]

    @property
    def text(self) -> str:
        """The tasks in words: active 0(0,1), standby 1(2)."""
        roles = (("active", self.active), ("standby", self.standby), ("warm-up", self.warmup))
        return ", ".join(f"{role} {cell(tasks)}" for role, tasks in roles if tasks) or "no tasks"


@dataclass(frozen=True, slots=True)
class SubtopologyDescription(Result):
    """A part of a streams group's topology: the topics it reads, repartition topics it writes, and its changelogs."""

    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    changelog_topics: list[str]

    @property
    def text(self) -> str:
        """The subtopology in words."""
        roles = (
            ("reads", self.source_topics),
            ("writes", self.repartition_sink_topics),
            ("keeps", self.changelog_topics),
        )
        told = "; ".join(f"{role} {', '.join(topics)}" for role, topics in roles if topics)
        return f"subtopology {self.subtopology_id} {told}"


@dataclass(frozen=True, slots=True)
class MemberDescription(Result):
    """A member and its partitions: {topic: [partitions]}.

    A member of a group of the consumer protocol (KIP-848) also has `epoch`, its progress; `target`, its assignment once
    it has caught up; `type`, the protocol that it speaks itself: consumer, or classic while a fleet changes over.
    A member of a streams group is assigned the partitions that its active tasks read; `tasks` has all its tasks.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: dict[str, list[int]]
    type: str = "classic"
    epoch: int | None = None
    target: dict[str, list[int]] | None = None
    tasks: TasksDescription | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription(Result):
    """A group: `protocol` is the assignor, `coordinator` the node that serves it, `type` as of a listing.

    `epoch` grows with every change of a group; it is None for a classic one. Topology and its epoch: of streams groups.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: NodeDescription
    members: list[MemberDescription]
    type: str = "classic"
    epoch: int | None = None
    assignment_epoch: int | None = None
    topology_epoch: int | None = None
    topology: list[SubtopologyDescription] | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset(Result):
    """The next offset a group will read of a partition, as committed."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class PartitionLag(Result):
    """Lag of a group on one partition. `lag` is the high watermark minus the committed offset.

    A share group has its start offset as `committed_offset`, the lag that its coordinator reports, and no single owner.
    """

    topic: str
    partition: int
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


@dataclass(frozen=True, slots=True)
class ClientQuota(Result):
    """The quotas of one entity, whose names are by type (None: the default of the type)."""

    entity: dict[str, str | None]
    quotas: dict[str, float]


@dataclass(frozen=True, slots=True)
class OffsetMove(Result):
    """One line of a reset: from the committed offset (None: none yet) to the new one.

    `note` says why the new offset is not the requested one.
    """

    topic: str
    partition: int
    before: int | None
    after: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class ResetPlan(Result):
    """The moves that a reset would make, for a group of this type; nothing has happened yet."""

    group_id: str
    state: str
    moves: list[OffsetMove]
    type: str = "classic"


@dataclass(frozen=True, slots=True)
class TransactionListing(Result):
    """A transactional id, the node that coordinates it, its producer id and its state, such as "Ongoing"."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription(Result):
    """A transactional id as its coordinator knows it. `started_ms` is None before its first transaction."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ProducerDescription(Result):
    """A producer as a partition's leader remembers it; -1 for unknown values.

    `open_since_offset` is the first offset of its open transaction, None without one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    open_since_offset: int | None


@dataclass(frozen=True, slots=True)
class OpenTransaction(Result):
    """An open transaction in one partition; `idle_ms` counts from its last record. An unknown id is None."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    idle_ms: int
    transactional_id: str | None


@dataclass(frozen=True, slots=True)
class ReplicaSize(Result):
    """A replica in a log directory. `is_future`: it is being moved there, and `offset_lag` records are missing yet."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription(Result):
    """A log directory of a node; `error` says why it is offline. Bytes are those of its volume, None if not known."""

    node: int
    path: str
    error: KafkaError | None
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[ReplicaSize]


@dataclass(frozen=True, slots=True)
class FeatureDescription(Result):
    """Features of a cluster: the level in force of each, and the lowest and highest that the asked node supports."""

    finalized: dict[str, int]
    epoch: int | None
    supported: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class QuorumReplica(Result):
    """A controller or broker that follows the metadata log; times are None where the leader does not know them."""

    id: int
    directory_id: str
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumDescription(Result):
    """The quorum that keeps a cluster's metadata. `nodes` has the listeners of its voters."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    nodes: dict[int, list[str]]


@dataclass(frozen=True, slots=True)
class ConfigResource(Result):
    """Something that has options: `kind` is topic, broker, broker_logger, client_metrics or group."""

    kind: str
    name: str


class SomeFailed(KafkaError):
    """Of several things asked for in one call some failed; `failures` maps each to its error. The others are done."""

    def __init__(self, failures: dict[str, KafkaError]) -> None:
        self.failures = failures
        super().__init__("; ".join(f"{name}: {error}" for name, error in failures.items()))

    def __str__(self) -> str:
        return str(self.args[0])


def raise_failures(failures: dict[str, KafkaError], asked: int) -> None:
    """Raise nothing, the one error if one thing was asked for, or SomeFailed."""
    if failures and asked == 1:
        raise next(iter(failures.values()))
    if failures:
        raise SomeFailed(failures)
