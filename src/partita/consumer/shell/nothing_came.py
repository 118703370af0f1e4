"""Why a poll returned nothing, in words: for the log at level DEBUG."""

from __future__ import annotations

from partita.consumer.core import ConsumerCore
from partita.consumer.group.member import MemberState

_JOINING = {
    MemberState.UNJOINED: "not joined yet",
    MemberState.PREPARING_REBALANCE: "waiting for the answer to JoinGroup",
    MemberState.COMPLETING_REBALANCE: "waiting for the answer to SyncGroup",
    MemberState.UNSUBSCRIBED: "not joined yet",
    MemberState.JOINING: "waiting for the answer to the heartbeat that joins",
    MemberState.RECONCILING: "taking over the partitions that the group assigned",
    MemberState.FENCED: "thrown out of the group, about to join again",
    MemberState.STALE: "left the group because nothing polled, about to join again",
    MemberState.FATAL: "an error ended the membership; unsubscribe and subscribe to begin again",
}


def why_nothing_came(core: ConsumerCore) -> str:
    """The first thing that is missing on the way to records: coordinator, group, assignment, positions, data."""
    held = core.subscription.assignment
    if core.subscription.is_group and not held:
        if core.coordinator.node is None:
            return "the coordinator is not known yet"
        member = core.member
        state = _JOINING.get(member.state)
        return state if state is not None else f"no partition is assigned in generation {member.generation.id}"
    without = [str(tp) for tp, state in held.items() if not state.has_valid_position]
    waiting = [str(tp) for tp, state in held.items() if state.is_fetchable]
    paused = [str(tp) for tp, state in held.items() if state.is_paused]
    if waiting:
        return f"no records have arrived of {', '.join(waiting)}"
    if without:
        return f"no position is known yet for {', '.join(without)}"
    return f"paused: {', '.join(paused)}" if paused else "every partition is being revoked, or waits for a callback"
