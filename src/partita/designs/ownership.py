"""Readers of each partition at a moment, from the members' facts so far. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from partita.designs.journal import Fact


@dataclass(slots=True)
class Seen:
    """The known state of one member. `heard_s` is when its last fact came; None: nothing so far."""

    pid: int
    reads: frozenset[int] = frozenset()
    records: int = 0
    failed: int = 0
    heard_s: float | None = None
    is_dead: bool = False


class Ownership:
    """The members of one group by name. `take` facts in their order; each returns the changes as lines of text."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.members: dict[str, Seen] = {}
        self._told = ""

    def add(self, member: str, pid: int) -> None:
        """Add a member that runs as process `pid`."""
        self.members[member] = Seen(pid)

    def died(self, member: str) -> list[str]:
        """Record that the process of a member ended: it reads nothing any more."""
        seen = self.members[member]
        if seen.is_dead:
            return []
        seen.is_dead, seen.reads = True, frozenset()
        return [f"{member} is dead", *self._whole()]

    def take(self, facts: Iterable[Fact]) -> list[str]:
        """Learn facts of members."""
        lines = []
        for fact in facts:
            seen = self.members.get(fact.member)
            if seen is None or seen.is_dead:
                continue
            seen.heard_s = fact.at_s
            if fact.event == "read":
                seen.records += sum(end - first for _, first, end in fact.facts["ranges"])
            elif fact.event == "failed":
                seen.failed += 1
                lines.append(f"{fact.member} fails: {fact.facts['reason']}")
            elif fact.event == "gave_up":
                lines.append(f"{fact.member} gave up: it stays in the group and reads nothing")
            elif fact.event == "reading":
                now = frozenset(fact.facts["partitions"])
                if now != seen.reads:
                    seen.reads = now
                    lines += [f"{fact.member} reads {listed(now)}", *self._whole()]
        return lines

    def is_known(self) -> bool:
        """Whether each member that is not dead has been heard."""
        return all(seen.is_dead or seen.heard_s is not None for seen in self.members.values())

    def unread(self) -> list[int]:
        """Return the partitions without a reader."""
        read = frozenset().union(*(seen.reads for seen in self.members.values()))
        return [number for number in range(self.partitions) if number not in read]

    def two_readers(self) -> dict[int, list[str]]:
        """Return partitions that more than one member reads, with the members."""
        readers: dict[int, list[str]] = defaultdict(list)
        for name, seen in self.members.items():
            for number in seen.reads:
                readers[number].append(name)
        return {number: names for number, names in sorted(readers.items()) if len(names) > 1}

    def summary(self) -> str:
        """One sentence about all partitions."""
        unread, doubled = self.unread(), self.two_readers()
        parts = [f"nobody reads {listed(unread)}"] if unread else []
        parts += [f"{' and '.join(names)} both read {number}" for number, names in doubled.items()]
        return "; ".join(parts) or f"each of the {self.partitions} partitions has one reader"

    def _whole(self) -> list[str]:
        """Return the summary, if it has changed."""
        before, self._told = self._told, self.summary()
        return [f"  {self._told}"] if self._told != before else []


def listed(numbers: Iterable[int]) -> str:
    """Return partition numbers as people write them: `0-3, 7`; `nothing` if there are none."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) or "nothing"
