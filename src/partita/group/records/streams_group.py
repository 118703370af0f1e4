"""One streams group, rebuilt from its records: topology, members, epochs, and who holds which task.

A task is a subtopology and a partition number. All is hard state; members are frozen values. (Kafka: StreamsGroup,
StreamsGroupMember; the replay half of GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from partita.group.records.consumer_group import FIRST_EPOCH, LEFT, EpochGroup
from partita.protocol.messages.streams_group_log import StreamsGroupTopologyValue

Task: TypeAlias = tuple[str, int]
"""Subtopology id and partition number."""
NONE: frozenset[Task] = frozenset()
NO_EPOCH = -1
"""No topology."""


class Tasks(NamedTuple):
    """Tasks by role: a target, or what a member reports."""

    active: frozenset[Task] = NONE
    standby: frozenset[Task] = NONE
    warmup: frozenset[Task] = NONE


class Held(NamedTuple):
    """Tasks of a member by role; active ones with the epoch in which they were given."""

    active: Mapping[Task, int]
    standby: frozenset[Task] = NONE
    warmup: frozenset[Task] = NONE

    @property
    def tasks(self) -> Tasks:
        """The tasks without epochs."""
        return Tasks(frozenset(self.active), self.standby, self.warmup)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TASKS = Tasks()
NOTHING_HELD = Held({})


class StreamsMemberState(IntEnum):
    """Progress of a member towards its target; the numbers are those of the log."""

    STABLE = 1
    UNREVOKED = 2
    """It has tasks to revoke and has not yet confirmed that it did."""
    UNRELEASED = 3
    """It waits for tasks that others have not released yet."""
    UNKNOWN = 127
    """Written by a release with more states."""


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One member: a thread of a Kafka Streams application. `process_id` names the application's process."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_EPOCH
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    """Host and port for interactive queries."""
    tags: tuple[tuple[str, str], ...] = ()
    """Sorted."""
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    held: Held = NOTHING_HELD
    revoking: Held = NOTHING_HELD
    """Tasks to revoke that the member has not released yet."""

    def with_assignment_of(self, other: StreamsMember) -> StreamsMember:
        """Return this member with the epochs, state and tasks of the other."""
        return replace(
            self,
            epoch=other.epoch,
            previous_epoch=other.previous_epoch,
            state=other.state,
            held=other.held,
            revoking=other.revoking,
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has its target of that epoch."""
        return self.state is StreamsMemberState.STABLE and self.epoch == epoch


class GroupEpoch(NamedTuple):
    """The record of key 17. The last two are for a plugin of Kafka that stores descriptions; they are only kept."""

    epoch: int
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_EPOCH
    configs: tuple[tuple[str, str], ...] = ()
    """Settings of the last assignment, sorted."""
    stored_description: int = NO_EPOCH
    failed_description: int = NO_EPOCH


class StreamsGroup(EpochGroup[StreamsMember, Tasks]):
    """One group. Only its replay methods change it."""

    __slots__ = ("active", "hard", "standby", "static", "topology", "warmup")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.hard = GroupEpoch(FIRST_EPOCH)
        self.topology: StreamsGroupTopologyValue | None = None
        self.static: dict[str, str] = {}
        """Group instance id -> member id."""
        self.active: dict[Task, str] = {}
        """Task -> process that runs it or has not released it yet."""
        self.standby: set[tuple[Task, str]] = set()
        """Tasks with the processes that have a standby of them."""
        self.warmup: set[tuple[Task, str]] = set()
        """The same for warm-ups."""

    def _hard(self) -> tuple[object, ...]:
        return (*super()._hard(), self.hard, self.topology)

    @property
    def epoch(self) -> int:
        """The group epoch."""
        return self.hard.epoch

    @property
    def topology_epoch(self) -> int:
        """The epoch of its topology; -1 if there is none."""
        return NO_EPOCH if self.topology is None else self.topology.epoch

    @property
    def state(self) -> str:
        """The wire name of its state."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.hard.validated_topology_epoch:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def source_topics(self) -> dict[str, str]:
        """Topic -> the subtopology that reads it."""
        found: dict[str, str] = {}
        for sub in () if self.topology is None else self.topology.subtopologies:
            found.update(dict.fromkeys(sub.source_topics, sub.subtopology_id))
            found.update((info.name, sub.subtopology_id) for info in sub.repartition_source_topics)
        return found

    def subscribed_topics(self) -> set[str]:
        """Return the topics whose offsets are in use."""
        return set(self.source_topics) if self.members else set()

    def replay_epoch(self, epoch: GroupEpoch) -> None:
        """Apply a record of key 17."""
        self.hard = epoch

    def replay_topology(self, topology: StreamsGroupTopologyValue | None) -> None:
        """Apply a record or tombstone of key 23."""
        self.topology = topology

    def replay_member(self, member: StreamsMember) -> None:
        """Apply a record of key 19. The member's assignment comes from key 22 and is kept."""
        old = self.members.get(member.member_id)
        self._put(member if old is None else member.with_assignment_of(old), old)

    def replay_assignment(self, member: StreamsMember) -> None:
        """Apply a record of key 22: epochs, state and tasks of `member`. Compaction may put it before key 19."""
        old = self.members.get(member.member_id)
        self._put((old or StreamsMember(member.member_id)).with_assignment_of(member), old)

    def replay_no_assignment(self, member_id: str) -> None:
        """Apply a tombstone of key 22."""
        if member_id in self.members:
            self.replay_assignment(StreamsMember(member_id, epoch=LEFT, previous_epoch=LEFT))

    def replay_no_member(self, member_id: str) -> None:
        """Apply a tombstone of key 19."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._release(old)

    def _put(self, member: StreamsMember, old: StreamsMember | None) -> None:
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        for held in (member.held, member.revoking):
            self.active.update(dict.fromkeys(held.active, member.process_id))
            self.standby.update((task, member.process_id) for task in held.standby)
            self.warmup.update((task, member.process_id) for task in held.warmup)

    def _release(self, member: StreamsMember) -> None:
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        for held in (member.held, member.revoking):
            for task in held.active:
                if self.active.get(task) == member.process_id:
                    del self.active[task]
            # As in Kafka, even if another member there has it, too: process ids should not change, and may.
            self.standby.difference_update((task, member.process_id) for task in held.standby)
            self.warmup.difference_update((task, member.process_id) for task in held.warmup)
