"""Replacement of static members: the instance id gets a new member id and the old one is fenced (KIP-345).

A refusal (the record is too large) is decided before anything changes, so there is nothing to undo and the defect of
KAFKA-13581 cannot occur. (Kafka: ClassicGroup.replaceStaticMember.)
"""

from __future__ import annotations

from partita.group.contract import Record
from partita.group.notes import MemberFenced
from partita.group.state import answers
from partita.group.state.model import Group, Member
from partita.group.state.stored import group_record
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode


def swap(turn: Turn, group: Group, old: Member, new: Member) -> None:
    """Replace `old` by `new`; parked requests of `old` are answered with FENCED_INSTANCE_ID."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    if old.join is not None:
        turn.answer_join(group, old, answers.join_error(fenced, old.member_id, version=old.join.version))
    turn.answer_sync(old, answers.sync_error(fenced))
    assert old.instance_id is not None
    del group.members[old.member_id]
    group.members[new.member_id] = new
    group.static[old.instance_id] = new.member_id
    group.has_unstored_ids = True
    group.count_protocols(old.protocols, -1)
    group.count_protocols(new.protocols, 1)
    if group.leader_id == old.member_id:
        group.leader_id = new.member_id
    if old.member_id in group.pending_sync:
        del group.pending_sync[old.member_id]
        group.pending_sync[new.member_id] = None
    turn.out.note(
        MemberFenced(
            group_id=group.group_id,
            group_instance_id=old.instance_id,
            old_member_id=old.member_id,
            new_member_id=new.member_id,
            subscription_changed=asks_for_other_topics(group, old, new),
            wall_ms=turn.now.wall_ms,
        )
    )


def swap_record(group: Group, old: Member, new: Member) -> Record:
    """Return the group's record after `swap`, to check its size before. Only a stable group writes one at once."""
    members = [new if member is old else member for member in group.members.values()]
    was_leader = group.leader_id == old.member_id
    return group_record(group, members, leader_id=new.member_id if was_leader else None)


def asks_for_other_topics(group: Group, old: Member, new: Member) -> bool:
    """Whether the new process subscribes to other topics under the selected protocol."""
    name = group.protocol_name
    return group.topics_differ(old.metadata(name), new.metadata(name))
