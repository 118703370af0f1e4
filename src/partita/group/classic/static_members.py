"""A static member's process restarts: its instance id gets a new member id, and the old one is fenced (KIP-345).

What could be refused (the record is too large) is decided before anything changes, so there is nothing to put back:
the defect of KAFKA-13581 has no place to happen. (Kafka: updateStaticMemberThenRebalanceOrCompleteJoin.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.group import answers
from partita.group.classic import rebalance
from partita.group.contract import Record
from partita.group.notes import STATIC_REPLACED, MemberFenced
from partita.group.state.model import Group, Member
from partita.group.state.shard import Shard
from partita.group.state.stored import group_record
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.join_group import JoinGroupResponse

if TYPE_CHECKING:
    from partita.group.classic.join import Join

_SKIPS_ASSIGNMENT_FROM = 9


def SWAP_WAIT(shard: Shard, join: Join) -> None:
    """Replace the member; it waits for the join phase like everybody."""
    group, old = join.group, _old(join)
    new = _replacement(shard, join, old)
    swap(shard, group, old, new)
    shard.park_join(group, new, join.waiter)
    rebalance.complete_if_all_joined(shard, group)


def SWAP_REBALANCE(shard: Shard, join: Join) -> None:
    """Replace the member and begin again: the leader may be assigning to the old id at this moment."""
    old = _old(join)
    _swap_and_rebalance(shard, join, old, _replacement(shard, join, old))


def _swap_and_rebalance(shard: Shard, join: Join, old: Member, new: Member) -> None:
    group = join.group
    swap(shard, group, old, new)
    rebalance.answer_syncs(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
    shard.park_join(group, new, join.waiter)
    rebalance.rebalance(shard, group, new.cause(STATIC_REPLACED))


def SWAP_PERSIST(shard: Shard, join: Join) -> None:
    """Replace the member without a rebalance, on record, unless the agreed protocol would change."""
    group, old = join.group, _old(join)
    new = _replacement(shard, join, old)
    members = [new if member is old else member for member in group.members.values()]
    if group.vote(members) != group.protocol_name or _must_rebalance(shard, group, old, new):
        _swap_and_rebalance(shard, join, old, new)
        return
    was_leader = group.leader_id == old.member_id
    record = group_record(group, members, leader_id=new.member_id if was_leader else None)
    if not shard.fits([record]):
        shard.answer(join.token, _could_not_store(group, join.request.version))
        return
    swap(shard, group, old, new)
    shard.start_session(group, new)
    shard.write([record])
    shard.answer(join.token, _took_over(group, old, new, join.request.version, was_leader=was_leader))


def _old(join: Join) -> Member:
    instance_id = join.wire.group_instance_id
    assert instance_id is not None, "only a static member is replaced"
    return join.group.members[join.group.static[instance_id]]


def _replacement(shard: Shard, join: Join, old: Member) -> Member:
    """Deviation: Kafka keeps the old process's client id and host in descriptions; these are the new one's."""
    assert old.instance_id is not None
    new = join.new_member(shard.new_member_id(old.instance_id))
    new.assignment = old.assignment
    return new


def _must_rebalance(shard: Shard, group: Group, old: Member, new: Member) -> bool:
    return shard.config.partita_rebalance_on_static_change and _topics_changed(group, old, new)


def _topics_changed(group: Group, old: Member, new: Member) -> bool:
    return old.metadata(group.protocol_name) != new.metadata(group.protocol_name)


def swap(shard: Shard, group: Group, old: Member, new: Member) -> None:
    """Put `new` where `old` is; what `old` has parked is answered FENCED_INSTANCE_ID."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    if old.join is not None:
        shard.answer_join(group, old, answers.join_error(fenced, old.member_id, version=old.join.version))
    shard.answer_sync(old, answers.sync_error(fenced))
    assert old.instance_id is not None
    del group.members[old.member_id]
    group.members[new.member_id] = new
    group.static[old.instance_id] = new.member_id
    group.count_protocols(old.protocols, -1)
    group.count_protocols(new.protocols, 1)
    if group.leader_id == old.member_id:
        group.leader_id = new.member_id
    if old.member_id in group.pending_sync:
        del group.pending_sync[old.member_id]
        group.pending_sync[new.member_id] = None
    changed = _topics_changed(group, old, new)
    shard.note(MemberFenced(group.group_id, old.instance_id, old.member_id, new.member_id, changed, shard.now.wall_ms))


def _took_over(group: Group, old: Member, new: Member, version: int, *, was_leader: bool) -> JoinGroupResponse:
    """The leader learns that it leads and must not assign; before version 9 it is made to believe it follows."""
    if not was_leader:
        return answers.joined(group, new.member_id, version, None)
    if version < _SKIPS_ASSIGNMENT_FROM:
        return answers.joined(group, new.member_id, version, None, leader_id=old.member_id)
    return answers.joined(group, new.member_id, version, answers.members_of(group), skip_assignment=True)


def _could_not_store(group: Group, version: int) -> JoinGroupResponse:
    answer = answers.joined(group, "", version, None)
    answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return answer


def record_swap(shard: Shard, group: Group, old: Member, new: Member) -> list[Record]:
    """The record of a swap in a stable group; none in other states, which the next generation's record covers."""
    members = [new if member is old else member for member in group.members.values()]
    was_leader = group.leader_id == old.member_id
    return [group_record(group, members, leader_id=new.member_id if was_leader else None)]
