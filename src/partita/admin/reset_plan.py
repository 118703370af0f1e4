"""Make the plan of a reset: check that the group is idle, ask for the offsets the target needs, plan each partition.

Only `apply_reset` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.admin import share_groups
from partita.admin.asking import Connected
from partita.admin.groups import INACTIVE_STATES, alter_group_offsets, describe_group, group_offsets
from partita.admin.offsets import TopicPartition, list_offsets
from partita.admin.reset import Kind, Known, Target, plan_move
from partita.admin.results import FoundOffset, ResetPlan
from partita.admin.topics import describe_topics
from partita.errors import GroupIdNotFoundError, NonEmptyGroupError


async def plan_reset(
    self: Connected, group_id: str, target: Target, partitions: Iterable[TopicPartition | str] | None = None
) -> ResetPlan:
    """Return the changes that `apply_reset` would make, without making them.

    `partitions` are (topic, partition) pairs or whole topics; None means all the group has committed. Raises
    NonEmptyGroupError while the group has members.
    """
    if not isinstance(target, Target):
        raise TypeError(f"a target is made by Target, such as Target.earliest(), and not {target!r}")
    state, kind = await _idle_group(self, group_id)
    if kind == share_groups.SHARE:
        shared = await share_groups.offsets(self.cluster, group_id)
        committed = {key: each.start for key, each in shared.items() if each.start is not None}
    else:
        committed = {(c.topic, c.partition): c.offset for c in await group_offsets(self, group_id)}
    chosen = await _chosen(self, target, partitions, committed)
    if not chosen:
        raise ValueError(f"group {group_id!r} has committed nothing; name topics to reset")
    starts = await list_offsets(self, dict.fromkeys(chosen, "earliest"))
    ends = await list_offsets(self, dict.fromkeys(chosen, "latest"))
    found: dict[TopicPartition, FoundOffset] = {}
    if target.kind is Kind.TIME:
        found = await list_offsets(self, dict.fromkeys(chosen, max(0, target.value)))
    moves = [
        plan_move(key, target, Known(committed.get(key), starts[key].offset, ends[key].offset, _at(found.get(key))))
        for key in chosen
    ]
    return ResetPlan(group_id, state, moves, kind)


async def apply_reset(self: Connected, plan: ResetPlan) -> None:
    """Commit the offsets of a plan, or move a share group's start offsets.

    Raises UnknownMemberIdError if a member has joined since it was made, NonEmptyGroupError in a share group.
    """
    new = {(move.topic, move.partition): move.after for move in plan.moves}
    if plan.type == share_groups.SHARE:
        await share_groups.alter(self.cluster, plan.group_id, new)
    else:
        await alter_group_offsets(self, plan.group_id, new)


async def _idle_group(admin: Connected, group_id: str) -> tuple[str, str]:
    """Return state and type."""
    try:
        group = await describe_group(admin, group_id)
    except GroupIdNotFoundError:
        return "Dead", "classic"
    if group.state not in INACTIVE_STATES:
        raise NonEmptyGroupError(
            f"offsets can only be reset while a group has no members; {group_id!r} is {group.state}: "
            "stop its members first"
        )
    return group.state, group.type


async def _chosen(
    admin: Connected,
    target: Target,
    partitions: Iterable[TopicPartition | str] | None,
    committed: Mapping[TopicPartition, int],
) -> list[TopicPartition]:
    if partitions is None:
        return sorted(target.table if target.kind is Kind.TABLE else committed)
    chosen: set[TopicPartition] = set()
    for wanted in partitions:
        if isinstance(wanted, str):
            (topic,) = await describe_topics(admin, wanted)
            chosen |= {(wanted, part.partition) for part in topic.partitions}
        else:
            chosen.add(wanted)
    return sorted(chosen)


def _at(found: FoundOffset | None) -> int | None:
    return None if found is None or found.offset < 0 else found.offset
