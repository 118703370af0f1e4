"""Members that go without asking to: expiry, eviction, missing syncs, and the end of the whole shard.

Also the control verbs by which a test causes these. (Kafka: expireClassicGroupMemberHeartbeat, expirePendingSync,
onUnloaded.)
"""

from __future__ import annotations

from partita.group import answers
from partita.group.classic import rebalance
from partita.group.classic.static_members import record_swap, swap
from partita.group.contract import Step
from partita.group.notes import DID_NOT_SYNC, EVICTED, EXPIRED, STATIC_REPLACED, Cause
from partita.group.state.model import COMPLETING, DEAD, NEVER, PREPARING, STABLE, Group, Member
from partita.group.state.shard import Shard
from partita.now import Now
from partita.protocol.error_codes import ErrorCode


def remove(shard: Shard, group: Group, member: Member, cause: Cause, *, even_initial: bool = False) -> None:
    """Remove a member and let the group react: a new generation, or the end of the join phase."""
    rebalance.drop_member(shard, group, member, cause)
    if group.state in (STABLE, COMPLETING):
        rebalance.prepare(shard, group, cause)
    else:
        rebalance.complete_if_all_joined(shard, group, even_initial=even_initial)


def session_expired(shard: Shard, group: Group, member: Member) -> None:
    remove(shard, group, member, member.cause(EXPIRED), even_initial=True)


def pending_expired(shard: Shard, group: Group, member_id: str) -> None:
    """An id was never used: a join phase that waited for it may end."""
    del group.pending[member_id]
    shard.pending_count -= 1
    rebalance.complete_if_all_joined(shard, group, even_initial=True)


def sync_deadline(shard: Shard, group: Group) -> None:
    """Whoever has not fetched its assignment by now never will: remove them all, static ones too, and rebalance."""
    group.sync_deadline_ms = NEVER
    if group.state not in (COMPLETING, STABLE) or not group.pending_sync:
        return
    cause = Cause(DID_NOT_SYNC)
    for member_id in list(group.pending_sync):
        member = group.members[member_id]
        cause = member.cause(DID_NOT_SYNC)
        rebalance.drop_member(shard, group, member, cause)
    rebalance.prepare(shard, group, cause)


def unload(shard: Shard, error: ErrorCode) -> Step:
    for group in shard.groups.values():
        for member in list(group.members.values()):
            if member.join is not None:
                answer = answers.join_error(error, member.member_id, version=member.join.version)
                shard.answer_join(group, member, answer)
            shard.answer_sync(member, answers.sync_error(error))
        rebalance.move(shard, group, DEAD)
        group.wake_ms = NEVER
        group.join_deadline_ms = group.sync_deadline_ms = NEVER
    shard.wakes.clear()
    shard.sweeps.clear()
    shard.expiry_deadline_ms = NEVER
    return shard.take()


def silences(shard: Shard, now: Now) -> dict[tuple[str, str], int]:
    """Of each member whose session runs: how long it has not been heard of."""
    return {
        (group.group_id, member.member_id): now.mono_ms - (member.deadline_ms - member.session_timeout_ms)
        for group in shard.groups.values()
        for member in group.members.values()
        if member.deadline_ms != NEVER and not member.is_new
    }


def find(shard: Shard, group_id: str, name: str) -> tuple[Group, Member] | None:
    """The member with this id or group instance id."""
    group = shard.groups.get(group_id)
    if group is None or group.state is DEAD:
        return None
    member = group.members.get(group.static.get(name, name))
    return None if member is None else (group, member)


def evict_member(shard: Shard, group_id: str, name: str, now: Now) -> Step:
    shard.now = now
    found = find(shard, group_id, name)
    if found is not None:
        group, member = found
        remove(shard, group, member, member.cause(EVICTED))
    return shard.take()


def expire_session(shard: Shard, group_id: str, name: str, now: Now) -> Step:
    shard.now = now
    group = shard.groups.get(group_id)
    found = find(shard, group_id, name)
    if found is not None:
        session_expired(shard, *found)
    elif group is not None and name in group.pending:
        pending_expired(shard, group, name)
    return shard.take()


def fence_instance(shard: Shard, group_id: str, instance_id: str, now: Now) -> Step:
    """The new id belongs to nobody: its session runs out unless a process takes the instance id over."""
    shard.now = now
    group = shard.groups.get(group_id)
    if group is None or instance_id not in group.static:
        return shard.take()
    old = group.members[group.static[instance_id]]
    new = Member(
        shard.new_member_id(instance_id),
        instance_id,
        old.client_id,
        old.client_host,
        old.rebalance_timeout_ms,
        old.session_timeout_ms,
        old.protocols,
    )
    new.assignment = old.assignment
    records = record_swap(shard, group, old, new) if group.state is STABLE else []
    if records and not shard.fits(records):
        return shard.take()
    swap(shard, group, old, new)
    shard.start_session(group, new)
    shard.write(records)
    if group.state is COMPLETING:
        rebalance.prepare(shard, group, new.cause(STATIC_REPLACED))
    elif group.state is PREPARING:
        rebalance.complete_if_all_joined(shard, group)
    return shard.take()
