"""Fences KIP-848 members whose deadline has passed.

(Kafka: scheduleConsumerGroupSessionTimeout and its three sisters, in GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from partita.group.consumer_group.leaving import fence
from partita.group.state.consumers import ConsumerTimers
from partita.group.state.turn import Turn
from partita.wording import What

AT_ONCE = 250
"""Deadlines of a group handled per call, so that one batch can hold the records; the rest is due at once again."""


def run(turn: Turn, timers: ConsumerTimers) -> None:
    """Handle the due deadlines of this group, earliest first and up to `AT_ONCE`, and set the next wake-up."""
    for _, member_id, what in sorted(_due(timers, turn.now.mono_ms), key=itemgetter(0))[:AT_ONCE]:
        group = turn.state.consumer_group(timers.group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            timers.forget(member_id)
        elif what == What.DID_NOT_REVOKE and timers.revocations[member_id].epoch != member.epoch:
            del timers.revocations[member_id]
        else:
            fence(turn, group, [member], what)
    if turn.state.consumers.get(timers.group_id) is timers:
        turn.state.arm(timers, timers.earliest())


def _due(timers: ConsumerTimers, now_ms: int) -> Iterator[tuple[int, str, What]]:
    for deadlines, what in (
        (timers.sessions, What.EXPIRED),
        (timers.joins, What.DID_NOT_REJOIN),
        (timers.syncs, What.DID_NOT_SYNC),
    ):
        yield from ((due_ms, member_id, what) for member_id, due_ms in deadlines.items() if due_ms <= now_ms)
    for member_id, revocation in timers.revocations.items():
        if revocation.deadline_ms <= now_ms:
            yield revocation.deadline_ms, member_id, What.DID_NOT_REVOKE
