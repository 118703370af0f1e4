"""The faults of a simulation: how a plan draws them, when they come, and those that every workload has.

Rates differ from run to run and most kinds are absent from most runs, because an even mixture never shows much of one
fault with a little of another. Faults like to come at the very tick of a deadline, or beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

from partita.sim.world.network import Network
from partita.sim.world.world import Dice, World

EVERYWHERE = (
    "close_connection", "lose_requests", "lose_responses", "stall_connection", "cut_client", "kill_client",
)  # fmt: skip
"""Kinds that every workload has; their order decides what a seed draws."""


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a run: kinds, and the mean milliseconds between two of each. A workload adds the rest."""

    faults: tuple[tuple[str, int], ...]

    def lines(self) -> list[str]:
        """The plan as text, in two lines."""
        shown = [f"{f.name}={getattr(self, f.name)}" for f in fields(self) if f.name != "faults"]
        faults = " ".join(f"{kind}/{ms}ms" for kind, ms in self.faults) or "none"
        return [" ".join(shown), f"faults: {faults}"]


def draw_kinds(dice: Dice, kinds: Sequence[str]) -> list[str]:
    """Draw a few kinds of fault, in the order of their names."""
    return sorted(dice.sample(kinds, dice.choice((1, 2, 3, 4, 6))))


def draw_rates(dice: Dice, kinds: Sequence[str], means_ms: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Draw a rate for each kind."""
    return tuple((kind, dice.choice(means_ms)) for kind in kinds)


P = TypeVar("P", bound=FaultPlan)
STOP = "stop_machine"
"""The kind of fault that `with_stops` draws."""


def with_stops(plan: P, dice: Dice) -> P:
    """The plan, in a quarter of the runs with a machine that stands still now and then."""
    # Drawn when all else is: the seeds without it keep the histories that they had before there was this fault.
    kinds = dice.choice(((), (), (), (STOP,)))
    return replace(plan, faults=(*plan.faults, *draw_rates(dice, kinds, (3_000, 10_000))))


class Victim(Protocol):
    """The process of a client."""

    name: str
    is_paused: bool

    @property
    def is_over(self) -> bool:
        """Has it ended?"""
        ...

    def pause(self) -> None:
        """Stand still."""

    def resume(self) -> None:
        """Go on."""


V = TypeVar("V", bound=Victim)


class Played(Protocol[V]):
    """A simulation, as its faults see it."""

    world: World
    network: Network
    clients: list[V]


class Caused(NamedTuple):
    """A fault that was caused: when, its number in the run, what it was."""

    ms: int
    number: int
    what: str
    stood_ms: int = 0
    """How long everything stood still by it."""


class Faults(Generic[V]):
    """One method for each kind; a workload derives from it and adds its own. Stalls last up to `stall_ms_max`."""

    def __init__(self, simulation: Played[V], stall_ms_max: int) -> None:
        self._played = simulation
        self._world = simulation.world
        self._network = simulation.network
        self._stall_ms_max = stall_ms_max
        self.caused: list[Caused] = []
        self.kept: frozenset[int] | None = None
        """The numbers of the faults that are caused; None: all."""
        self._number = 0

    def _cause(self, kind: str) -> None:
        self._number += 1
        if self.kept is None or self._number in self.kept:
            before = len(self.caused)
            getattr(self, kind)()
            if len(self.caused) == before:
                self.caused.append(Caused(self._world.ms, self._number, f"{kind}: there was nothing to do it to"))

    def _saw(self, what: str, stood_ms: int = 0) -> None:
        self.caused.append(Caused(self._world.ms, self._number, what, stood_ms))
        self._world.saw("!", "fault", what)

    def _client(self) -> V | None:
        live = [c for c in self._played.clients if not c.is_over]
        return self._world.dice.choice(live) if live else None

    def _pause(self, ms_max: int) -> tuple[V, int] | None:
        """Let a process stand still for a while; return it and for how long."""
        client = self._client()
        if client is None or client.is_paused:
            return None
        ms = self._world.dice.between(100, ms_max)
        self._saw(f"pause {client.name} for {ms} ms")
        client.pause()
        self._world.after(ms, client.resume)
        return client, ms

    def cut_client(self) -> None:
        """Cut a client off from the network for a while."""
        if client := self._client():
            ms = self._world.dice.between(100, self._stall_ms_max)
            self._saw(f"cut {client.name} off for {ms} ms")
            self._network.cut[client.name] = None
            self._world.after(ms, self._network.cut.pop, client.name, None)

    def stop_machine(self) -> None:
        """The broker and all clients stand still together for a while, as in a virtual machine that is suspended."""
        ms = self._world.dice.between(100, self._stall_ms_max)
        self._saw(f"everything stands still for {ms} ms", ms)
        self._world.stand_still(ms)

    def close_connection(self) -> None:
        """The broker closes a connection."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            self._saw(f"close a connection of {link.caller.name}")
            self._network.close_by_broker(link)

    def lose_requests(self) -> None:
        """A connection's requests get lost from now on."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            self._saw(f"lose requests of {link.caller.name}")
            link.up_is_lost = True

    def lose_responses(self) -> None:
        """A connection's responses get lost from now on."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            self._saw(f"lose responses to {link.caller.name}")
            link.down_is_lost = True

    def stall_connection(self) -> None:
        """A connection stands still for a while."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            ms = self._world.dice.between(1, self._stall_ms_max)
            self._saw(f"stall a connection of {link.caller.name} for {ms} ms")
            self._network.stall(link, ms)


_COINCIDENCES = 0.3
_NEAR_MS = 10_000
_CYCLE_MS, _STORM_MS = 30_000, 18_000
"""Storms and calms take turns: a history that never gets anywhere shows little."""


class Storms:
    """Calls `cause(kind)` for each fault until `is_over`.

    Faults often come at the next deadline of their victim, give or take a tick: `next_deadline_ms()` returns it on the
    monotonic clock, None if there is none.
    """

    def __init__(
        self,
        world: World,
        faults: tuple[tuple[str, int], ...],
        cause: Callable[[str], object],
        next_deadline_ms: Callable[[], int | None],
    ) -> None:
        self.is_over = False
        self._world = world
        self._act = cause
        self._next_deadline_ms = next_deadline_ms
        for kind, mean_ms in faults:
            self._schedule(kind, mean_ms)

    def _schedule(self, kind: str, mean_ms: int) -> None:
        wait = min(int(self._world.dice.interval(mean_ms)), 60_000)
        self._world.after(wait, self._come, kind, mean_ms)

    def _come(self, kind: str, mean_ms: int) -> None:
        """The time has come, or it waits for the next deadline."""
        if self.is_over:
            return
        due = self._next_deadline_ms()
        near = due is not None and due - self._world.now.mono_ms < _NEAR_MS
        if near and due is not None and self._world.dice.chance(_COINCIDENCES):
            self._world.at(due + self._world.dice.between(-1, 1), self._cause, kind)
        else:
            self._cause(kind)
        self._schedule(kind, mean_ms)

    def _cause(self, kind: str) -> None:
        if not self.is_over and self._world.ms % _CYCLE_MS < _STORM_MS:
            self._act(kind)
