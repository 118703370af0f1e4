"""Starts the deadlines of loaded KIP-848 groups, and reports the members' silences at unload.

(Kafka: GroupMetadataManager.onLoaded.)
"""

from __future__ import annotations

from collections.abc import Mapping

from partita.group.consumer_group import timers
from partita.group.state.turn import Turn


def resume(turn: Turn, silences: Mapping[tuple[str, str], int]) -> None:
    """Give each member a full session less the known silence, and its rebalance timeout if it has to revoke."""
    for group_id, group in turn.state.hard.consumer_groups.items():
        turn.state.consumers[group_id]  # made, so that the group counts
        for member in group.members.values():
            timers.start_session(turn, group_id, member, silent_ms=silences.get((group_id, member.member_id), 0))
            timers.follow_state(turn, group_id, member)


def silences(turn: Turn) -> dict[tuple[str, str], int]:
    """Return for how many milliseconds each member was silent, by group id and member id."""
    found: dict[tuple[str, str], int] = {}
    for group_id, running in turn.state.consumers.items():
        group = turn.state.consumer_group(group_id)
        for member_id, deadline_ms in running.sessions.items():
            member = None if group is None else group.members.get(member_id)
            if member is not None:
                started_ms = deadline_ms - timers.session_timeout_ms(turn, group_id, member)
                found[group_id, member_id] = turn.now.mono_ms - started_ms
    return found
