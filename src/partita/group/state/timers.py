"""Deadlines of a group, and the requests that wait for an answer. Pure.

(Kafka: CoordinatorTimer and, before 4.0, the purgatories of DelayedJoin, DelayedSync and DelayedHeartbeat.)
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from partita.group.state.model import NO_DEADLINE, Group
from partita.group.state.shard import ConsumerTimers, ShardState, StreamsTimers


class Timer(NamedTuple):
    """Something that is waited for, the member that it is about, and the milliseconds left; None: no limit."""

    what: str
    member_id: str
    left_ms: int | None


def timers_of(state: ShardState, group_id: str, now_ms: int) -> list[Timer]:
    """All that the group waits for, the earliest first."""
    group, consumers, shares = state.groups.get(group_id), state.consumers.get(group_id), state.shares.get(group_id)
    streams = state.streams.get(group_id)
    found: list[tuple[str, str, int]] = []
    if group is not None:
        found += _of_classic(group)
    if consumers is not None:
        found += _of_consumers(consumers)
    if shares is not None:
        found += (("session ends", member_id, at_ms) for member_id, at_ms in shares.sessions.items())
    if streams is not None:
        found += _of_streams(streams)
    if found:
        found.append(("offsets are next looked through for expired ones", "", state.expiry_deadline_ms))
    found.sort(key=itemgetter(2))
    return [Timer(what, who, None if at_ms == NO_DEADLINE else at_ms - now_ms) for what, who, at_ms in found]


def _of_classic(group: Group) -> Iterator[tuple[str, str, int]]:
    for member in group.members.values():
        if member.join is not None or member.sync is not None:
            kind = "JoinGroup" if member.join is not None else "SyncGroup"
            yield f"{kind} waits for the others", member.member_id, NO_DEADLINE
        if member.deadline_ms != NO_DEADLINE:
            what = "a newcomer may wait for its first answer" if member.is_new else "session ends"
            yield what, member.member_id, member.deadline_ms
    for member_id, at_ms in group.pending.items():
        yield "id is forgotten if no join brings it", member_id, at_ms
    if group.join_deadline_ms != NO_DEADLINE:
        yield "join phase ends without those that are missing", "", group.join_deadline_ms
    if group.sync_deadline_ms != NO_DEADLINE:
        yield "members that have not synced are removed", "", group.sync_deadline_ms


def _of_consumers(timers: ConsumerTimers) -> Iterator[tuple[str, str, int]]:
    for what, deadlines in (
        ("session ends", timers.sessions),
        ("has to have joined again", timers.joins),
        ("has to have synced", timers.syncs),
    ):
        yield from ((what, member_id, at_ms) for member_id, at_ms in deadlines.items())
    for member_id, revocation in timers.revocations.items():
        yield "has to have given partitions up", member_id, revocation.deadline_ms


def _of_streams(timers: StreamsTimers) -> Iterator[tuple[str, str, int]]:
    yield from (("session ends", member_id, at_ms) for member_id, at_ms in timers.sessions.items())
    for member_id, revocation in timers.revocations.items():
        yield "has to have given tasks up", member_id, revocation.deadline_ms
    if timers.delayed_ms != NO_DEADLINE:
        yield "first assignment waits for more members", "", timers.delayed_ms
