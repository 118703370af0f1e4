"""Facts of groups, kept within bounds: the basis of a command's or a page's explanation. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from partita.explain.facts import (
    Assigned,
    BeginSeen,
    Committed,
    CoordinatorLoaded,
    EndSeen,
    Fact,
    Forgotten,
    Partition,
    PartitionsCounted,
    Refused,
    Replaced,
)
from partita.explain.generations import PACED_COMMITS, pace_of
from partita.group import partition_for

COMMITS_MAX = 4
"""Of each partition between two generations: the first commit and the last three."""
OF_ALL_MAX = 1_000
"""So many of the last changes of topics and loads of coordinators are kept, and so many refusals."""


class _Commits:
    """Commits of one partition since the last generation: a few of them, and the pace of the last ones."""

    __slots__ = ("kept", "times_ms")

    def __init__(self) -> None:
        self.kept: list[Committed] = []
        self.times_ms: deque[int] = deque(maxlen=PACED_COMMITS)

    def add(self, commit: Committed) -> None:
        if len(self.kept) >= COMMITS_MAX:
            del self.kept[1]
        self.kept.append(commit)
        self.times_ms.append(commit.at_ms)

    def facts(self) -> Iterator[Committed]:
        # The gap that the dropped ones leave is as long as the generation: the pace goes along as a figure.
        yield from self.kept[:-1]
        yield replace(self.kept[-1], pace_ms=pace_of(tuple(self.times_ms)))


class Kept:
    """The facts of groups, thinned: of commits, only those that begin or end something, and their pace.

    `generations_max` bounds what is kept of each group, and `groups_max` how many groups there are; the one that has
    not rebalanced for longest goes first. Belongs to one thread.
    """

    def __init__(self, generations_max: int = 200, groups_max: int = 10_000) -> None:
        self._generations_max = generations_max
        self._groups_max = groups_max
        self._facts: dict[str, list[Fact]] = {}
        self._commits: dict[str, dict[Partition, _Commits]] = {}
        self._refused: deque[Refused] = deque(maxlen=OF_ALL_MAX)
        self._of_all: deque[PartitionsCounted | CoordinatorLoaded] = deque(maxlen=OF_ALL_MAX)
        self._rebalanced: dict[str, int] = {}
        self.left_out = 0
        """Groups that were dropped for want of room."""

    @property
    def groups(self) -> list[str]:
        """Groups with recorded history."""
        return list(self._facts)

    def add(self, fact: Fact) -> None:
        """Keep a fact; begins and ends of logs are not taken."""
        match fact:
            case PartitionsCounted() | CoordinatorLoaded():
                self._of_all.append(fact)
            case EndSeen() | BeginSeen():
                pass
            case Refused():
                self._refused.append(fact)
            case Assigned() | Replaced() | Committed() | Forgotten():
                self._add(fact)

    def _add(self, fact: Assigned | Replaced | Committed | Forgotten) -> None:
        known = self._facts.get(fact.group)
        if known is None:
            self._make_room()
            known = self._facts[fact.group] = []
        if isinstance(fact, Committed):
            self._commits.setdefault(fact.group, {}).setdefault(fact.partition, _Commits()).add(fact)
            return
        if isinstance(fact, Assigned):
            self._facts[fact.group] = self._facts.pop(fact.group)  # the last to be dropped
            known += self._waiting(fact.group)
            self._commits.pop(fact.group, None)
            self._rebalanced[fact.group] = fact.at_ms
        known.append(fact)
        if sum(isinstance(f, Assigned) for f in known) > self._generations_max:
            del known[: len(known) // 4]

    def take_rebalanced(self) -> dict[str, int]:
        """The groups with a generation that came since the last call, and the time of the last one."""
        taken, self._rebalanced = self._rebalanced, {}
        return taken

    def _make_room(self) -> None:
        if len(self._facts) >= self._groups_max:
            oldest = next(iter(self._facts))
            del self._facts[oldest]
            self._commits.pop(oldest, None)
            self.left_out += 1

    def _waiting(self, group: str) -> Iterator[Committed]:
        for commits in self._commits.get(group, {}).values():
            yield from commits.facts()

    def of(self, group: str) -> list[Fact]:
        """The facts of one group, of topics, and of loads that concern it; empty if nothing is known of the group."""
        known = self._facts.get(group)
        refused = [fact for fact in self._refused if fact.group == group]
        if known is None:
            return list(refused)
        return [*known, *self._waiting(group), *self._loads_and_topics(group), *refused]

    def _loads_and_topics(self, group: str) -> Iterator[Fact]:
        for fact in self._of_all:
            if isinstance(fact, PartitionsCounted):
                yield fact
            else:
                partition, partitions = fact.shard
                if partitions and partition_for(group, partitions) == partition:
                    yield fact
