"""Deliveries to the members of a share group, and their answers: the rules of locks and deliveries.

SI1 no record is with two members under one lock; SI2 none is given more often than the limit, nor twice with one count
unless its state was loaded anew; SI3 none is delivered again that was accepted or rejected durably.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from partita.sim.rules.rule import must
from partita.sim.world.world import World

ACCEPT, RELEASE, REJECT = 1, 2, 3
Offset = tuple[int, int]
"""Partition and offset."""


class Delivery(NamedTuple):
    """One record that a member got, between the moments at which it asked and at which the answer came."""

    member: str
    number: int
    asked_ms: int
    came_ms: int
    unrest: int


@dataclass(slots=True)
class Fate:
    """The past of one record."""

    last: Delivery | None = None
    is_free: bool = True
    """Whether its last member may have given it up, or lost it."""
    asked: set[int] = field(default_factory=set)
    """The types of acknowledgements that were sent."""
    done_ms: int | None = None
    """When the answer came that it is accepted or rejected."""


class Ledger:
    """The records of one topic."""

    def __init__(self, world: World, limit: int, lock_ms: int) -> None:
        self._world = world
        self._limit = limit
        self._lock_ms = lock_ms
        self.fates: dict[Offset, Fate] = {}
        self.held: dict[str, set[Offset]] = {}
        self.unrest = 0
        """Counts crashes and moves, after which state may be loaded anew, and sessions may have ended."""

    def fate(self, where: Offset) -> Fate:
        """The past of a record."""
        return self.fates.setdefault(where, Fate())

    def given(self, member: str, where: Offset, count: int, asked_ms: int, unrest: int) -> None:
        """A member has got a record. `unrest` is that of the moment at which it asked."""
        fate, now_ms = self.fate(where), self._world.now.mono_ms
        text = f"record {where} for {member}, delivery {count}"
        must(1 <= count <= self._limit, "SI2", f"{text}: the limit is {self._limit}")
        must(fate.done_ms is None or asked_ms <= fate.done_ms, "SI3", f"{text}: it was done with at {fate.done_ms}")
        last = fate.last
        if last is not None and last.unrest == unrest == self.unrest:
            both = now_ms < last.asked_ms + self._lock_ms and last.came_ms < asked_ms + self._lock_ms
            must(fate.is_free or not both, "SI1", f"{text}: {last.member} holds it since {last.asked_ms} or later")
            must(last.number != count, "SI2", f"{text}: {last.member} had the same delivery")
        fate.last, fate.is_free = Delivery(member, count, asked_ms, now_ms, unrest), False
        self.held.setdefault(member, set()).add(where)

    def answers(self, member: str, wheres: Iterable[Offset], kind: int) -> None:
        """A member sends an acknowledgement."""
        for where in wheres:
            fate = self.fate(where)
            fate.asked.add(kind)
            fate.is_free = True
            self.held.get(member, set()).discard(where)

    def stored(self, wheres: Iterable[Offset], kind: int) -> None:
        """The answer came: the acknowledgement counts."""
        for where in wheres:
            if kind != RELEASE:
                self.fate(where).done_ms = self._world.now.mono_ms

    def session_ended(self, member: str) -> None:
        """A session of the member has ended, or may have: what it holds may be with others."""
        for where in self.held.pop(member, ()):
            self.fate(where).is_free = True

    def shaken(self) -> None:
        """The broker has crashed, or a partition has moved."""
        self.unrest += 1
