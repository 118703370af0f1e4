"""JoinGroup: guards, then a table of state by kind of join, then one short action.

Mirrors GroupMetadataManager.classicGroupJoin* of Apache Kafka 4.3.1 (specification section 6); KIP-848 groups will get
a file of their own beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from partita.group import answers
from partita.group.classic import rebalance
from partita.group.classic.static_members import SWAP_PERSIST, SWAP_REBALANCE, SWAP_WAIT
from partita.group.contract import GroupRequest, Record, Token
from partita.group.notes import JOINED, LEADER_REJOINED, REFUSED_FULL, SUBSCRIPTION_CHANGED
from partita.group.records import log_records
from partita.group.state.model import (
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    Group,
    GroupState,
    Member,
    Protocols,
    Waiter,
)
from partita.group.state.shard import Shard
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.join_group import JoinGroupRequest

_MEMBER_ID_REQUIRED_FROM = 4
_REBALANCE_TIMEOUT_FROM = 1


class JoinCase(IntEnum):
    """How a join is recognised once the guards have passed it."""

    NEEDS_ID = 0
    """No id, no instance, version 4 or newer: is given an id to come back with."""
    NEW = 1
    """No id; an old version, or an instance id that nobody holds."""
    RETURNING = 2
    """No id; an instance id somebody holds: a restarted process takes it over."""
    PENDING = 3
    """The id was handed out by NEEDS_ID and is used for the first time."""
    LEADER = 4
    """The group leader, same protocols as before: in Stable this is how it asks for a rebalance."""
    CHANGED = 5
    """A member, leader or not, with other protocols, metadata, or their order."""
    UNCHANGED = 6
    """A follower with the same protocols: it lost an answer, or only looks in."""


class Join:
    """One JoinGroup being decided."""

    __slots__ = ("group", "member", "protocols", "request", "token", "wire")

    def __init__(self, group: Group, token: Token, request: GroupRequest, wire: JoinGroupRequest) -> None:
        self.group = group
        self.token = token
        self.request = request
        self.wire = wire
        self.member = group.members.get(wire.member_id)
        self.protocols: Protocols = tuple([(p.name, bytes(p.metadata)) for p in wire.protocols])

    @property
    def waiter(self) -> Waiter:
        return Waiter(self.token, self.request.version)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has none; anything sent later is taken as it is, even -1."""
        wire = self.wire
        old = self.request.version < _REBALANCE_TIMEOUT_FROM
        return wire.session_timeout_ms if old else wire.rebalance_timeout_ms

    def new_member(self, member_id: str) -> Member:
        return Member(
            member_id,
            self.wire.group_instance_id,
            self.request.client_id,
            self.request.client_host,
            self.rebalance_timeout_ms,
            self.wire.session_timeout_ms,
            self.protocols,
        )


def join_group(shard: Shard, token: Token, request: GroupRequest) -> None:
    wire = request.message
    assert isinstance(wire, JoinGroupRequest)
    group = shard.groups.get(wire.group_id)
    refused, is_created = None, False
    if group is None:
        group, refused = _create(shard, wire)
        is_created = refused is None
    join = Join(group, token, request, wire)
    error = refused or _first_guard(shard, join)
    if error is not None:
        _refuse(shard, join, error)
    else:
        case = classify(join)
        JOIN[group.state][case](shard, join)
    if is_created and not shard.records:
        value = log_records.empty_group(None, 0, group.since_ms)
        shard.write([Record(log_records.group_key(group.group_id), log_records.group_value(value))])


def _first_guard(shard: Shard, join: Join) -> ErrorCode | None:
    for is_so, error in GUARDS:
        if is_so(shard, join):
            return error
    return None


def _create(shard: Shard, wire: JoinGroupRequest) -> tuple[Group, ErrorCode | None]:
    """Make the group a newcomer asks for; the first record it will need must fit."""
    absent = Group(wire.group_id, shard.now.wall_ms)
    if wire.member_id:
        return absent, ErrorCode.UNKNOWN_MEMBER_ID
    if len(shard.groups) >= shard.config.partita_groups_max:
        return absent, ErrorCode.GROUP_MAX_SIZE_REACHED
    value = log_records.empty_group(None, 0, shard.now.wall_ms)
    if not shard.fits([Record(log_records.group_key(wire.group_id), log_records.group_value(value))]):
        return absent, ErrorCode.UNKNOWN_SERVER_ERROR
    return shard.create(wire.group_id), None


