"""Serves members of the classic protocol in a KIP-848 group, during a migration.

A join is a heartbeat with the subscription it carries; a sync hands out the partitions the member may own now, encoded
for the classic protocol; a heartbeat asks the member to rejoin when its epoch or partitions change. (Kafka:
classicGroupJoinToConsumerGroup, classicGroupSyncToConsumerGroup, classicGroupHeartbeatToConsumerGroup; specification
section 21.3.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from partita.assignors.interface import Subscription
from partita.assignors.payloads import decode_subscription
from partita.group.consumer_group import conversion, leaving, timers
from partita.group.consumer_group.change import Change, apply, cause_of
from partita.group.consumer_group.errors import Refused
from partita.group.consumer_group.member_ids import bare_member_id
from partita.group.contract import GroupRequest, Token
from partita.group.notes import MemberIdIssued
from partita.group.records.consumer_group import (
    NO_PARTITIONS,
    ClassicPart,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Partition,
    is_settled,
)
from partita.group.state import answers
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from partita.protocol.primitives import MalformedRequest
from partita.wording import What

_MEMBER_ID_REQUIRED_FROM = 4
_REBALANCE_TIMEOUT_FROM = 1
_NULLABLE_PROTOCOL_NAME = 7
_BATCH_FROM = 3


def serves(group: ConsumerGroup, request: GroupRequest) -> bool:
    """Whether this module serves the request. A join to a group without members makes it classic instead."""
    return bool(group.members) or not isinstance(request.message, JoinGroupRequest)


class Join(NamedTuple):
    """One JoinGroup to a KIP-848 group being decided."""

    token: Token
    request: GroupRequest
    wire: JoinGroupRequest
    group: ConsumerGroup

    @property
    def holder(self) -> str | None:
        """Member id that holds the group instance id of the join."""
        return None if self.wire.group_instance_id is None else self.group.static.get(self.wire.group_instance_id)

    @property
    def subscription(self) -> Subscription:
        """Return the subscription and owned partitions of its first protocol. Raises MalformedRequest."""
        return decode_subscription(self.wire.protocols[0].metadata)


def join_group(turn: Turn, token: Token, request: GroupRequest, group: ConsumerGroup) -> None:
    """Answer a JoinGroup; it is never parked."""
    wire = request.message
    assert isinstance(wire, JoinGroupRequest)
    join = Join(token, request, wire, group)
    error = next((error for holds, error in JOIN_GUARDS if holds(turn, join)), ErrorCode.NONE)
    if error:
        member_id = "" if error is ErrorCode.GROUP_MAX_SIZE_REACHED else wire.member_id
        turn.out.answer(token, answers.join_error(error, member_id, version=request.version))
    elif needs_id(join):
        _issue_id(turn, join)
    else:
        _admit(turn, join)


def group_is_full(turn: Turn, join: Join) -> bool:
    """The group is at its maximum size, and the sender is not a member."""
    is_member = join.wire.member_id in join.group.members or join.holder is not None
    return not is_member and len(join.group.members) >= turn.state.config.group_consumer_max_size


def no_protocol_in_common(turn: Turn, join: Join) -> bool:
    """Its protocol type is not consumer, or it offers no protocol that all classic members list."""
    if join.wire.protocol_type != conversion.CONSUMER or not join.wire.protocols:
        return True
    mine = join.wire.member_id or join.holder or ""
    counts = conversion.supported_protocols(join.group, except_id=mine)
    known = join.group.members.get(mine)
    others = join.group.classic_members - (1 if known is not None and known.is_classic else 0)
    return others > 0 and not any(counts.get(protocol.name, 0) == others for protocol in join.wire.protocols)


def subscription_is_unreadable(turn: Turn, join: Join) -> bool:
    """The metadata of its first protocol is not a valid subscription."""
    try:
        join.subscription  # noqa: B018  # it raises
    except MalformedRequest:
        return True
    return False


def instance_is_unknown(turn: Turn, join: Join) -> bool:
    """It has a member id, and an instance id that no member holds."""
    return bool(join.wire.member_id) and join.wire.group_instance_id is not None and join.holder is None


def instance_is_anothers(turn: Turn, join: Join) -> bool:
    """Its instance id belongs to another member id."""
    return bool(join.wire.member_id) and join.holder not in (None, join.wire.member_id)


JOIN_GUARDS: tuple[tuple[Callable[[Turn, Join], bool], ErrorCode], ...] = (
    (group_is_full, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (no_protocol_in_common, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    (subscription_is_unreadable, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    (instance_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
    (instance_is_anothers, ErrorCode.FENCED_INSTANCE_ID),
)


def needs_id(join: Join) -> bool:
    """Whether it is a dynamic member without an id, in a version that must rejoin with one."""
    is_new = not join.wire.member_id and join.wire.group_instance_id is None
    return is_new and join.request.version >= _MEMBER_ID_REQUIRED_FROM


def _issue_id(turn: Turn, join: Join) -> None:
    """Issue a member id. It is not stored: any id is accepted on join."""
    member_id = bare_member_id(turn)
    turn.out.note(MemberIdIssued(join.group.group_id, member_id, join.request.client_id, turn.now.wall_ms))
    error = answers.join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id, version=join.request.version)
    turn.out.answer(join.token, error)


def _admit(turn: Turn, join: Join) -> None:
    """Add or update the member; answer with its epoch as the generation and without other members."""
    change = _change(turn, join)
    if change.replaces is not None and not change.replaces.is_classic:
        gone = [change.replaces]
        if conversion.can_downgrade(turn, join.group, gone, comes=change.after):
            _downgrade_by_replacement(turn, join, change)
            return
    member = apply(turn, change)
    if isinstance(member, Refused):
        error = answers.join_error(member.error, join.wire.member_id, version=join.request.version)
        turn.out.answer(join.token, error)
        return
    timers.expect_sync(turn, join.group.group_id, member)
    turn.out.answer(join.token, _joined(join, member.member_id, member.epoch))


def _change(turn: Turn, join: Join) -> Change:
    wire, group = join.wire, join.group
    held = None if join.holder is None else group.members[join.holder]
    replaces = held if not wire.member_id else None
    member_id = wire.member_id or bare_member_id(turn)
    known = group.members.get(member_id)
    if replaces is not None:
        before = replace(replaces, member_id=member_id, epoch=max(replaces.epoch, 0))
    else:
        before = known or ConsumerMember(member_id)
    return Change(
        group=group,
        before=before,
        after=_after(join, before),
        is_new=known is None,
        owned=_owned(turn, join.subscription),
        replaces=replaces,
    )


def _after(join: Join, before: ConsumerMember) -> ConsumerMember:
    wire, subscription = join.wire, join.subscription
    old = join.request.version < _REBALANCE_TIMEOUT_FROM
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in wire.protocols)
    return replace(
        before,
        instance_id=wire.group_instance_id if wire.group_instance_id is not None else before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        client_id=join.request.client_id,
        client_host=join.request.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        regex="",
        rebalance_timeout_ms=wire.session_timeout_ms if old else wire.rebalance_timeout_ms,
        classic=ClassicPart(wire.session_timeout_ms, protocols),
    )


def _owned(turn: Turn, subscription: Subscription) -> frozenset[Partition]:
    image = turn.state.topics
    named = ((image.get(name), number) for name, number in subscription.owned_partitions)
    return frozenset((topic.topic_id, number) for topic, number in named if topic is not None)


def _joined(join: Join, member_id: str, generation: int) -> JoinGroupResponse:
    name: str | None = join.wire.protocols[0].name
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=conversion.CONSUMER,
        protocol_name=name if join.request.version >= _NULLABLE_PROTOCOL_NAME else name or "",
        leader="",  # the coordinator assigns, so no member takes itself for the leader
        member_id=member_id,
        members=[],
    )


def _downgrade_by_replacement(turn: Turn, join: Join, change: Change) -> None:
    """Make the group classic: the static member replaced here was the last one of the new protocol.

    It rebalances if the new member subscribes to other topics (KAFKA-19546).

    Deviation: Partita also rebalances a group that a static member's return makes classic if some member has not
    reached its target, where Kafka does not and partitions stay unread.
    """
    assert change.replaces is not None
    comes = change.after
    cause = cause_of(comes, What.STATIC_REPLACED)
    rebalances = change.subscription_changed or not _is_settled(join.group, change.replaces)
    conversion.downgrade(turn, join.group, [change.replaces], cause, comes=comes, rebalances=rebalances)
    turn.out.answer(join.token, _joined(join, comes.member_id, turn.state.groups[join.group.group_id].generation))


def _is_settled(group: ConsumerGroup, leaves: ConsumerMember) -> bool:
    """Whether every member has the target of the group's epoch. An absent static member counts with its partitions."""
    if group.epoch != group.assignment_epoch:
        return False
    others = [member for member in group.members.values() if member is not leaves]
    holds_target = leaves.assigned.keys() == group.targets.get(leaves.member_id, NO_PARTITIONS)
    return holds_target and all(is_settled(member, group.epoch) for member in others)


