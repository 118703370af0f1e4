"""Sticky sharing when all members subscribe to the same topics: all members get the same number, or one more.

Members keep their partitions up to their quota; the rest is dealt to those below it. Linear in partitions but for
sorting. (Kafka: AbstractStickyAssignor.ConstrainedAssignmentBuilder.)
"""

from __future__ import annotations

from collections import deque

from partita.assignors.sticky_home import send_home
from partita.assignors.sticky_sharing import Shares, Sharing


def share_by_quota(sharing: Sharing) -> Shares:
    """Give every member floor or ceil of total / members; no member loses more than the quota demands."""
    if not sharing.claimed and not sharing.member_racks:
        count = len(sharing.members)
        return [list(range(member, sharing.total, count)) for member in range(count)]
    quotas = _Quotas(sharing)
    quotas.keep_owned()
    free = sharing.free_beside(quotas.shares)
    if sharing.member_racks:
        free = _deal_near(quotas, free)
    quotas.deal(free)
    if sharing.member_racks:
        send_home(sharing, quotas.shares)
    return quotas.shares


class _Quotas:
    """Who is below the quota, who may still take one more, and how many may have that one more."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self.low, self.extras = divmod(sharing.total, len(sharing.members))
        self.shares: Shares = []
        self.under: list[int] = []
        self.exact: list[int] = []

    def keep_owned(self) -> None:
        low = self.low
        for member, owned in enumerate(self.sharing.near_owned()):
            size = len(owned)
            if size < low:
                self.under.append(member)
            elif size > low and self.extras:
                self.extras -= 1
                owned = self._first(owned, low + 1)
            else:
                owned = self._first(owned, low)
                self.exact.append(member)
            self.shares.append(owned)

    def _first(self, owned: list[int], count: int) -> list[int]:
        if len(owned) <= count:
            return owned
        partitions = self.sharing.partitions
        return sorted(owned, key=lambda number: (partitions[number][1], number))[:count]

    def deal(self, free: list[int]) -> None:
        """Deal in a circle to the members below the quota, then one more each while there are any left."""
        shares, low = self.shares, self.low
        circle, exact = deque(self.under), deque(self.exact)
        for number in free:
            if circle:
                member = circle.popleft()
                share = shares[member]
                share.append(number)
                (circle if len(share) < low else exact).append(member)
            else:
                shares[exact.popleft()].append(number)


def _deal_near(quotas: _Quotas, free: list[int]) -> list[int]:
    """Give partitions to members on their racks, those with the fewest such members first; return the rest."""
    sharing, shares = quotas.sharing, quotas.shares
    population: dict[str, int] = {}
    for rack in filter(None, sharing.member_racks):
        population[rack] = population.get(rack, 0) + 1
    free.sort(key=lambda number: sum(population.get(rack, 0) for rack in sharing.partition_racks[number]))
    waiting = {rack: _on_rack(sharing, rack, quotas.under) for rack in population}
    content = {rack: _on_rack(sharing, rack, quotas.exact) for rack in population}
    rest = []
    for number in free:
        racks = sorted(sharing.partition_racks[number] & population.keys())
        member = _least_loaded((waiting[rack] for rack in racks if waiting[rack]), shares)
        if member is not None:
            shares[member].append(number)
            if len(shares[member]) == quotas.low:
                rack = sharing.member_racks[member] or ""
                waiting[rack].remove(member)
                content[rack].append(member)
                quotas.under.remove(member)
                quotas.exact.append(member)
            else:
                waiting[sharing.member_racks[member] or ""].rotate(-1)
            continue
        member = _least_loaded((content[rack] for rack in racks if content[rack]), shares) if quotas.extras else None
        if member is None:
            rest.append(number)
            continue
        shares[member].append(number)
        quotas.extras -= 1
        content[sharing.member_racks[member] or ""].remove(member)
        quotas.exact.remove(member)
    return sorted(rest)


def _on_rack(sharing: Sharing, rack: str, members: list[int]) -> deque[int]:
    return deque(member for member in members if sharing.member_racks[member] == rack)


def _least_loaded(circles: object, shares: Shares) -> int | None:
    heads = [circle[0] for circle in circles]  # type: ignore[attr-defined]  # a list of circles; typed as object for the compiler
    return min(heads, key=lambda member: (len(shares[member]), member)) if heads else None
