"""Deadlines of streams groups, the settings of an assignment, and the offsets that members report.

(Kafka: scheduleStreamsGroupSessionTimeout, scheduleStreamsGroupRebalanceTimeout, streamsGroupAssignmentConfigs)

Deviation: Partita keeps the first 10,000 task offsets that a member reports, where Kafka keeps all.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.group.consumer_group.errors import Refused, invalid
from partita.group.records.streams_group import StreamsMember, StreamsMemberState, Task
from partita.group.state.model import NO_DEADLINE
from partita.group.state.settings import in_force
from partita.group.state.shard import StreamsTimers, TaskOffsets
from partita.group.state.turn import Turn
from partita.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsTaskOffset

NO_OFFSETS = TaskOffsets({}, {})
OFFSETS_MOST = 10_000
"""Task offsets of a member that are kept; the rest of its report does not count."""
SESSION = "streams.session.timeout.ms"
STANDBYS, TAGS = "num.standby.replicas", "rack.aware.assignment.tags"


def assignment_configs(turn: Turn, group_id: str) -> tuple[tuple[str, str], ...]:
    """Return the settings that an assignment depends on, as the group's record keeps them."""
    own = turn.state.group_settings.get(group_id, {}).get("streams.rack.aware.assignment.tags")
    tags = ",".join(turn.state.config.group_streams_rack_aware_assignment_tags) if own is None else str(own)
    configs = ((STANDBYS, str(in_force(turn, group_id, "streams.num.standby.replicas"))),)
    return (*configs, (TAGS, tags)) if tags else configs


def start_session(turn: Turn, group_id: str, member: StreamsMember, *, silent_ms: int = 0) -> None:
    """Start the member's session, less `silent_ms`."""
    timeout_ms = in_force(turn, group_id, SESSION)
    turn.run_session(turn.state.streams[group_id], member.member_id, timeout_ms, silent_ms=silent_ms)


def follow_state(turn: Turn, group_id: str, member: StreamsMember) -> None:
    """Time what the member has to do next: revoke tasks."""
    is_due = member.state is StreamsMemberState.UNREVOKED
    turn.time_revocation(turn.state.streams[group_id], member, is_due=is_due)


def delay(turn: Turn, soft: StreamsTimers, delay_ms: int) -> None:
    """Let the first target wait for more members, unless it waits already."""
    if delay_ms > 0 and soft.delayed_ms == NO_DEADLINE:
        soft.delayed_ms = turn.now.mono_ms + delay_ms
        turn.state.arm(soft, soft.delayed_ms)


def offsets_with(soft: StreamsTimers, wire: StreamsGroupHeartbeatRequest) -> TaskOffsets | Refused:
    """Return the member's changelog offsets after its heartbeat; null in it leaves what is known."""
    known = soft.offsets.get(wire.member_id, NO_OFFSETS)
    now = known.now if wire.task_offsets is None else _by_task(wire.task_offsets)
    end = known.end if wire.task_end_offsets is None else _by_task(wire.task_end_offsets)
    if isinstance(now, Refused):
        return now
    return end if isinstance(end, Refused) else TaskOffsets(now, end)


def _by_task(listed: Sequence[StreamsTaskOffset]) -> dict[Task, int] | Refused:
    found: dict[Task, int] = {}
    for each in listed[:OFFSETS_MOST]:
        if (each.subtopology_id, each.partition) in found:
            return invalid(
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} and partition "
                f"{each.partition}."
            )
        found[each.subtopology_id, each.partition] = each.offset
    return found