class Claim(NamedTuple):
    """A SyncGroup or Heartbeat that a classic member sent."""

    group: ConsumerGroup
    member_id: str
    instance_id: str | None
    generation: int


def is_not_a_classic_member(claim: Claim) -> bool:
    """No classic member has its member id."""
    member = claim.group.members.get(claim.member_id)
    return member is None or not member.is_classic


def claims_unknown_instance(claim: Claim) -> bool:
    """It names a group instance id that no member holds."""
    return claim.instance_id is not None and claim.instance_id not in claim.group.static


def claims_anothers_instance(claim: Claim) -> bool:
    """Its group instance id belongs to another member id."""
    return claim.instance_id is not None and claim.group.static.get(claim.instance_id) != claim.member_id


def generation_is_another(claim: Claim) -> bool:
    """Its generation is not the member's epoch."""
    return claim.generation != claim.group.members[claim.member_id].epoch


CLAIM_GUARDS: tuple[tuple[Callable[[Claim], bool], ErrorCode], ...] = (
    (claims_unknown_instance, ErrorCode.UNKNOWN_MEMBER_ID),
    (claims_anothers_instance, ErrorCode.FENCED_INSTANCE_ID),
    (is_not_a_classic_member, ErrorCode.UNKNOWN_MEMBER_ID),
    (generation_is_another, ErrorCode.ILLEGAL_GENERATION),
)


