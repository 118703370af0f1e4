"""Results of one poll of a cluster, as frozen values. An `error` says why something could not be polled.

Values with an error keep what was seen before, so that one bad partition or node does not hide the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from partita.admin.results import SubtopologyDescription, TasksDescription

TopicPartition: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One broker. `apis` is the number of APIs that it serves, 0 while unknown; `seen_ms` is when it last answered."""

    id: int
    host: str
    port: int
    rack: str | None = None
    apis: int = 0
    seen_ms: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LogSeen:
    """One partition's log: offsets are None while unknown, `oldest_ms` is the time of its oldest record."""

    topic: str
    partition: int
    leader: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    start: int | None = None
    end: int | None = None
    oldest_ms: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """One topic. `retention_ms` is None while unknown and -1 for a topic that keeps records forever."""

    name: str
    is_internal: bool
    logs: tuple[LogSeen, ...]
    retention_ms: int | None = None
    cleanup_policy: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MemberSeen:
    """A member and its partitions. A classic one has no `epoch`; one of a streams group has `tasks`."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    epoch: int | None = None
    tasks: TasksDescription | None = None


@dataclass(frozen=True, slots=True)
class CommitSeen:
    """Committed offset of a group for one partition; `moved_ms` is when it was first seen at this offset."""

    topic: str
    partition: int
    offset: int
    metadata: str
    moved_ms: int
    lag: int | None = None
    """As the coordinator of a share group reports it; `offset` is then the start offset."""

    def lag_at(self, end: int) -> int:
        """Return the lag where the log ends at `end`."""
        return max(0, end - self.offset) if self.lag is None else self.lag


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """One group as its coordinator describes it. `epoch` is None for a classic group, which does not report one.

    `state_since_ms` is when it was first seen in this state.
    """

    group_id: str
    state: str
    type: str
    protocol_type: str
    protocol: str
    coordinator: int
    members: tuple[MemberSeen, ...] = ()
    commits: tuple[CommitSeen, ...] = ()
    epoch: int | None = None
    topology: tuple[SubtopologyDescription, ...] = ()
    seen_ms: int = 0
    state_since_ms: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TransactionSeen:
    """A transactional id as its coordinator knows it; `started_ms` is None without a transaction."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int = -1
    timeout_ms: int = 0
    started_ms: int | None = None
    partitions: tuple[TopicPartition, ...] = ()
    error: str | None = None
