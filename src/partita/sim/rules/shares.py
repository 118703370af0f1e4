"""Rules of who has which partition in a KIP-848 group, by its records and by what members say and hear.

N1 targets are disjoint and complete, N2 one owner (assigned or to be revoked), N3 the index of owners, N6 partitions
sent to a member have no other owner, N11 a target is reached in few steps, N12 targets are not computed too often,
N13 a member says that it does not have what it is to give up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.group.consumer_group.subscriptions import metadata_hash
from partita.group.contract import Record
from partita.group.coordinator import GroupCoordinator
from partita.group.records.consumer_group import ConsumerGroup, Partition
from partita.group.records.consumer_log import ASSIGNMENT_KEY
from partita.group.records.log_records import kind_of
from partita.group.state.topics import TopicImage, Topics
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.messages.consumer_group_log import ConsumerGroupCurrentMemberAssignmentKey
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from partita.protocol.primitives import Structure
from partita.sim.rules.rule import must
from partita.sim.world.asked import Asked

Owned: TypeAlias = frozenset[Partition]
NOTHING: Owned = frozenset()
_STEPS = 4
"""A member may give up, hear of it, take what is free, and be at the target; besides, it may take one at a time."""
_SILENT_BEATS = 3
"""So many may be due while the callback runs that follows the one in which it gave something up."""


class ShareRules:
    """One group. `image` are the topics that its coordinator sees, set for each life of the broker.

    `is_uniform`: its assignor makes shares even.
    """

    def __init__(self, group_id: str, interval_ms: int, *, is_uniform: bool) -> None:
        self.group_id = group_id
        self.image: TopicImage = Topics()
        self._interval_ms = interval_ms
        self._is_uniform = is_uniform
        self._may_own: dict[str, Owned] = {}
        """Partitions that each member may believe it owns: those it received, less those it no longer reports."""
        self._joined: dict[str, int] = {}
        """The number of each member's last join: answers to what it asked before that count no more."""
        self._target: tuple[int, int] = (0, 0)
        """The assignment epoch after the last step, and when its target was computed."""
        self._looked_at: tuple[int, int, list[str]] = (0, 0, [])
        """Epochs and members when the whole of the target was last looked at."""
        self._group: ConsumerGroup | None = None
        self._steps: dict[str, int] = {}
        self._hides: dict[str, int] = {}
        """How many heartbeats of each member did not say that it does not have what it is to give up."""
        self._was_classic = True

    # What members say and hear

    def before(self, asked: Asked) -> None:
        """Note what a member claims in a request before the broker decides it: that is all that it has."""
        wire = asked.wire
        if isinstance(wire, ConsumerGroupHeartbeatRequest) and wire.group_id == self.group_id:
            if wire.member_epoch == 0:
                self._joins(asked.number, wire.member_id, NOTHING)
            elif wire.topic_partitions is not None:
                claimed = frozenset((t.topic_id, number) for t in wire.topic_partitions for number in t.partitions)
                self._keep(wire.member_id, claimed)
        elif isinstance(wire, JoinGroupRequest) and wire.member_id and wire.protocols:
            named = decode_subscription(wire.protocols[0].metadata).owned_partitions
            self._joins(asked.number, wire.member_id, self._by_id((tp[0], tp[1]) for tp in named))

    def _joins(self, number: int, member_id: str, claimed: Owned) -> None:
        self._joined[member_id] = number
        self._steps.pop(member_id, None)
        self._keep(member_id, claimed)

    def _keep(self, member_id: str, claimed: Owned) -> None:
        self._may_own[member_id] = self._may_own.get(member_id, NOTHING) & claimed

    def _by_id(self, named: Iterable[tuple[str, int]]) -> Owned:
        found = []
        for name, number in named:
            topic = self.image.get(name)
            if topic is not None:
                found.append((topic.topic_id, number))
        return frozenset(found)

    def sent(self, wire: ConsumerGroupHeartbeatRequest, has: Iterable[tuple[str, int]]) -> None:
        """A member sends a heartbeat. It has had the answer to the one before, or says everything."""
        member = None if self._group is None else self._group.members.get(wire.member_id)
        says_it = member is None or wire.member_epoch <= 0 or wire.topic_partitions is not None
        if member is None or says_it or not member.revoking or self._by_id(has) & member.revoking.keys():
            self._hides.pop(wire.member_id, None)
            return
        times = self._hides[wire.member_id] = self._hides.get(wire.member_id, 0) + 1
        text = f"{wire.member_id} does not have {_short(member.revoking)}, and {times} heartbeats do not say so"
        must(times <= _SILENT_BEATS, "N13", text)

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request: what a member hears that it owns, no other member may think it owns."""
        wire = asked.wire
        if isinstance(response, ConsumerGroupHeartbeatResponse) and isinstance(wire, ConsumerGroupHeartbeatRequest):
            if not response.error_code and wire.member_epoch >= 0 and response.assignment is not None:
                topics = response.assignment.topic_partitions
                told = frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)
                self._tell(asked, response.member_id or wire.member_id, told)
        elif isinstance(response, SyncGroupResponse) and isinstance(wire, SyncGroupRequest):
            payload = bytes(response.assignment) if response.error_code == ErrorCode.NONE else b""
            if payload:
                named = decode_assignment(payload)[0]
                self._tell(asked, wire.member_id, self._by_id((tp[0], tp[1]) for tp in named))

    def _tell(self, asked: Asked, member_id: str, told: Owned) -> None:
        if asked.number < self._joined.get(member_id, 0):
            return
        group = self._group
        if group is not None and member_id in group.members:
            for other, owned in self._may_own.items():
                both = sorted(owned & told) if other != member_id and other in group.members else ()
                must(not both, "N6", f"{member_id} is given {_short(both)}, which {other} has not given up")
        self._may_own[member_id] = self._may_own.get(member_id, NOTHING) | told

    # The group between two steps

    def stepped(self, coordinator: GroupCoordinator, wall_ms: int) -> None:
        """The broker is between two steps."""
        group = self._group = coordinator.consumer_groups.get(self.group_id)
        if group is None:
            self._was_classic = True
            self._target = (0, 0)
            return
        if self._was_classic:
            self._upgraded(group)
        for gone in [member_id for member_id in self._may_own if member_id not in group.members]:
            del self._may_own[gone]
        _check_owners(group)
        if group.assignment_epoch != self._target[0]:
            self._check_target(group, wall_ms)
        if (group.epoch, group.assignment_epoch, [*group.members]) != self._looked_at:
            self._check_cover(group)
            self._looked_at = (group.epoch, group.assignment_epoch, [*group.members])
        self._target = (group.assignment_epoch, group.assigned_ms)

    def _upgraded(self, group: ConsumerGroup) -> None:
        """Members of a classic group keep what their newest generation gave them and lose anything older."""
        self._was_classic = False
        for member_id, member in group.members.items():
            if member_id in self._may_own:
                self._keep(member_id, frozenset(member.assigned))

    def _check_target(self, group: ConsumerGroup, wall_ms: int) -> None:
        epoch, computed_ms = self._target
        self._steps.clear()
        is_early = group.assigned_ms and computed_ms and 0 <= wall_ms - computed_ms < self._interval_ms
        must(not is_early, "N12", f"a target {wall_ms - computed_ms} ms after that of epoch {epoch}")
        owner: dict[Partition, str] = {}
        for member_id, target in group.targets.items():
            must(member_id in group.members, "N1", f"{member_id} has a target and is no member")
            wanted = group.topics_of(group.members[member_id])
            for partition in sorted(target):
                other = owner.setdefault(partition, member_id)
                must(other == member_id, "N1", f"{_short([partition])} is meant for {other} and for {member_id}")
                must(self.image.name_of(partition[0]) in wanted, "N1", f"{member_id} is to have {_short([partition])}")

    def _check_cover(self, group: ConsumerGroup) -> None:
        """Check that a target for the group's epoch assigns every partition, in even shares."""
        topics = group.subscribed_topics()
        is_current = group.epoch == group.assignment_epoch and group.members and group.assigned_ms
        if not is_current or metadata_hash(self.image, topics) != group.metadata_hash:
            return
        facts = [topic for name in topics if (topic := self.image.get(name)) is not None]
        everything = {(topic.topic_id, number) for topic in facts for number in range(topic.partitions)}
        given = {partition for member_id in group.members for partition in group.targets.get(member_id, ())}
        must(given == everything, "N1", f"nobody is to have {_short(sorted(everything - given))}")
        sizes = [len(group.targets.get(member_id, ())) for member_id in group.members]
        is_even = max(sizes) - min(sizes) <= 1
        must(is_even or not self._is_uniform, "N1", f"targets of sizes {sizes} are not balanced")

    def appended(self, records: tuple[Record, ...]) -> None:
        """The broker has appended a batch."""
        for record in records:
            if kind_of(record.key) != ASSIGNMENT_KEY or record.value is None:
                continue
            key = ConsumerGroupCurrentMemberAssignmentKey.decode(record.key[2:], ASSIGNMENT_KEY)
            if key.group_id == self.group_id:
                steps = self._steps[key.member_id] = self._steps.get(key.member_id, 0) + 1
                most = _STEPS + sum(len(target) for target in self._targets().values())
                must(steps <= most, "N11", f"{key.member_id} takes {steps} steps and is not at the target")

    def _targets(self) -> Mapping[str, Owned]:
        return {} if self._group is None else self._group.targets

    def loaded(self) -> None:
        """A coordinator has replayed the log."""
        self._target = (0, 0)
        self._steps.clear()


def _check_owners(group: ConsumerGroup) -> None:
    owner: dict[Partition, str] = {}
    for member_id, member in group.members.items():
        for partition in (*member.assigned, *member.revoking):
            other = owner.setdefault(partition, member_id)
            must(other == member_id, "N2", f"{_short([partition])} belongs to {other} and to {member_id}")
    must(owner == group.owners, "N3", f"owners are {owner}, the group's index says {group.owners}")


def _short(partitions: Iterable[Partition]) -> str:
    return " ".join(f"{topic_id[-1]}-{number}" for topic_id, number in partitions)
