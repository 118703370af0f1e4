"""The runner of handlers: how much is done before others have their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from partita.broker.api import context
from partita.broker.api.context import Answer, RequestContext, Steps, handled
from partita.broker.wire.turns import SLICE_SECONDS
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from support.broker.data_plane import DataPlane, data_plane


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as made:
        yield made


def lengths(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch, count: int, each: float, others: float = 0.0
) -> list[int]:
    """How many elements each slice has, if every element takes so long and others take so long in between."""
    now, found = [0.0], [0]
    wait = plane.services.turns.wait

    def walk(ctx: RequestContext, request: Any) -> Steps[Answer]:
        for _ in range(count):
            yield None
            found[-1] += 1
            now[0] += each
        return HeartbeatResponse()

    def turn_of_others(go_on: Any) -> None:
        found.append(0)
        now[0] += others
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "clock", lambda: now[0])
    monkeypatch.setattr(plane.services.turns, "wait", turn_of_others)
    answer = ask(plane, walk)
    assert isinstance(settle(plane, answer), HeartbeatResponse)
    return found


def ask(plane: DataPlane, handler: Any) -> Any:
    ctx = RequestContext(plane.services, plane.node, 12, 4, client_id="test", connection=plane.connection)

    async def call() -> Any:
        return handled(ctx, handler, HeartbeatRequest())

    return plane.loop.run_until_complete(call())


def settle(plane: DataPlane, answer: Any) -> Any:
    return plane.loop.run_until_complete(answer) if isinstance(answer, asyncio.Future) else answer


def test_a_slice_ends_by_the_clock(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: logs that are opened at their first use are a slice each, if they take so long."""
    assert lengths(plane, monkeypatch, 4, 2 * SLICE_SECONDS) == [1, 1, 1, 1]


def test_short_work_has_one_slice(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lengths(plane, monkeypatch, 1_000, 0.0) == [1_000]


def test_the_time_of_others_does_not_count(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice begins when it is our turn again."""
    assert lengths(plane, monkeypatch, 9, 0.4 * SLICE_SECONDS, others=1.0) == [3, 3, 3]


def test_what_is_awaited_comes_back_and_what_is_raised_is_the_answers(plane: DataPlane) -> None:
    later: asyncio.Future[int] = plane.loop.create_future()

    def waits(ctx: RequestContext, request: Any) -> Steps[Answer]:
        got = yield later
        try:
            yield plane.loop.create_task(failing())
        except ValueError:
            return HeartbeatResponse(error_code=got)
        return None

    async def failing() -> None:
        raise ValueError("no")

    answer = ask(plane, waits)
    later.set_result(7)
    assert settle(plane, answer).error_code == 7


def test_steps_that_are_over_at_once_may_return_what_still_waits(plane: DataPlane) -> None:
    """A parked fetch does not hold back the later requests of its connection."""
    parked: asyncio.Future[Any] = plane.loop.create_future()
    seen: list[RequestContext] = []

    def parks(ctx: RequestContext, request: Any) -> Steps[Answer]:
        seen.append(ctx)
        yield None
        return parked

    assert ask(plane, parks) is parked
    assert not seen[0].holds_back


def test_a_slice_of_zero_is_one_step(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests that count turns set."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    assert lengths(plane, monkeypatch, 3, 0.0) == [0, 1, 1, 1]
