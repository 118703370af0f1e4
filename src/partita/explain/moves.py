"""Partitions with another owner after a rebalance, and moves that balance did not require."""

from __future__ import annotations

from collections import Counter

from partita.explain.account import Move
from partita.explain.facts import Assigned, Member, Partition


def identity(member: Member) -> str:
    """Identity of a member across its member ids: a static member stays the same when its process is replaced."""
    return member.member_id if member.instance_id is None else f"static:{member.instance_id}"


def owners_of(assigned: Assigned | None) -> dict[Partition, Member]:
    """Owner of each partition in this generation."""
    members = () if assigned is None else assigned.members
    return {partition: member for member in members for partition in member.partitions}


def moves_between(before: Assigned | None, after: Assigned, names: dict[str, str]) -> tuple[tuple[Move, ...], int]:
    """The moves in order of partition, and how many partitions keep their owner.

    A partition that stays with a static member whose process was replaced is kept.
    """
    old, new = owners_of(before), owners_of(after)
    surplus = _surplus(before, after)
    moves, kept = [], 0
    for partition in sorted(old.keys() | new.keys()):
        was, now = old.get(partition), new.get(partition)
        if was is not None and now is not None and identity(was) == identity(now):
            kept += 1
            continue
        is_needed = was is None or now is None or surplus is None or identity(was) not in surplus
        if was is not None and not is_needed and surplus is not None and surplus[identity(was)] > 0:
            surplus[identity(was)] -= 1
            is_needed = True
        moves.append(Move(partition, _name(was, names), _name(now, names), is_needed))
    return tuple(moves), kept


def _name(member: Member | None, names: dict[str, str]) -> str:
    return "" if member is None else names.get(member.member_id, member.member_id)


def _surplus(before: Assigned | None, after: Assigned) -> dict[str, int] | None:
    """Partitions of each member of both generations above its present fair share.

    None if members subscribe to different topics, or it is not known to what: then every move counts as needed.
    """
    topics = {member.topics for member in after.members}
    if before is None or len(topics) != 1 or None in topics:
        return None
    staying = {identity(member) for member in after.members}
    had = Counter({identity(m): len(m.partitions) for m in before.members if identity(m) in staying})
    share, larger = divmod(len(owners_of(after)), max(len(after.members), 1))
    return {
        member: max(number - share - (1 if rank < larger else 0), 0)
        for rank, (member, number) in enumerate(had.most_common())
    }
