"""Lazy deadlines: a number per member, one wake-up per group, one timer per shard.

A heartbeat only changes its member's deadline. The shard's heap holds one wake-up per group, never later than the
group's earliest deadline; when it comes, the group is scanned once: due deadlines are handled in order, and the next
wake-up is set. So 10,000 members cost one pass per session timeout, not a timer each.
"""

from __future__ import annotations

from heapq import heappop
from operator import itemgetter

from partita.group.classic import rebalance, removal, unled
from partita.group.consumer_group import deadlines as consumer_deadlines
from partita.group.offsets import expiration
from partita.group.state.model import DEAD, NO_DEADLINE, PREPARING, Group
from partita.group.state.shard import ShardState
from partita.group.state.turn import Turn

_RECORD_BYTES = 64
"""Overhead counted per record, so that many small ones take no longer than few large ones."""
_STEP_BYTES = 131_072
"""Approximate maximum written per call; the remaining due work waits for the next call, which follows at once."""

_SESSION, _PENDING, _JOIN, _SYNC, _TOPICS = range(5)


def next_ms(state: ShardState) -> int | None:
    """Return the time of the next deadline on the monotonic clock, or None. May be early, is never late."""
    wakes = state.wakes
    while wakes and wakes[0][0] != wakes[0][2].wake_ms:
        heappop(wakes)
    earliest = state.expiry_deadline_ms
    if wakes and wakes[0][0] < earliest:
        earliest = wakes[0][0]
    if state.sweeps and state.sweeps[0].since_ms < earliest:
        earliest = state.sweeps[0].since_ms
    return None if earliest == NO_DEADLINE else earliest


def run(turn: Turn) -> None:
    """Handle due deadlines, up to about `_STEP_BYTES` of records."""
    state, now_ms = turn.state, turn.now.mono_ms
    written = 0
    while (due_ms := next_ms(state)) is not None and due_ms <= now_ms and written < _STEP_BYTES:
        before = len(turn.out.records)
        if state.wakes and state.wakes[0][0] <= now_ms:
            group = heappop(state.wakes)[2]
            group.wake_ms = NO_DEADLINE
            if isinstance(group, Group):
                _run_group(turn, group)
            else:
                consumer_deadlines.run(turn, group)
        elif state.sweeps:
            expiration.sweep(turn)
        else:
            expiration.start(turn)
        written += sum(_RECORD_BYTES + len(key) + len(value or b"") for key, value in turn.out.records[before:])


def _run_group(turn: Turn, group: Group) -> None:
    """Handle due deadlines, earliest first, and set the next wake-up. Each is rechecked, since it may have moved."""
    now_ms = turn.now.mono_ms
    for due_ms, kind, member_id in sorted(_due(group, now_ms), key=itemgetter(0)):
        if kind == _SESSION:
            member = group.members.get(member_id)
            if member is not None and member.deadline_ms == due_ms:
                removal.session_expired(turn, group, member)
        elif kind == _PENDING:
            if group.pending.get(member_id) == due_ms:
                removal.pending_expired(turn, group, member_id)
        elif kind == _JOIN:
            if group.state is PREPARING and group.join_deadline_ms == due_ms:
                rebalance.join_deadline(turn, group)
        elif kind == _TOPICS:
            if group.watch_ms == due_ms:
                unled.look(turn, group)
        elif group.sync_deadline_ms == due_ms:
            removal.sync_deadline(turn, group)
    if group.state is not DEAD:
        turn.state.arm(group, _earliest(group))


def _due(group: Group, now_ms: int) -> list[tuple[int, int, str]]:
    due = [(m.deadline_ms, _SESSION, m.member_id) for m in group.members.values() if m.deadline_ms <= now_ms]
    due += [(at_ms, _PENDING, member_id) for member_id, at_ms in group.pending.items() if at_ms <= now_ms]
    if group.join_deadline_ms <= now_ms:
        due.append((group.join_deadline_ms, _JOIN, ""))
    if group.sync_deadline_ms <= now_ms:
        due.append((group.sync_deadline_ms, _SYNC, ""))
    if group.watch_ms <= now_ms:
        due.append((group.watch_ms, _TOPICS, ""))
    return due


def _earliest(group: Group) -> int:
    sessions = min((m.deadline_ms for m in group.members.values()), default=NO_DEADLINE)
    pending = min(group.pending.values(), default=NO_DEADLINE)
    return min(sessions, pending, group.join_deadline_ms, group.sync_deadline_ms, group.watch_ms)
