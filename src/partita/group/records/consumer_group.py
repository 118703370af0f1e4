"""One KIP-848 group, rebuilt from its records: members, epochs, target and current assignments. All is hard state.

Members are frozen values, replaced by the replay of a record. The group also keeps indexes derived from them: owners
of partitions, holders of instance ids, subscriber counts. (Kafka: ConsumerGroup, ConsumerGroupMember; the replay half
of GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Generic, NamedTuple, TypeAlias, TypeVar

Partition: TypeAlias = tuple[bytes, int]
"""Topic id and partition number. A name may be reused for another topic later; an id is not."""
Target: TypeAlias = frozenset[Partition]
Member = TypeVar("Member")
Goal = TypeVar("Goal")
Place = TypeVar("Place", bytes, str)
NO_PARTITIONS: Target = frozenset()
FIRST_EPOCH = 1
"""Epoch of a group without any assignment yet; its first change gives it epoch 2."""
LEFT_STATIC, LEFT = -2, -1
"""Member epochs of a static member that intends to return, and of a member that left."""


class MemberState(IntEnum):
    """Progress of a member towards its target; the numbers are those of the log."""

    STABLE = 0
    """It has the target of its epoch, or will be given a newer one."""
    UNREVOKED_PARTITIONS = 1
    """It has partitions to revoke and has not yet confirmed that it did."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have not released yet."""
    UNKNOWN = 127
    """Written by a release with more states."""


class ConsumerGroupState(Enum):
    """A group's state as clients see it; derived from epochs and members, never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicPart(NamedTuple):
    """Additional fields of a classic member: its session timeout and the protocols it joined with."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ResolvedRegex(NamedTuple):
    """Topics that a regular expression matched when it was last resolved."""

    topics: tuple[str, ...]
    version: int
    """Version of the topic image; with a higher one other topics may match."""
    resolved_ms: int
    """On the wall clock."""


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. `assigned` maps the partitions it may own to the epoch in which they were assigned (KIP-1251)."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Sorted."""
    regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicPart | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Mapping[Partition, int] = field(default_factory=dict)
    revoking: Mapping[Partition, int] = field(default_factory=dict)
    """Partitions to revoke that the member has not released yet."""

    @property
    def is_classic(self) -> bool:
        """Whether it uses the classic protocol."""
        return self.classic is not None

    def with_assignment_of(self, other: ConsumerMember) -> ConsumerMember:
        """Return this member with the epochs, state and partitions of the other."""
        return replace(
            self,
            epoch=other.epoch,
            previous_epoch=other.previous_epoch,
            state=other.state,
            assigned=other.assigned,
            revoking=other.revoking,
        )


class EpochGroup(Generic[Member, Goal]):
    """What KIP-848, share and streams groups have alike. Only its replay methods change it."""

    __slots__ = ("assigned_ms", "assignment_epoch", "group_id", "members", "targets")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        """Wall time when the target was computed; 0: never, or by a release that did not record it."""
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Goal] = {}

    def _hard(self) -> tuple[object, ...]:
        """What the log holds; indexes follow from it."""
        return (self.assignment_epoch, self.assigned_ms, self.members, self.targets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochGroup) and type(other) is type(self) and self._hard() == other._hard()

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable

    def replay_target_epoch(self, epoch: int, assigned_ms: int) -> None:
        """Apply the record of the targets' epoch."""
        self.assignment_epoch, self.assigned_ms = epoch, assigned_ms

    def replay_target(self, member_id: str, target: Goal) -> None:
        """Apply the record of a member's target."""
        self.targets[member_id] = target

    def replay_no_target(self, member_id: str) -> None:
        """Apply the tombstone of a member's target."""
        self.targets.pop(member_id, None)


