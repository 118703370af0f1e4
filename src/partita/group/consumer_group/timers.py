"""Deadlines of KIP-848 members: sessions, time to give partitions up, time for classic members to rejoin and to sync.

(Kafka: scheduleConsumerGroupSessionTimeout, scheduleConsumerGroupRebalanceTimeout, -JoinTimeout, -SyncTimeout.)
"""

from __future__ import annotations

from partita.group.records.consumer_group import ConsumerMember, MemberState
from partita.group.state.shard import Revocation
from partita.group.state.turn import Turn

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
"""Settings that can be overridden per group."""


def session_timeout_ms(turn: Turn, group_id: str, member: ConsumerMember) -> int:
    """Return the member's session timeout; a classic member brings its own."""
    if member.classic is not None:
        return member.classic.session_timeout_ms
    return turn.state.group_setting(group_id, SESSION_TIMEOUT, turn.state.config.group_consumer_session_timeout_ms)


def heartbeat_interval_ms(turn: Turn, group_id: str) -> int:
    """Return the interval in which members heartbeat."""
    config = turn.state.config
    return turn.state.group_setting(group_id, HEARTBEAT_INTERVAL, config.group_consumer_heartbeat_interval_ms)


def start_session(turn: Turn, group_id: str, member: ConsumerMember, *, silent_ms: int = 0) -> None:
    """Start the member's session, less `silent_ms`."""
    timers = turn.state.timers_of(group_id)
    deadline_ms = turn.now.mono_ms + max(0, session_timeout_ms(turn, group_id, member) - silent_ms)
    timers.sessions[member.member_id] = deadline_ms
    turn.state.arm(timers, deadline_ms)


def follow_state(turn: Turn, group_id: str, member: ConsumerMember) -> None:
    """Give a member with partitions to revoke its rebalance timeout for that; cancel the deadline of any other.

    Classic deadlines end when a member continues with the new protocol under the same id.
    """
    timers = turn.state.timers_of(group_id)
    if member.classic is None:
        timers.joins.pop(member.member_id, None)
        timers.syncs.pop(member.member_id, None)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        timers.revocations.pop(member.member_id, None)
        return
    running = timers.revocations.get(member.member_id)
    if running is None or running.epoch != member.epoch:
        deadline_ms = turn.now.mono_ms + max(0, member.rebalance_timeout_ms)
        timers.revocations[member.member_id] = Revocation(member.epoch, deadline_ms)
        turn.state.arm(timers, deadline_ms)


def expect_join(turn: Turn, group_id: str, member: ConsumerMember) -> None:
    """Give a classic member its rebalance timeout to rejoin, counted from the first time it was asked to."""
    timers = turn.state.timers_of(group_id)
    if member.member_id not in timers.joins:
        timers.joins[member.member_id] = turn.now.mono_ms + max(0, member.rebalance_timeout_ms)
        turn.state.arm(timers, timers.joins[member.member_id])


def expect_sync(turn: Turn, group_id: str, member: ConsumerMember) -> None:
    """Start the sync deadline of a classic member that has joined."""
    timers = turn.state.timers_of(group_id)
    timers.joins.pop(member.member_id, None)
    timers.syncs[member.member_id] = turn.now.mono_ms + max(0, member.rebalance_timeout_ms)
    turn.state.arm(timers, timers.syncs[member.member_id])
