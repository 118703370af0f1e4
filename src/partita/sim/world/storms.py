"""When faults come: one stream of events per kind, in storms with calms between."""

from __future__ import annotations

from collections.abc import Callable

from partita.sim.world.world import World

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
