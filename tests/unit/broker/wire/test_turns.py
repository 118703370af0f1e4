"""The line of those who have work left: it is worked off in slices, and large messages are freed in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from partita.broker.wire import turns
from partita.broker.wire.turns import Turns, let_go
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic


def test_work_is_done_in_slices_between_which_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ROUND_SECONDS", 0.0)
    order: list[str] = []

    async def both() -> None:
        line = Turns(asyncio.get_running_loop(), clock=lambda: 0.0)
        for name in ("a", "b"):
            line.work_off(map(order.append, name * 3))
        assert not order, "the first slice waits in line, too"
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(both())
    assert order == ["a", "b"] * 3


def test_work_that_is_waited_for_ends_with_its_last_step_or_its_error() -> None:
    taken: list[int] = []

    def steps() -> Iterator[None]:
        for number in range(3):
            taken.append(number)
            yield
        raise LookupError

    async def both() -> None:
        line = Turns(asyncio.get_running_loop())
        await line.worked_off(iter(range(3)))
        with pytest.raises(LookupError):
            await line.worked_off(steps())

    asyncio.run(both())
    assert taken == [0, 1, 2]


def test_a_large_message_is_freed_one_element_in_a_step() -> None:
    """H34: to free a request for 300,000 partitions at once took 12 ms."""
    width = 50
    part = ListOffsetsPartition(partition_index=7)
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=f"t{n}", partitions=[ListOffsetsPartition()] * 2 + [part]) for n in range(width)]
    )
    sizes = [len(request.topics) for _ in let_go(request)]
    assert sizes[0] == width
    assert sizes[-1] == 0
    assert len(sizes) > 4 * width, "each topic, each of its partitions"
    assert part.partition_index == 7, "others may keep an element"


def test_dictionaries_are_emptied_too() -> None:
    held = {n: str(n) for n in range(5)}
    assert [len(held) for _ in let_go(held)] == [5, 4, 3, 2, 1, 0]
