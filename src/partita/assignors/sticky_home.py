"""The last step of sticky sharing: undo moves that neither balance nor racks need.

A partition away from its rightful owner comes home in exchange for a guest, one that the owner holds without having
owned it, or for nothing where its holder has one partition more. The loads stay the same, so balance does too. (Kafka
has no such step.)
"""

from __future__ import annotations

from partita.assignors.sticky_sharing import Shares, Sharing


def send_home(sharing: Sharing, shares: Shares, topics_of: list[set[int]] | None = None) -> None:
    """Bring partitions home, in place. `topics_of`: the topics that each member may own, if not all."""
    home = sharing.homes(topics_of)
    away = [
        (number, holder) for holder, share in enumerate(shares) for number in share if home[number] not in (holder, -1)
    ]
    for number, holder in sorted(away):
        owner = home[number]
        if number not in shares[holder]:
            holder = next(m for m, share in enumerate(shares) if number in share)
        if holder == owner:
            continue
        guests = [g for g in shares[owner] if home[g] != owner and _may(holder, g, sharing, topics_of)]
        costs = [
            (_cost(sharing, number, holder, owner) + _cost(sharing, g, owner, holder), home[g] != holder, g)
            for g in guests
        ]
        best = min(costs, default=None)
        if best is not None and best[0] <= 0:
            shares[owner].remove(best[2])
            shares[holder].append(best[2])
        elif (
            topics_of is not None
            or len(shares[holder]) <= len(shares[owner])
            or _cost(sharing, number, holder, owner) > 0
        ):
            continue
        shares[holder].remove(number)
        shares[owner].append(number)


def _may(member: int, number: int, sharing: Sharing, topics_of: list[set[int]] | None) -> bool:
    return topics_of is None or sharing.topic_of(number) in topics_of[member]


def _cost(sharing: Sharing, number: int, giver: int, taker: int) -> int:
    """Number of near replicas that the move loses: 1, 0, or -1 for one won."""
    return sharing.is_far(taker, number) - sharing.is_far(giver, number)
