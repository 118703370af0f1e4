"""Calls of a subclass or a patch are called, by the library's loops too (D5); listeners of any shape (D8)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from partita import AsyncConsumer, Consumer, ConsumerRecord, ConsumerRecords, RebalanceListener
from partita.consumer.listener import CALLED_FOR, AnyListener
from partita.consumer.request import Lost
from partita.consumer.shell.waiting import run_blocking
from support.consumer.world import World

T0 = ("t", 0)


@pytest.fixture
def world() -> World:
    world = World({"t": 1})
    world.append("t", 0, 10)
    return world


class Traced(Consumer[bytes, bytes]):
    """Counts its calls, as the wrapper that a company has."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        made.seen = []
        return made

    seen: list[str]

    def subscribe(self, *arguments: Any, **named: Any) -> None:
        self.seen.append("subscribe")
        super().subscribe(*arguments, **named)

    def seek(self, *arguments: Any, **named: Any) -> None:
        self.seen.append("seek")
        super().seek(*arguments, **named)

    def poll(self, *arguments: Any, **named: Any) -> ConsumerRecords[bytes, bytes]:
        self.seen.append("poll")
        return super().poll(*arguments, **named)

    def close(self, *arguments: Any, **named: Any) -> None:
        self.seen.append("close")
        super().close(*arguments, **named)


def test_an_override_is_called_and_super_has_the_call(world: World) -> None:
    with world.consumer(Traced, group_id="g") as consumer:
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(1.0)
        consumer.seek(T0, 3)
        assert [record.offset for record in consumer.poll(1.0)][:1] == [3]
        assert {"subscribe", "seek", "poll"} == set(consumer.seen)  # type: ignore[attr-defined]  # Traced has it
    assert consumer.seen[-1] == "close"  # type: ignore[attr-defined]


@pytest.mark.parametrize("max_poll_records", [4, 500])
def test_a_loop_asks_the_poll_of_a_subclass(world: World, max_poll_records: int) -> None:
    consumer = world.consumer(Traced, max_poll_records=max_poll_records)
    consumer.assign([T0])
    assert [record.offset for record in consumer.until_end()] == list(range(10))
    assert consumer.seen.count("poll") >= 10 / max_poll_records  # type: ignore[attr-defined]  # Traced has it
    loop = iter(consumer)
    world.append("t", 0, 1)
    assert next(loop).offset == 10


def test_a_loop_asks_the_next_of_a_subclass_or_a_patch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    below = Consumer.__next__

    def counted(self: Consumer[Any, Any]) -> ConsumerRecord[Any, Any]:
        record = below(self)
        seen.append(record.offset)
        return record

    derived = type("Derived", (Consumer,), {"__next__": counted})
    for kind in (derived, Consumer):
        consumer = world.consumer(kind)
        consumer.assign([T0])
        if kind is Consumer:
            monkeypatch.setattr(Consumer, "__next__", counted)
        for record in consumer:
            if record.offset == 9:
                break
        assert seen == list(range(10))
        seen.clear()


def test_a_loop_of_asyncio_asks_the_poll_and_the_next_of_a_subclass(world: World) -> None:
    seen: list[str] = []

    class Polled(AsyncConsumer[bytes, bytes]):
        async def poll(self, timeout: float = 0.0, *, max_records: int | None = None) -> ConsumerRecords[bytes, bytes]:
            seen.append("poll")
            return await super().poll(timeout, max_records=max_records)

    class Stepped(AsyncConsumer[bytes, bytes]):
        async def __anext__(self) -> ConsumerRecord[bytes, bytes]:
            seen.append("next")
            return await super().__anext__()

    async def read(consumer: AsyncConsumer[bytes, bytes]) -> list[int]:
        consumer.assign([T0])
        found: list[int] = []
        async for record in consumer:
            found.append(record.offset)
            if record.offset == 9:
                break
        return found

    for kind, call_name, least in ((Polled, "poll", 1), (Stepped, "next", 10)):
        consumer = kind._over(world.consumer()._driver)
        assert run_blocking(read(consumer)) == list(range(10))
        assert seen.count(call_name) >= least
        seen.clear()


class Plain:
    """No subclass of anything, with the names of kafka-python and aiokafka."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_partitions_assigned(self, partitions: list[Any]) -> None:
        self.heard.append(("assigned", partitions))

    def on_partitions_revoked(self, partitions: list[Any]) -> None:
        self.heard.append(("revoked", partitions))


class Revoking(RebalanceListener):
    """Takes lost partitions for revoked ones, by the default of its base."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_partitions_revoked(self, partitions: list[Any]) -> None:
        self.heard.append(("revoked", partitions))


def set_on_the_object() -> Any:
    listener: Any = RebalanceListener()
    heard: list[Any] = []
    listener.on_partitions_assigned = lambda p: heard.append(("assigned", p))
    listener.on_partitions_revoked = lambda p: heard.append(("revoked", p))
    return SimpleNamespace(listener=listener, heard=heard)


def short_names() -> Any:
    heard: list[Any] = []
    listener = SimpleNamespace(
        on_assigned=lambda p: heard.append(("assigned", p)), on_revoked=lambda p: heard.append(("revoked", p))
    )
    return SimpleNamespace(listener=listener, heard=heard)


SHAPES: list[Callable[[], Any]] = [Plain, set_on_the_object, short_names]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_listener_of_any_shape(world: World, shape: Callable[[], Any]) -> None:
    """Finding D8: an object with functions set on it was refused with a text that was not true."""
    made = shape()
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"], listener=getattr(made, "listener", made))
    consumer.poll(1.0)
    consumer.unsubscribe()
    assert made.heard == [("assigned", [T0]), ("revoked", [T0])]


@pytest.mark.parametrize("double", [Mock(spec=RebalanceListener), Mock()], ids=["of a listener", "of anything"])
def test_a_listener_of_any_shape_may_be_a_mock(world: World, double: Mock) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"], double)
    consumer.poll(1.0)
    consumer.unsubscribe()
    assert double.mock_calls == [call.on_partitions_assigned([T0]), call.on_partitions_revoked([T0])]


@pytest.mark.parametrize(
    "listener", [Revoking(), SimpleNamespace(on_revoked=print, heard=[])], ids=["subclass", "without a method"]
)
def test_lost_partitions_go_to_the_method_for_revoked_ones(listener: Any) -> None:
    if isinstance(listener, SimpleNamespace):
        listener.on_revoked = lambda p: listener.heard.append(("revoked", p))
    method = AnyListener(listener).method(CALLED_FOR[Lost])
    assert method is not None
    method([])
    assert listener.heard == [("revoked", [])]


@pytest.mark.parametrize(
    ("listener", "told"),
    [
        (RebalanceListener(), "has none of them"),
        (SimpleNamespace(on_partition_assigned=print), "has none of them"),
        (print, "has none of them; functions are given as on_assigned="),
        (Plain, r"not a class; give Plain\(\)"),
        (5, "a listener is an object with on_partitions_assigned, on_partitions_revoked, on_partitions_lost, and 5"),
    ],
)
def test_what_is_no_listener_is_refused_with_what_would_be_one(world: World, listener: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        world.consumer(group_id="g").subscribe(["t"], listener)
