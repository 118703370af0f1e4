"""Rules of epochs in a KIP-848 group: who is answered, who is refused, and that no epoch goes back.

S11 and S12 stale callers, S13 static members, S25 deletions, S26 answers are stored, N5 the meaning of Stable, N7
epochs only grow, N9 members are answered, N10 a full request gets a full answer.
What must happen is worked out from the group as it is before each request, in other words than the coordinator's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from partita.group.coordinator import GroupCoordinator
from partita.group.records.consumer_group import LEFT_STATIC, ConsumerGroup, ConsumerGroupState, ConsumerMember
from partita.group.requests import DeleteGroup
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from partita.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from partita.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.primitives import Structure
from partita.sim.rules.groups import staleness
from partita.sim.rules.rule import must
from partita.sim.world.asked import Asked

_NOT_A_MEMBER = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNSUPPORTED_VERSION,
)
_CLASSIC_CALLS = (HeartbeatRequest, SyncGroupRequest)


@dataclass(slots=True)
class _Seen:
    """The epochs of the group after the last step."""

    group: int = 0
    target: int = 0
    members: dict[str, int] = field(default_factory=dict)


class EpochRules:
    """One group, whichever protocol it speaks at the moment."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._stale: dict[int, str] = {}
        """Requests that must not succeed, by number, and why."""
        self._welcome: dict[int, None] = {}
        """Requests of members that are what they say they are."""
        self._seen = _Seen()
        self._sent: dict[str, int] = {}
        """The newest epoch that each current member has received."""

    # What the broker is about to decide

    def before(self, asked: Asked, coordinator: GroupCoordinator) -> None:
        """The broker is about to decide a request."""
        wire, group = asked.wire, coordinator.consumer_groups.get(self.group_id)
        self._before_deletion(asked, group)
        if getattr(wire, "group_id", None) != self.group_id:
            return
        if group is None:
            classic = coordinator.groups.get(self.group_id)
            if isinstance(wire, (*_CLASSIC_CALLS, OffsetCommitRequest)):
                self._judge(asked, staleness(classic, wire))
            elif isinstance(wire, ConsumerGroupHeartbeatRequest) and wire.member_epoch:
                self._judge(asked, "there is no KIP-848 group")
        elif isinstance(wire, ConsumerGroupHeartbeatRequest):
            self._judge(asked, _stale_beat(group, wire), is_sure=True)
        elif isinstance(wire, OffsetCommitRequest):
            self._judge(asked, _stale_commit(group, wire), is_sure=True)
        elif isinstance(wire, _CLASSIC_CALLS):
            reason = _stale_classic(group, wire)
            self._judge(asked, reason, is_sure=isinstance(wire, HeartbeatRequest))
        elif isinstance(wire, JoinGroupRequest) and wire.member_id and wire.group_instance_id is not None:
            holder = group.static.get(wire.group_instance_id)
            self._judge(asked, "" if holder == wire.member_id else "its instance id is not its own")
        elif isinstance(wire, LeaveGroupRequest):
            names = [(e.member_id, e.group_instance_id) for e in wire.members]
            taken = any(m and i is not None and group.static.get(i, m) != m for m, i in names)
            self._judge(asked, "its instance id is held by another" if taken else "")

    def _judge(self, asked: Asked, reason: str, *, is_sure: bool = False) -> None:
        if reason:
            self._stale[asked.number] = reason
        elif is_sure:
            self._welcome[asked.number] = None

    def _before_deletion(self, asked: Asked, group: ConsumerGroup | None) -> None:
        """S25: neither a group with members is deleted, nor offsets of a topic that it reads."""
        message = asked.request.message
        if group is None or not group.members:
            return
        if isinstance(message, DeleteGroup) and message.group_id == self.group_id:
            self._stale[asked.number] = "the group has members"
        elif isinstance(message, OffsetDeleteRequest) and message.group_id == self.group_id:
            reads = {topic.name for topic in message.topics} <= {*group.subscribed_topics()}
            if reads:
                self._stale[asked.number] = "the group reads the topic"

    # What it answers

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        wire, reason = asked.wire, self._stale.pop(asked.number, None)
        is_welcome = asked.number in self._welcome
        self._welcome.pop(asked.number, None)
        codes = _codes(response)
        if reason is not None:
            must(ErrorCode.NONE not in codes, _rule(wire, reason), f"{_name(wire)} succeeded, but {reason}")
        refused = [ErrorCode(code).name for code in codes if code in _NOT_A_MEMBER]
        rule = "S12" if isinstance(wire, OffsetCommitRequest) else "N9"
        must(not is_welcome or not refused, rule, f"{_name(wire)} of a member as it should be is refused: {refused}")
        if isinstance(response, ConsumerGroupHeartbeatResponse) and not response.error_code:
            assert isinstance(wire, ConsumerGroupHeartbeatRequest)
            self._beat_answered(wire, response)

    def _beat_answered(self, wire: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse) -> None:
        member_id, epoch = response.member_id or wire.member_id, response.member_epoch
        if wire.member_epoch < 0:
            self._sent.pop(member_id, None)
            must(epoch == wire.member_epoch, "N7", f"{member_id} leaves with {wire.member_epoch}, and hears {epoch}")
            return
        says_all = wire.topic_partitions is not None and wire.rebalance_timeout_ms != -1
        is_full = wire.member_epoch == 0 or (says_all and wire.subscribed_topic_names is not None)
        must(not is_full or response.assignment is not None, "N10", f"{member_id} says all and is told nothing")
        last = self._sent.get(member_id, 0)
        must(epoch >= last, "N7", f"{member_id} is told epoch {epoch} after {last}")
        if member_id in self._seen.members:
            self._sent[member_id] = epoch

    # The group between two steps

    def stepped(self, coordinator: GroupCoordinator) -> None:
        """The broker is between two steps."""
        group = coordinator.consumer_groups.get(self.group_id)
        if group is None:
            self._seen = _Seen()
            self._sent.clear()
            return
        seen = self._seen
        now = _Seen(group.epoch, group.assignment_epoch, {m.member_id: m.epoch for m in group.members.values()})
        must(now.group >= seen.group, "N7", f"the group epoch goes from {seen.group} to {now.group}")
        must(now.target >= seen.target, "N7", f"the assignment epoch goes from {seen.target} to {now.target}")
        must(now.target <= now.group, "N7", f"assignment epoch {now.target} is ahead of group epoch {now.group}")
        for member_id, epoch in now.members.items():
            before = seen.members.get(member_id, epoch)
            goes_on = epoch >= before or LEFT_STATIC in (epoch, before)
            must(goes_on, "N7", f"{member_id} goes from epoch {before} to {epoch}")
            must(epoch <= now.group, "N7", f"{member_id} is in epoch {epoch}, its group in {now.group}")
        if group.state is ConsumerGroupState.STABLE:
            for member in group.members.values():
                _check_settled(group, member)
        for gone in [member_id for member_id in self._sent if member_id not in now.members]:
            del self._sent[gone]
        self._seen = now

    def loaded(self, coordinator: GroupCoordinator) -> None:
        """Check after a replay that members still have the epochs they received (S26)."""
        group = coordinator.consumer_groups.get(self.group_id)
        self._stale.clear()
        self._welcome.clear()
        if group is not None:
            for member_id, epoch in self._sent.items():
                member = group.members.get(member_id)
                must(member is not None, "S26", f"{member_id} was told epoch {epoch}, and is no member after a load")
                has = -1 if member is None else member.epoch
                must(has >= epoch or has == LEFT_STATIC, "S26", f"{member_id} was told epoch {epoch}, and has {has}")
        self._seen = _Seen()


