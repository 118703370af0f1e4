"""Garbage collection in a broker's process, and that its requests leave none."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from partita.broker.garbage import WHOLE_SECONDS_MIN, WHOLE_SHARE, GarbageCollection
from support.broker import cycles


@pytest.fixture
def python_own_schedule() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Later:
    """A loop that notes when it is to call what."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    def call_later(self, delay: float, callback: object) -> None:
        self.delays.append(delay)


@pytest.mark.usefixtures("python_own_schedule")
def test_everything_is_looked_at_the_more_rarely_the_longer_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """H34: a collection of everything holds up whoever asks."""
    now = iter([0.0, 0.001, 10.0, 10.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    loop = Later()
    collection = GarbageCollection(loop)  # type: ignore[arg-type]  # all it asks of a loop
    collection.start()
    assert gc.get_threshold()[2] > 1_000_000
    collection.collect()
    collection.collect()
    assert loop.delays == [WHOLE_SECONDS_MIN, WHOLE_SECONDS_MIN, pytest.approx(0.5 * WHOLE_SHARE)]


def test_requests_leave_no_reference_cycles() -> None:
    """So nothing piles up between two collections of everything: produce, fetch, long polls, groups, large requests."""
    done = subprocess.run([sys.executable, cycles.__file__], capture_output=True, text=True, timeout=60, check=True)
    left = json.loads(done.stdout)
    assert sum(left.values()) < cycles.ROUNDS, f"no more than one object for each round, but {left}"