# -- guards: the first that holds answers ---------------------------------------------------------


def _is_full(shard: Shard, join: Join) -> bool:
    """Is there no place? Pending ids do not count; while members rejoin, those who did so first have the places."""
    group, size = join.group, shard.config.group_max_size
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return False
        case GroupState.PREPARING:
            has_place = join.member is not None and join.member.join is not None
            return not has_place and group.joins_parked >= size
        case _:
            return join.member is None and len(group.members) >= size


def _has_too_many_pending(shard: Shard, join: Join) -> bool:
    wire = join.wire
    asks_for_id = not wire.member_id and wire.group_instance_id is None
    return asks_for_id and shard.pending_count >= shard.config.partita_pending_members_max


def _is_dead(shard: Shard, join: Join) -> bool:
    return join.group.state is DEAD


def _is_too_large(shard: Shard, join: Join) -> bool:
    config = shard.config
    too_many = len(join.protocols) > config.partita_protocols_max
    return too_many or any(len(metadata) > config.partita_member_metadata_max_bytes for _, metadata in join.protocols)


def _has_no_common_protocol(shard: Shard, join: Join) -> bool:
    return not join.group.supports_any(join.wire.protocol_type, join.protocols)


def _pending_is_static(shard: Shard, join: Join) -> bool:
    return join.wire.member_id in join.group.pending and join.wire.group_instance_id is not None


def _instance_is_unknown(shard: Shard, join: Join) -> bool:
    instance_id = join.wire.group_instance_id
    return bool(join.wire.member_id) and instance_id is not None and instance_id not in join.group.static


def _instance_is_anothers(shard: Shard, join: Join) -> bool:
    member_id, instance_id = join.wire.member_id, join.wire.group_instance_id
    return bool(member_id) and instance_id is not None and join.group.static[instance_id] != member_id


def _member_is_unknown(shard: Shard, join: Join) -> bool:
    member_id = join.wire.member_id
    return bool(member_id) and join.member is None and member_id not in join.group.pending