class ConsumerGroup(EpochGroup[ConsumerMember, Target]):
    """One group. Only its replay methods change it."""

    __slots__ = (
        "classic_members", "epoch", "has_partition_metadata", "metadata_hash", "names", "owners", "patterns", "regexes",
        "static",
    )  # fmt: skip

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Hash of the subscribed topics, as of the last epoch."""
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Whether a release before 4.1 wrote key 4 for the group, which must be deleted with it."""
        self.static: dict[str, str] = {}
        """Group instance id -> member id."""
        self.owners: dict[Partition, str] = {}
        """Partition -> the member that may own it or has not released it yet."""
        self.names: dict[str, int] = {}
        """Topic name -> number of members that name it."""
        self.patterns: dict[str, int] = {}
        """Regular expression -> number of members that use it."""
        self.classic_members = 0

    def _hard(self) -> tuple[object, ...]:
        return (*super()._hard(), self.epoch, self.metadata_hash, self.regexes)

    @property
    def state(self) -> ConsumerGroupState:
        """Derive the state that clients see. (Kafka: ConsumerGroup.maybeUpdateGroupState)"""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(is_settled(member, self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        """Return the member's topics: those it names and those that its regular expression matched."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        if resolved is None:
            return member.topics
        return tuple(sorted({*member.topics, *resolved.topics})) if member.topics else resolved.topics

    def subscribed_topics(self) -> list[str]:
        """Return the topics of all members, sorted."""
        matched = (t for regex in self.patterns if regex in self.regexes for t in self.regexes[regex].topics)
        return sorted({*self.names, *matched})

    def replay_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Apply a record of key 3."""
        self.epoch, self.metadata_hash = epoch, metadata_hash

    def replay_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Apply a record or tombstone of key 16."""
        if resolved is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = resolved

    def replay_member(self, member: ConsumerMember) -> None:
        """Apply a record of key 5. The member's assignment comes from key 8 and is kept."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._count(old, -1)
            member = member.with_assignment_of(old)
        self.members[member.member_id] = member
        self._count(member, 1)

    def replay_assignment(self, member: ConsumerMember) -> None:
        """Apply key 8: epochs, state and partitions of `member`. Compaction may put it before key 5."""
        old = self.members.get(member.member_id)
        if old is None:
            old = ConsumerMember(member.member_id)
            self._count(old, 1)
        else:
            self._release(old)
        self.members[member.member_id] = old.with_assignment_of(member)
        for partition in (*member.assigned, *member.revoking):
            self.owners[partition] = member.member_id

    def replay_no_assignment(self, member_id: str) -> None:
        """Apply a tombstone of key 8: the member owns nothing any more."""
        old = self.members.get(member_id)
        if old is not None:
            self._release(old)
            gone = ConsumerMember(member_id, epoch=LEFT, previous_epoch=LEFT)
            self.members[member_id] = old.with_assignment_of(gone)

    def replay_no_member(self, member_id: str) -> None:
        """Apply a tombstone of key 5."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._release(old)
            self._count(old, -1)

    def _release(self, member: ConsumerMember) -> None:
        for partition in (*member.assigned, *member.revoking):
            if self.owners.get(partition) == member.member_id:
                del self.owners[partition]

    def _count(self, member: ConsumerMember, by: int) -> None:
        for name in member.topics:
            add_to(self.names, name, by)
        if member.regex:
            add_to(self.patterns, member.regex, by)
        if member.is_classic:
            self.classic_members += by
        if member.instance_id is not None:
            if by > 0:
                self.static[member.instance_id] = member.member_id
            elif self.static.get(member.instance_id) == member.member_id:
                del self.static[member.instance_id]


def is_settled(member: ConsumerMember, assignment_epoch: int) -> bool:
    """Whether the member has reached the target of this epoch."""
    return member.state is MemberState.STABLE and member.epoch == assignment_epoch


def add_to(counts: dict[str, int], name: str, by: int) -> None:
    """Change a count; remove it when it becomes 0."""
    counts[name] = counts.get(name, 0) + by
    if not counts[name]:
        del counts[name]


def by_topic(partitions: Iterable[tuple[Place, int]]) -> dict[Place, list[int]]:
    """Group partitions by topic id, or tasks by subtopology, both sorted, so that equal sets give equal bytes."""
    found: dict[Place, list[int]] = {}
    for place, number in sorted(partitions):
        found.setdefault(place, []).append(number)
    return found


def with_epochs(
    listed: Iterable[tuple[Place, list[int], list[int] | None]], otherwise: int
) -> dict[tuple[Place, int], int]:
    """Return partitions or tasks with the epochs they were given in; without one each, that of the member."""
    found: dict[tuple[Place, int], int] = {}
    for place, numbers, epochs in listed:
        if epochs is None or len(epochs) != len(numbers):
            epochs = [otherwise] * len(numbers)
        found.update(((place, number), epoch) for number, epoch in zip(numbers, epochs, strict=True))
    return found
