"""The events of one scenario on one design: facts with their moments, in seconds of one monotonic clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """An event that a member reported."""

    at_s: float
    member: str
    event: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """A member read a partition from one moment to another."""

    member: str
    partition: int
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame that a tap saw: whose it was, and its name."""

    at_s: float
    member: str
    name: str


@dataclass(frozen=True, slots=True)
class Committed:
    """An offset that was accepted."""

    at_s: float
    partition: int
    offset: int


@dataclass(slots=True)
class Journal:
    """One run. `live` are the members that should read at the end; `paused` are spans in which a process stood still.

    `commits` are in the order in which they took effect. `cause_s` is when the trouble began, `healed_s` when its cause
    was over, `end_s` when watching ended.
    """

    design: str
    scenario: str
    partitions: int
    session_ms: int
    facts: list[Fact] = field(default_factory=list)
    frames: list[Seen] = field(default_factory=list)
    commits: list[Committed] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)
    paused: list[Span] = field(default_factory=list)
    gone: dict[str, float] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    start_s: float = 0.0
    cause_s: float = 0.0
    healed_s: float = 0.0
    end_s: float = 0.0
    late_s: float = 0.0
    """How late the machine woke a thread that wanted to run: its processes stood still for about so long."""

    def spans(self) -> list[Span]:
        """Return who read which partition when, by the members' facts; a process gone or paused reads nothing."""
        open_since: dict[tuple[str, int], float] = {}
        found: list[Span] = []
        told = (fact for fact in self.facts if fact.event == "reading" and fact.at_s <= self.end_s)
        for fact in sorted(told, key=lambda fact: fact.at_s):
            now = set(fact.facts["partitions"])
            for member, partition in list(open_since):
                if member == fact.member and partition not in now:
                    found.append(Span(member, partition, open_since.pop((member, partition)), fact.at_s))
            for partition in now:
                open_since.setdefault((fact.member, partition), fact.at_s)
        found += [Span(m, p, since, self.gone.get(m, self.end_s)) for (m, p), since in open_since.items()]
        cut = [piece for span in found for piece in self._without_pauses(span)]
        return sorted((s for s in cut if s.to_s > s.from_s), key=lambda s: (s.partition, s.from_s, s.member))

    def _without_pauses(self, span: Span) -> Iterator[Span]:
        gone_s = self.gone.get(span.member, span.to_s)
        from_s, to_s = span.from_s, min(span.to_s, gone_s)
        for pause in sorted((p for p in self.paused if p.member == span.member), key=lambda p: p.from_s):
            if pause.from_s < to_s and pause.to_s > from_s:
                yield Span(span.member, span.partition, from_s, pause.from_s)
                from_s = pause.to_s
        yield Span(span.member, span.partition, from_s, to_s)