GUARDS: tuple[tuple[Callable[[Shard, Join], bool], ErrorCode], ...] = (
    (_is_full, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (_has_too_many_pending, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (_is_too_large, ErrorCode.POLICY_VIOLATION),
    (_has_no_common_protocol, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    (_pending_is_static, ErrorCode.UNKNOWN_SERVER_ERROR),
    (_instance_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
    (_instance_is_anothers, ErrorCode.FENCED_INSTANCE_ID),
    (_member_is_unknown, ErrorCode.UNKNOWN_MEMBER_ID),
)
"""In this order; an absent group was answered before them: UNKNOWN_MEMBER_ID with an id, else it is created."""


def _refuse(shard: Shard, join: Join, error: ErrorCode) -> None:
    member_id = join.wire.member_id
    if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
        if join.member is not None:
            rebalance.drop_member(shard, join.group, join.member, join.member.cause(REFUSED_FULL))
        elif join.group.pending.pop(member_id, None) is not None:
            shard.pending_count -= 1
        member_id = ""
    elif error is ErrorCode.UNKNOWN_SERVER_ERROR:
        member_id = ""
    shard.answer(join.token, answers.join_error(error, member_id, version=join.request.version))


# -- classification and actions -------------------------------------------------------------------


def classify(join: Join) -> JoinCase:
    wire, group = join.wire, join.group
    if not wire.member_id:
        if wire.group_instance_id is not None:
            return JoinCase.RETURNING if wire.group_instance_id in group.static else JoinCase.NEW
        return JoinCase.NEEDS_ID if join.request.version >= _MEMBER_ID_REQUIRED_FROM else JoinCase.NEW
    if wire.member_id in group.pending:
        return JoinCase.PENDING
    assert join.member is not None, "a guard answers unknown members"
    if join.protocols != join.member.protocols:
        return JoinCase.CHANGED
    return JoinCase.LEADER if group.leader_id == wire.member_id else JoinCase.UNCHANGED


def ISSUE_ID(shard: Shard, join: Join) -> None:
    """Hand out an id to come back with; no rebalance for somebody who may never return."""
    member_id = shard.new_member_id(join.request.client_id)
    deadline_ms = shard.now.mono_ms + join.wire.session_timeout_ms
    join.group.pending[member_id] = deadline_ms
    shard.pending_count += 1
    shard.arm(join.group, deadline_ms)
    shard.answer(join.token, answers.join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id, version=join.request.version))


def ADMIT(shard: Shard, join: Join) -> None:
    """Add the member, under its pending id or a new one; rebalance, or see whether the join phase is over."""
    group, wire = join.group, join.wire
    if group.pending.pop(wire.member_id, None) is not None:
        shard.pending_count -= 1
    prefix = join.request.client_id if wire.group_instance_id is None else wire.group_instance_id
    member = join.new_member(wire.member_id or shard.new_member_id(prefix))
    if not group.members:
        group.protocol_type = wire.protocol_type
    rebalance.add_member(shard, group, member)
    shard.park_join(group, member, join.waiter)
    rebalance.rebalance(shard, group, member.cause(JOINED, wire.reason or ""))


def REJOIN(shard: Shard, join: Join) -> None:
    """Update the member and park the request; a join it has parked already is superseded."""
    group, member = join.group, join.member
    assert member is not None
    changed = member.protocols != join.protocols
    supersede_join(shard, group, member)
    group.update_member(member, join.protocols, join.rebalance_timeout_ms, join.wire.session_timeout_ms)
    cause = member.cause(SUBSCRIPTION_CHANGED if changed else LEADER_REJOINED, join.wire.reason or "")
    if group.state is PREPARING:
        shard.park_join(group, member, join.waiter)
        rebalance.complete_if_all_joined(shard, group)
        return
    if group.state is COMPLETING:  # its own parked sync is answered like the others', before its join is parked
        rebalance.answer_syncs(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
    shard.park_join(group, member, join.waiter)
    rebalance.rebalance(shard, group, cause)


def ECHO(shard: Shard, join: Join) -> None:
    """Repeat the current generation; nothing changes, no session restarts."""
    group, member_id = join.group, join.wire.member_id
    members = answers.members_of(group) if group.leader_id == member_id else None
    shard.answer(join.token, answers.joined(group, member_id, join.request.version, members))


def UNKNOWN(shard: Shard, join: Join) -> None:
    """An empty group has no members."""
    error = answers.join_error(ErrorCode.UNKNOWN_MEMBER_ID, join.wire.member_id, version=join.request.version)
    shard.answer(join.token, error)


def NEVER(shard: Shard, join: Join) -> None:
    raise AssertionError(f"group {join.group.group_id} is {join.group.state.value} and has static members")


def supersede_join(shard: Shard, group: Group, member: Member) -> None:
    """The member's older join gets an answer its client retries by (KAFKA-20938), not silence."""
    if member.join is not None:
        error = answers.join_error(ErrorCode.NOT_COORDINATOR, member.member_id, version=member.join.version)
        shard.answer_join(group, member, error)


Action = Callable[[Shard, Join], None]
# fmt: off
JOIN: dict[GroupState, tuple[Action, ...]] = {
    #            NEEDS_ID  NEW    RETURNING       PENDING LEADER   CHANGED  UNCHANGED
    EMPTY:      (ISSUE_ID, ADMIT, NEVER,          ADMIT,  UNKNOWN, UNKNOWN, UNKNOWN),
    PREPARING:  (ISSUE_ID, ADMIT, SWAP_WAIT,      ADMIT,  REJOIN,  REJOIN,  REJOIN),
    COMPLETING: (ISSUE_ID, ADMIT, SWAP_REBALANCE, ADMIT,  ECHO,    REJOIN,  ECHO),
    STABLE:     (ISSUE_ID, ADMIT, SWAP_PERSIST,   ADMIT,  REJOIN,  REJOIN,  ECHO),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
# fmt: on
