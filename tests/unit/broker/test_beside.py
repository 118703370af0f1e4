"""Straight-line code in slices between the loop's other work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from partita.broker import beside
from partita.broker.beside import Pause, SlicedThread
from partita.broker.wire import turns
from partita.broker.wire.turns import Turns


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pause ends the slice, and a round is one slice."""
    monkeypatch.setattr(beside, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ROUND_SECONDS", 0.0)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def test_others_have_their_turn_between_two_slices(loop: asyncio.AbstractEventLoop) -> None:
    """A7: never do two threads work at a time."""
    order: list[str] = []
    at_work: list[int] = []
    thread = SlicedThread(loop, Turns(loop))

    def work(pause: Pause) -> str:
        for _ in range(4):
            at_work.append(1)
            order.append("work")
            at_work.pop()
            pause()
        return "done"

    def others() -> None:
        assert not at_work
        order.append("others")
        if not result.done():
            loop.call_soon(others)

    result = thread.run(work)
    loop.call_soon(others)
    assert loop.run_until_complete(result) == "done"
    thread.stop()
    assert "".join("w" if what == "work" else "o" for what in order).count("ww") == 0


def test_work_is_done_in_the_order_it_came_and_errors_are_those_of_their_work(loop: asyncio.AbstractEventLoop) -> None:
    thread = SlicedThread(loop, Turns(loop))
    done: list[int] = []

    def work(number: int, pause: Pause) -> int:
        pause()
        if number == 1:
            raise ValueError("the second one fails")
        done.append(number)
        return number

    results = [thread.run(lambda pause, n=number: work(n, pause)) for number in range(4)]  # type: ignore[misc]  # n is bound
    outcomes = loop.run_until_complete(asyncio.wait_for(asyncio.gather(*results, return_exceptions=True), 10))
    thread.stop()
    assert [str(outcome) for outcome in outcomes] == ["0", "the second one fails", "2", "3"]
    assert done == [0, 2, 3]


def test_nothing_goes_on_after_the_end(loop: asyncio.AbstractEventLoop) -> None:
    """A broker that stops while a large message is under way leaves no thread behind."""
    slices: list[int] = []
    thread = SlicedThread(loop, Turns(loop))

    def work(pause: Pause) -> None:
        while True:
            slices.append(1)
            pause()

    result = thread.run(work)
    while len(slices) < 3:
        loop.run_until_complete(asyncio.sleep(0))
    thread.stop()
    worker = thread._thread
    assert worker is not None
    worker.join(60)
    assert not worker.is_alive()
    assert result.cancelled()
    done = len(slices)
    loop.run_until_complete(asyncio.sleep(0))
    assert len(slices) == done


def test_a_result_that_nobody_waits_for_is_dropped(loop: asyncio.AbstractEventLoop) -> None:
    thread = SlicedThread(loop, Turns(loop))
    first, second = thread.run(lambda pause: 1), thread.run(lambda pause: 2)
    first.cancel()
    assert loop.run_until_complete(asyncio.wait_for(second, 10)) == 2
    thread.stop()
