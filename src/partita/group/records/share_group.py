"""One share group, rebuilt from its records: members, epochs, assignments, and which share partitions have state.

All is hard state. A member has its target at once, and two members may have one partition, so nothing is reconciled.
(Kafka: ShareGroup, ShareGroupMember; the replay half of GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from partita.group.records.consumer_group import FIRST_EPOCH, LEFT, NO_PARTITIONS, EpochGroup, Target, add_to


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member. `assigned` are the partitions that it shares."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Sorted."""
    epoch: int = 0
    previous_epoch: int = -1
    assigned: Target = NO_PARTITIONS


class SharedTopic(NamedTuple):
    """A topic, and those of its partitions that a `StateTopics` has under its id."""

    name: str
    partitions: frozenset[int]


class StateTopics(NamedTuple):
    """Topics by id whose share partitions get their state, have it, or are losing it."""

    initializing: Mapping[bytes, SharedTopic]
    initialized: Mapping[bytes, SharedTopic]
    deleting: Mapping[bytes, str]
    """Names by topic id."""


NO_TOPICS = StateTopics({}, {}, {})


class ShareGroup(EpochGroup[ShareMember, Target]):
    """One group. Only its replay methods change it."""

    __slots__ = ("epoch", "metadata_hash", "names", "topics")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Hash of the subscribed topics, as of the last epoch."""
        self.topics = NO_TOPICS
        self.names: dict[str, int] = {}
        """Topic name -> number of members that name it."""

    def _hard(self) -> tuple[object, ...]:
        return (*super()._hard(), self.epoch, self.metadata_hash, self.topics)

    @property
    def state(self) -> str:
        """The wire name of its state."""
        return "Stable" if self.members else "Empty"

    def replay_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Apply a record of key 11."""
        self.epoch, self.metadata_hash = epoch, metadata_hash

    def replay_topics(self, topics: StateTopics) -> None:
        """Apply a record or tombstone of key 15."""
        self.topics = topics

    def replay_member(self, member: ShareMember) -> None:
        """Apply a record of key 10. The member's assignment comes from key 14 and is kept."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._count(old, -1)
            member = replace(member, epoch=old.epoch, previous_epoch=old.previous_epoch, assigned=old.assigned)
        self.members[member.member_id] = member
        self._count(member, 1)

    def replay_assignment(self, member_id: str, epoch: int, previous_epoch: int, assigned: Target) -> None:
        """Apply a record of key 14. Compaction may put it before key 10."""
        old = self.members.get(member_id) or ShareMember(member_id)
        self.members[member_id] = replace(old, epoch=epoch, previous_epoch=previous_epoch, assigned=assigned)

    def replay_no_assignment(self, member_id: str) -> None:
        """Apply a tombstone of key 14."""
        if member_id in self.members:
            self.replay_assignment(member_id, LEFT, LEFT, NO_PARTITIONS)

    def replay_no_member(self, member_id: str) -> None:
        """Apply a tombstone of key 10."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._count(old, -1)

    def _count(self, member: ShareMember, by: int) -> None:
        for name in member.topics:
            add_to(self.names, name, by)
