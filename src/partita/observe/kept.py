"""Facts of groups, kept within bounds: what a command or a page explains. Pure."""

from __future__ import annotations

from partita.explain.facts import Assigned, Committed, CoordinatorLoaded, EndSeen, Fact, Partition, PartitionsCounted

COMMITS_MAX = 4
"""Of each partition between two generations: the first commit and the last three."""


class Kept:
    """The facts of groups, thinned: of commits, only those that begin or end something.

    `generations_max` bounds what is kept of each group, and `groups_max` how many groups there are; the one that has
    not rebalanced for longest goes first. Belongs to one thread.
    """

    def __init__(self, generations_max: int = 200, groups_max: int = 10_000) -> None:
        self._generations_max = generations_max
        self._groups_max = groups_max
        self._facts: dict[str, list[Fact]] = {}
        self._commits: dict[str, dict[Partition, list[Committed]]] = {}
        self.left_out = 0
        """Groups that were dropped for want of room."""

    @property
    def groups(self) -> list[str]:
        """The groups that something is known of."""
        return list(self._facts)

    def add(self, fact: Fact) -> None:
        """Keep a fact of one group; facts that concern all groups are not taken."""
        if isinstance(fact, EndSeen | PartitionsCounted | CoordinatorLoaded):
            return
        known = self._facts.get(fact.group)
        if known is None:
            self._make_room()
            known = self._facts[fact.group] = []
        if isinstance(fact, Committed):
            commits = self._commits.setdefault(fact.group, {}).setdefault(fact.partition, [])
            if len(commits) >= COMMITS_MAX:
                del commits[1]
            commits.append(fact)
            return
        if isinstance(fact, Assigned):
            self._facts[fact.group] = self._facts.pop(fact.group)  # the last to be dropped
            known += [commit for commits in self._commits.pop(fact.group, {}).values() for commit in commits]
        known.append(fact)
        if sum(isinstance(f, Assigned) for f in known) > self._generations_max:
            del known[: len(known) // 4]

    def _make_room(self) -> None:
        if len(self._facts) >= self._groups_max:
            oldest = next(iter(self._facts))
            del self._facts[oldest]
            self._commits.pop(oldest, None)
            self.left_out += 1

    def of(self, group: str) -> list[Fact]:
        """The facts of one group; empty if nothing is known of it."""
        waiting = [commit for commits in self._commits.get(group, {}).values() for commit in commits]
        return [*self._facts.get(group, ()), *waiting]
