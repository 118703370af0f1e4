"""Make the plan of a reset: check that the group is idle, ask for the offsets the target needs, plan each partition.

Must not write anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.admin.groups import INACTIVE_STATES, committed_offsets, describe_group
from partita.admin.offsets import TopicPartition, list_offsets, timestamp_of
from partita.admin.reset import Kind, Known, Target, plan_move
from partita.admin.results import FoundOffset, ResetPlan
from partita.admin.topics import describe_topics
from partita.errors import GroupIdNotFoundError, NonEmptyGroupError
from partita.net.cluster import Cluster


async def make_plan(
    cluster: Cluster, group_id: str, target: Target, partitions: Iterable[TopicPartition | str] | None
) -> ResetPlan:
    """Return the plan. Raises NonEmptyGroupError while the group has members, ValueError if it would be empty."""
    state = await _idle_state(cluster, group_id)
    committed = {(c.topic, c.partition): c.offset for c in await committed_offsets(cluster, group_id)}
    chosen = await _chosen(cluster, target, partitions, committed)
    if not chosen:
        raise ValueError(f"group {group_id!r} has committed nothing; name topics to reset")
    starts = await list_offsets(cluster, dict.fromkeys(chosen, timestamp_of("earliest")))
    ends = await list_offsets(cluster, dict.fromkeys(chosen, timestamp_of("latest")))
    found: dict[TopicPartition, FoundOffset] = {}
    if target.kind is Kind.TIME:
        found = await list_offsets(cluster, dict.fromkeys(chosen, max(0, target.value)))
    moves = [
        plan_move(key, target, Known(committed.get(key), starts[key].offset, ends[key].offset, _at(found.get(key))))
        for key in chosen
    ]
    return ResetPlan(group_id, state, moves)


async def _idle_state(cluster: Cluster, group_id: str) -> str:
    try:
        state = (await describe_group(cluster, group_id)).state
    except GroupIdNotFoundError:
        return "Dead"
    if state not in INACTIVE_STATES:
        raise NonEmptyGroupError(
            f"offsets can only be reset while a group has no members; {group_id!r} is {state}: stop its members first"
        )
    return state


async def _chosen(
    cluster: Cluster,
    target: Target,
    partitions: Iterable[TopicPartition | str] | None,
    committed: Mapping[TopicPartition, int],
) -> list[TopicPartition]:
    if partitions is None:
        return sorted(target.table if target.kind is Kind.TABLE else committed)
    chosen: set[TopicPartition] = set()
    for wanted in partitions:
        if isinstance(wanted, str):
            (topic,) = await describe_topics(cluster, [wanted])
            chosen |= {(wanted, part.partition) for part in topic.partitions}
        else:
            chosen.add(wanted)
    return sorted(chosen)


def _at(found: FoundOffset | None) -> int | None:
    return None if found is None or found.offset < 0 else found.offset
