"""Involuntary removal of members: expiry, eviction, missing syncs.

Also the control verbs that let a test cause these. (Kafka: expireClassicGroupMemberHeartbeat, expirePendingSync.)
"""

from __future__ import annotations

from partita.group.classic import rebalance
from partita.group.classic.static_members import swap, swap_record
from partita.group.notes import Cause
from partita.group.state.model import COMPLETING, DEAD, NO_DEADLINE, PREPARING, STABLE, Group, Member
from partita.group.state.turn import Turn
from partita.wording import What


def remove(turn: Turn, group: Group, member: Member, cause: Cause, *, even_initial: bool = False) -> None:
    """Remove a member; then rebalance, or end the join phase if all others have joined."""
    rebalance.drop_member(turn, group, member, cause)
    if group.state in (STABLE, COMPLETING):
        rebalance.prepare(turn, group, cause)
    else:
        rebalance.complete_if_all_joined(turn, group, even_initial=even_initial)


def session_expired(turn: Turn, group: Group, member: Member) -> None:
    """Remove a member that was silent for its whole session."""
    remove(turn, group, member, member.cause(What.EXPIRED), even_initial=True)


def pending_expired(turn: Turn, group: Group, member_id: str) -> None:
    """Drop an id that was never used; a join phase that waited for it may end."""
    turn.drop_pending(group, member_id, "expired")
    rebalance.complete_if_all_joined(turn, group, even_initial=True)


def sync_deadline(turn: Turn, group: Group) -> None:
    """Remove every member that has not fetched its assignment, static ones too, and rebalance."""
    group.sync_deadline_ms = NO_DEADLINE
    if group.state not in (COMPLETING, STABLE) or not group.pending_sync:
        return
    cause = Cause(What.DID_NOT_SYNC)
    for member_id in list(group.pending_sync):
        member = group.members[member_id]
        cause = member.cause(What.DID_NOT_SYNC)
        rebalance.drop_member(turn, group, member, cause)
    rebalance.prepare(turn, group, cause)


def find(turn: Turn, group_id: str, name: str) -> tuple[Group, Member] | None:
    """Return the member with this id or group instance id."""
    group = turn.state.groups.get(group_id)
    if group is None or group.state is DEAD:
        return None
    member = group.members.get(group.static.get(name, name))
    return None if member is None else (group, member)


def evict_member(turn: Turn, group_id: str, name: str) -> None:
    """Control: remove the member with this id or group instance id, if there is one."""
    found = find(turn, group_id, name)
    if found is not None:
        group, member = found
        remove(turn, group, member, member.cause(What.EVICTED))


def expire_session(turn: Turn, group_id: str, name: str) -> None:
    """Control: end the member's session, or the time in which a pending id may be used, now."""
    group = turn.state.groups.get(group_id)
    found = find(turn, group_id, name)
    if found is not None:
        session_expired(turn, *found)
    elif group is not None and name in group.pending:
        pending_expired(turn, group, name)


def fence_instance(turn: Turn, group_id: str, instance_id: str) -> None:
    """Control: give a static member a new id. No process knows it, so the session expires unless one takes over."""
    group = turn.state.groups.get(group_id)
    if group is None or instance_id not in group.static:
        return
    old = group.members[group.static[instance_id]]
    new = Member(
        member_id=turn.state.new_member_id(instance_id),
        instance_id=instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        session_timeout_ms=old.session_timeout_ms,
        protocols=old.protocols,
    )
    new.assignment = old.assignment
    records = [swap_record(group, old, new)] if group.state is STABLE else []
    if records and not turn.state.fits(records):
        return
    swap(turn, group, old, new)
    turn.start_session(group, new)
    turn.write(records)
    if records:
        group.is_stored()
    if group.state is COMPLETING:
        rebalance.prepare(turn, group, new.cause(What.STATIC_REPLACED))
    elif group.state is PREPARING:
        rebalance.complete_if_all_joined(turn, group)