def _check_settled(group: ConsumerGroup, member: ConsumerMember) -> None:
    target = group.targets.get(member.member_id, frozenset())
    is_settled = member.epoch == group.epoch and not member.revoking and member.assigned.keys() == target
    must(is_settled, "N5", f"the group is Stable in epoch {group.epoch}, and {member.member_id} has not its target")


def _stale_beat(group: ConsumerGroup, wire: ConsumerGroupHeartbeatRequest) -> str:
    """Why this heartbeat may not succeed; empty if it has to."""
    holder = None if wire.instance_id is None else group.static.get(wire.instance_id)
    member = group.members.get(wire.member_id)
    if wire.member_epoch == 0:
        held = None if holder is None else group.members[holder]
        is_free = held is None or holder == wire.member_id or held.is_classic or held.epoch == LEFT_STATIC
        return "" if is_free else "its instance id is in use"
    if member is None:
        return "it is no member"
    if wire.instance_id is not None and holder != wire.member_id:
        return "its instance id is held by another"
    if wire.member_epoch < 0 or wire.member_epoch == member.epoch:
        return ""
    if wire.member_epoch != member.previous_epoch or wire.member_epoch > member.epoch or wire.topic_partitions is None:
        return f"it is in epoch {wire.member_epoch}, the coordinator has it in {member.epoch}"
    owned = {(topic.topic_id, number) for topic in wire.topic_partitions for number in topic.partitions}
    return "" if owned <= member.assigned.keys() else "it owns what it should not, in an epoch that is over"


def _stale_commit(group: ConsumerGroup, wire: OffsetCommitRequest) -> str:
    epoch, member = wire.generation_id_or_member_epoch, group.members.get(wire.member_id)
    if epoch < 0 and not group.members:
        return ""
    if member is None:
        return "it is no member"
    if epoch == member.epoch:
        return ""
    named = [(topic.topic_id, p.partition_index) for topic in wire.topics for p in topic.partitions]
    is_old = 0 <= epoch < member.epoch and not member.is_classic
    if is_old and all(tp in member.assigned and member.assigned[tp] <= epoch for tp in named):
        return ""
    return f"it is of epoch {epoch}, the coordinator has {wire.member_id} in {member.epoch}"


def _stale_classic(group: ConsumerGroup, wire: HeartbeatRequest | SyncGroupRequest) -> str:
    member = group.members.get(wire.member_id)
    if member is None or not member.is_classic:
        return "it is no member of the classic protocol"
    if wire.group_instance_id is not None and group.static.get(wire.group_instance_id) != wire.member_id:
        return "its instance id is held by another"
    return "" if wire.generation_id == member.epoch else f"it is of generation {wire.generation_id}"


def _codes(response: Structure) -> list[int]:
    if isinstance(response, OffsetCommitResponse):
        return [p.error_code for topic in response.topics for p in topic.partitions]
    if isinstance(response, LeaveGroupResponse) and response.members:
        return [entry.error_code for entry in response.members]
    if isinstance(response, OffsetDeleteResponse) and not response.error_code:
        return [p.error_code for topic in response.topics for p in topic.partitions]
    return [getattr(response, "error_code", ErrorCode.NONE)]


def _rule(wire: Structure, reason: str) -> str:
    if reason in ("the group has members", "the group reads the topic"):
        return "S25"
    return "S13" if "instance id" in reason else "S12" if isinstance(wire, OffsetCommitRequest) else "S11"


def _name(wire: Structure) -> str:
    return f"{type(wire).__name__} of {getattr(wire, 'member_id', '')!r}"
