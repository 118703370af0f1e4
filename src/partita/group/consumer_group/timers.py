"""Deadlines of KIP-848 members: sessions, time to give partitions up, time for classic members to rejoin and to sync.

(Kafka: scheduleConsumerGroupSessionTimeout, scheduleConsumerGroupRebalanceTimeout, -JoinTimeout, -SyncTimeout.)
"""

from __future__ import annotations

from partita.group.consumer_group.reconcile import UNREVOKED
from partita.group.records.consumer_group import ConsumerMember
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
    timeout_ms = session_timeout_ms(turn, group_id, member)
    turn.run_session(turn.state.consumers[group_id], member.member_id, timeout_ms, silent_ms=silent_ms)


def follow_state(turn: Turn, group_id: str, member: ConsumerMember) -> None:
    """Time what the member has to do next: revoke partitions.

    Classic deadlines end when a member continues with the new protocol under the same id.
    """
    timers = turn.state.consumers[group_id]
    if member.classic is None:
        timers.joins.pop(member.member_id, None)
        timers.syncs.pop(member.member_id, None)
    turn.time_revocation(timers, member, is_due=member.state is UNREVOKED)


def expect_join(turn: Turn, group_id: str, member: ConsumerMember) -> None:
    """Give a classic member its rebalance timeout to rejoin, counted from the first time it was asked to."""
    timers = turn.state.consumers[group_id]
    if member.member_id not in timers.joins:
        timers.joins[member.member_id] = turn.now.mono_ms + max(0, member.rebalance_timeout_ms)
        turn.state.arm(timers, timers.joins[member.member_id])


def expect_sync(turn: Turn, group_id: str, member: ConsumerMember) -> None:
    """Start the sync deadline of a classic member that has joined."""
    timers = turn.state.consumers[group_id]
    timers.joins.pop(member.member_id, None)
    timers.syncs[member.member_id] = turn.now.mono_ms + max(0, member.rebalance_timeout_ms)
    turn.state.arm(timers, timers.syncs[member.member_id])
