"""Settings and sessions of share group members. (Kafka: scheduleShareGroupSessionTimeout)"""

from __future__ import annotations

from partita.group.state.turn import Turn


def session_timeout_ms(turn: Turn, group_id: str) -> int:
    """Return how long a member may be silent."""
    config = turn.state.config
    own = turn.state.group_setting(group_id, "share.session.timeout.ms", config.group_share_session_timeout_ms)
    low, high = config.group_share_min_session_timeout_ms, config.group_share_max_session_timeout_ms
    return max(low, min(high, own))


def heartbeat_interval_ms(turn: Turn, group_id: str) -> int:
    """Return the interval in which members heartbeat."""
    config = turn.state.config
    own = turn.state.group_setting(group_id, "share.heartbeat.interval.ms", config.group_share_heartbeat_interval_ms)
    low, high = config.group_share_min_heartbeat_interval_ms, config.group_share_max_heartbeat_interval_ms
    return max(low, min(high, own))


def assignment_interval_ms(turn: Turn, group_id: str) -> int:
    """Return the least time between two targets."""
    config = turn.state.config
    own = turn.state.group_setting(group_id, "share.assignment.interval.ms", config.group_share_assignment_interval_ms)
    low, high = config.group_share_min_assignment_interval_ms, config.group_share_max_assignment_interval_ms
    return max(low, min(high, own))


def start_session(turn: Turn, group_id: str, member_id: str) -> None:
    """Start the member's session anew."""
    timers = turn.state.share_timers_of(group_id)
    deadline_ms = turn.now.mono_ms + session_timeout_ms(turn, group_id)
    timers.sessions[member_id] = deadline_ms
    turn.state.arm(timers, deadline_ms)