def claim_error(claim: Claim) -> ErrorCode:
    """Return the error of the first guard that holds."""
    return next((error for holds, error in CLAIM_GUARDS if holds(claim)), ErrorCode.NONE)


def sync_group(turn: Turn, token: Token, request: GroupRequest, group: ConsumerGroup) -> None:
    """Hand out the partitions the member may own now; if it is behind, it has to rejoin first."""
    wire = request.message
    assert isinstance(wire, SyncGroupRequest)
    error = claim_error(Claim(group, wire.member_id, wire.group_instance_id, wire.generation_id))
    if not error and _names_another_protocol(group.members[wire.member_id], wire):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if error:
        turn.out.answer(token, answers.sync_error(error))
        return
    member = group.members[wire.member_id]
    # A member with partitions to revoke stays in its epoch: it needs the smaller assignment before it can rejoin.
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        timers.expect_join(turn, group.group_id, member)
        turn.out.answer(token, answers.sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        return
    turn.state.consumers[group.group_id].syncs.pop(member.member_id, None)
    timers.start_session(turn, group.group_id, member)
    assert member.classic is not None, "a guard answers members of the other protocol"
    answer = SyncGroupResponse(
        protocol_type=conversion.CONSUMER,
        protocol_name=member.classic.protocols[0][0],
        assignment=conversion.assignment_bytes(turn.state.topics, member, member.assigned),
    )
    turn.out.answer(token, answer)


def _names_another_protocol(member: ConsumerMember, wire: SyncGroupRequest) -> bool:
    assert member.classic is not None, "a guard answers members of the other protocol"
    pairs = ((wire.protocol_type, conversion.CONSUMER), (wire.protocol_name, member.classic.protocols[0][0]))
    return any(given is not None and given != agreed for given, agreed in pairs)


def heartbeat(turn: Turn, token: Token, request: GroupRequest, group: ConsumerGroup) -> None:
    """Restart the session; ask the member to rejoin when its epoch or partitions are to change."""
    wire = request.message
    assert isinstance(wire, HeartbeatRequest)
    error = claim_error(Claim(group, wire.member_id, wire.group_instance_id, wire.generation_id))
    if not error:
        member = group.members[wire.member_id]
        timers.start_session(turn, group.group_id, member)
        if has_to_rejoin(group, member):
            timers.expect_join(turn, group.group_id, member)
            error = ErrorCode.REBALANCE_IN_PROGRESS
    turn.out.answer(token, HeartbeatResponse(error_code=error))


def has_to_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether the member has to rejoin to learn of a change."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    target = group.targets.get(member.member_id, NO_PARTITIONS)
    blocked = any(group.owners.get(partition, member.member_id) != member.member_id for partition in target)
    return member.state is MemberState.UNRELEASED_PARTITIONS and not blocked


def leave_group(turn: Turn, token: Token, request: GroupRequest, group: ConsumerGroup) -> None:
    """Remove the named members, of either protocol; one new epoch for all of them."""
    wire = request.message
    assert isinstance(wire, LeaveGroupRequest)
    old_form = request.version < _BATCH_FROM
    entries = [MemberIdentity(member_id=wire.member_id)] if old_form else wire.members
    found = [_leaver(group, entry) for entry in entries]
    gone = dict.fromkeys(member_id for member_id, error in found if not error)
    if gone:
        leaving.fence(turn, group, [group.members[member_id] for member_id in gone], What.LEFT)
    if old_form:
        turn.out.answer(token, LeaveGroupResponse(error_code=found[0][1]))
        return
    echoes = [
        MemberResponse(member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)
        for entry, (_, error) in zip(entries, found, strict=True)
    ]
    turn.out.answer(token, LeaveGroupResponse(members=echoes))


def _leaver(group: ConsumerGroup, entry: MemberIdentity) -> tuple[str, ErrorCode]:
    """Return the member id an entry names, or the error if it names no member."""
    holder = group.static.get(entry.group_instance_id or "")
    member_id = entry.member_id or holder or ""
    if entry.group_instance_id is not None and holder is None:
        return member_id, ErrorCode.UNKNOWN_MEMBER_ID
    if entry.group_instance_id is not None and holder != member_id:
        return member_id, ErrorCode.FENCED_INSTANCE_ID
    return member_id, ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID
