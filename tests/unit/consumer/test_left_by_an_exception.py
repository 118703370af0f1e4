"""What an exception leaves: a `with` block, whose last poll no automatic commit covers (issue 10.2), and a poll."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from partita.consumer.client_core import ClientCore
from partita.consumer.group.commits import Commits
from partita.consumer.listener import AnyListener
from partita.consumer.reading.committed_offsets import CommittedOffsets
from partita.consumer.request import Poll
from partita.consumer.shell.client_driver import ClientDriver
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import run_blocking
from support.consumer.members import member
from support.consumer.world import World

T0, T1 = ("t", 0), ("t", 1)


class Oops(Exception):
    """What the application raises."""


@pytest.fixture
def world() -> World:
    world = World({"t": 1})
    for _ in range(10):
        world.append("t", 0, 100)
    return world


def group(world: World, **options: Any) -> Any:
    consumer = world.consumer(group_id="g", **{"max_poll_records": 10, **options})
    consumer.subscribe(["t"])
    return consumer


def polled(consumer: Any) -> list[int]:
    while not (records := consumer.poll(1.0)):
        pass
    return [record.offset for record in records]


def next_offset(world: World) -> int:
    """Where the group's next member begins."""
    with group(world, enable_auto_commit=False) as consumer:
        return polled(consumer)[0]


def leave_after(world: World, act: Any, error: type[BaseException] = Oops, **options: Any) -> int:
    """Read two batches, `act` with the consumer and the second one, raise; where the group goes on."""

    def run() -> None:
        with group(world, **options) as consumer:
            assert polled(consumer) == list(range(10))
            assert polled(consumer) == list(range(10, 20))
            act(consumer)
            raise error

    with pytest.raises(error):
        run()
    return next_offset(world)


@pytest.mark.parametrize("error", [Oops, KeyboardInterrupt, SystemExit])
def test_what_the_last_poll_gave_is_read_again(world: World, error: type[BaseException]) -> None:
    assert leave_after(world, lambda consumer: None, error) == 10


def test_without_an_exception_all_is_committed(world: World) -> None:
    with group(world) as consumer:
        polled(consumer)
        polled(consumer)
    assert next_offset(world) == 20


@pytest.mark.parametrize(
    ("act", "goes_on"),
    [
        (lambda consumer: consumer.commit(), 20),
        (lambda consumer: consumer.commit({T0: 13}), 13),
        (lambda consumer: consumer.commit_async({T0: 13}), 13),
        (lambda consumer: consumer.poll(0, max_records=0), 20),
        (lambda consumer: consumer.seek(T0, 55), 55),
        (lambda consumer: consumer.pause(), 10),
        (lambda consumer: consumer.unsubscribe(), 0),
    ],
)
def test_what_the_application_said_itself_counts(world: World, act: Any, goes_on: int) -> None:
    assert leave_after(world, act) == goes_on


def test_a_loop_counts_what_it_passed(world: World) -> None:
    def loop(consumer: Any) -> None:
        for record in consumer:
            if record.offset == 25:
                break

    assert leave_after(world, loop) == 25


def test_records_left_by_a_loop_and_given_by_a_poll_are_read_again(world: World) -> None:
    def run() -> None:
        with group(world) as consumer:
            for record in consumer:
                if record.offset == 3:
                    break
            assert [record.offset for record in consumer.poll(1.0, max_records=2)] == [4, 5]
            raise Oops

    with pytest.raises(Oops):
        run()
    assert next_offset(world) == 4


def test_arrow_is_read_again_too(world: World) -> None:
    def run() -> None:
        with group(world) as consumer:
            batch = None
            while batch is None:
                batch = consumer.poll_arrow(1.0)
            raise Oops

    with pytest.raises(Oops):
        run()
    assert next_offset(world) == 0


def test_done_records_are_done(world: World) -> None:
    def run() -> None:
        with group(world, commit_done_only=True) as consumer:
            while not (records := consumer.poll(1.0)):
                pass
            for record in list(records)[:4]:
                consumer.done(record)
            raise Oops

    with pytest.raises(Oops):
        run()
    assert next_offset(world) == 4


def test_what_an_asyncio_block_was_given_is_read_again(world: World) -> None:
    consumer = group(world)
    polled(consumer)
    run_blocking(consumer._calls.__aexit__(Oops, Oops(), None))
    assert next_offset(world) == 0


def lines(of: Any) -> list[int]:
    """The lines of a function, without its head."""
    return sorted({line for *_, line in of.__code__.co_lines() if line} - {of.__code__.co_firstlineno})


def broken_off(of: Any, line: int, times: int, call: Callable[[], None]) -> None:
    """Call it so often; Ctrl-C comes once, the first time that this line of `of` is reached."""
    left = [KeyboardInterrupt()]

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and frame.f_lineno == line and left:
            raise left.pop()
        return trace if frame.f_code is of.__code__ else None

    before = sys.gettrace()
    for _ in range(times):
        sys.settrace(trace)
        with suppress(KeyboardInterrupt):
            try:
                call()
            finally:
                sys.settrace(before)


@pytest.mark.parametrize(
    "of",
    [
        ClientDriver.dispatch,
        ConsumerDriver._rebalance_callback,
        ConsumerDriver.call_listener,
        ConsumerDriver._call_listener,
        AnyListener.method,
    ],
)
def test_ctrl_c_beside_a_callback_of_a_rebalance_keeps_no_group_waiting(of: Any) -> None:
    """The event had left the queue, and the end of its callback was awaited for ever: nothing was read.

    Before the listener's own first line it counted as called.
    """
    for line in lines(of):
        world = World({"t": 1})
        world.append("t", 0, 3)
        consumer, heard = member(world, poll=0)
        seen: list[int] = []

        def poll(consumer: Any = consumer, seen: list[int] = seen) -> None:
            seen.extend(record.offset for record in consumer.poll(1))

        broken_off(of, line, 3, poll)
        assert seen == [0, 1, 2], line
        assert heard.calls == [("assigned", [("t", 0)])], line


@pytest.mark.parametrize("of", [CommittedOffsets.poll, CommittedOffsets._request, Poll.ask])
def test_a_look_up_of_offsets_that_ctrl_c_broke_off_is_done_again(of: Any) -> None:
    """It counted as under way before there was a request, and nothing was read for ever."""
    for line in lines(of):
        world = World({"t": 1})
        world.append("t", 0, 3)
        consumer, _ = member(world, poll=0)
        seen: list[int] = []

        def poll(consumer: Any = consumer, seen: list[int] = seen) -> None:
            seen.extend(record.offset for record in consumer.poll(5))

        broken_off(of, line, 3, poll)
        assert seen == [0, 1, 2], line


@pytest.mark.parametrize(
    "of",
    [
        Commits.poll,
        Commits._has_to_wait,
        Commits._go_on,
        Commits._send_what_is_news,
        Commits._request,
        ClientCore.take_event,
        ClientDriver._next_event,
        ClientDriver.dispatch,
        ClientDriver.hear,
    ],
)
def test_an_asynchronous_commit_that_ctrl_c_came_beside_has_its_callback_called_once(of: Any) -> None:
    """It had left the queue, or its outcome had, and no more was heard of it; `close` waited for it to its timeout."""
    for line in lines(of):
        world = World({"t": 1})
        world.append("t", 0, 3)
        consumer, _ = member(world, poll=0, enable_auto_commit=False)
        polled(consumer)
        heard: list[Any] = []

        def commit(consumer: Any = consumer, heard: list[Any] = heard) -> None:
            if not heard:
                heard.append("asked")
                consumer.commit_async(callback=lambda offsets, error: heard.append(error))
            consumer.poll(1)

        broken_off(of, line, 4, commit)
        assert heard == ["asked", None], line
        before = world.now
        consumer.close()
        assert world.now - before < 1_000, line


def test_a_call_that_ctrl_c_broke_off_owns_the_consumer_no_longer(world: World) -> None:
    """No other thread could use it ever again."""
    for line in lines(ClientDriver.owned):
        consumer = world.consumer()
        broken_off(ClientDriver.owned, line, 1, lambda consumer=consumer: consumer.assign([("t", 0)]))  # type: ignore[misc]  # a default binds it
        with ThreadPoolExecutor(1) as other:
            assert other.submit(consumer.subscription).result() == set(), line
