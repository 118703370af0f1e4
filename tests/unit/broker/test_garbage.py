"""Garbage collection in a broker's process, and that its requests leave none."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace

import pytest

from partita.broker.garbage import (
    LOOK_SECONDS,
    LOOKS_MAX,
    NEW_COLLECTIONS,
    NEW_OBJECTS,
    PORTION_COLLECTIONS,
    WHOLE_SECONDS_MIN,
    WHOLE_SHARE,
    GarbageCollection,
)
from support.broker import cycles

PORTION = NEW_OBJECTS * (NEW_COLLECTIONS + 1) * (PORTION_COLLECTIONS + 1)


@pytest.fixture
def python_own_schedule() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.freeze()  # as after the collection of the tests


class Later:
    """A loop that notes when it is to call what."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    def call_later(self, delay: float, callback: object) -> None:
        self.delays.append(delay)


class Cycle:
    """An object that only a collection can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("python_own_schedule")
def test_no_collection_looks_at_more_than_one_portion_however_much_there_is() -> None:
    """H34: a collection of everything holds up whoever asks."""
    looked_at: list[int] = []

    def note(phase: str, details: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(sum(len(gc.get_objects(young)) for young in range(details["generation"] + 1)))

    collection = GarbageCollection(Later())  # type: ignore[arg-type]  # all it asks of a loop
    collection.start()
    collection.collect()
    gc.callbacks.append(note)
    kept = [[Cycle()] for _ in range(5 * PORTION)]
    assert len(kept) == 5 * PORTION
    assert len(looked_at) > 5 * PORTION // NEW_OBJECTS
    assert max(looked_at) < 1.5 * PORTION


@pytest.mark.usefixtures("python_own_schedule")
def test_cycles_that_outlive_their_portion_go_with_the_collection_of_everything() -> None:
    collection = GarbageCollection(Later())  # type: ignore[arg-type]
    collection.start()
    cycle = Cycle()
    watched = weakref.ref(cycle)
    gc.collect()
    del cycle
    gc.collect()
    assert watched() is not None, "it was set apart"
    collection.collect()
    assert watched() is None


@pytest.mark.usefixtures("python_own_schedule")
def test_everything_is_collected_in_a_quiet_second_and_the_more_rarely_the_longer_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = iter([0.0, 0.5, 1.0, 1.01])
    monkeypatch.setattr("partita.broker.garbage.time", SimpleNamespace(process_time=lambda: next(used)))
    loop = Later()
    collection = GarbageCollection(loop)  # type: ignore[arg-type]
    monkeypatch.setattr(collection, "collect", lambda: 0.5)
    collection.start()
    for _ in range(4):
        collection.look()
    assert loop.delays == [WHOLE_SECONDS_MIN, *[LOOK_SECONDS] * 3, 0.5 * WHOLE_SHARE]


@pytest.mark.usefixtures("python_own_schedule")
def test_a_process_that_is_never_quiet_collects_everything_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    used = count(step=LOOK_SECONDS)
    monkeypatch.setattr("partita.broker.garbage.time", SimpleNamespace(process_time=lambda: next(used)))
    loop = Later()
    collection = GarbageCollection(loop)  # type: ignore[arg-type]
    monkeypatch.setattr(collection, "collect", lambda: 0.0)
    for _ in range(LOOKS_MAX + 1):
        collection.look()
    assert loop.delays == [*[LOOK_SECONDS] * LOOKS_MAX, WHOLE_SECONDS_MIN]


def test_requests_leave_no_reference_cycles() -> None:
    """So nothing piles up between two collections of everything: produce, fetch, long polls, groups, large requests."""
    done = subprocess.run([sys.executable, cycles.__file__], capture_output=True, text=True, timeout=60, check=True)
    left = json.loads(done.stdout)
    assert sum(left.values()) < cycles.ROUNDS, f"no more than one object for each round, but {left}"
