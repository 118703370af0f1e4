"""When no broker can be reached: said once, and once more when one answers again."""

from __future__ import annotations

from typing import Any

import pytest

from support.consumer.world import DROP, World

WHY = "cannot connect to node1:9092: refused; cannot connect to node2:9092: refused"


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "partita.consumer" and r.levelname == "WARNING"]


def reading(world: World) -> Any:
    consumer = world.consumer(client_id="me")
    consumer.assign([("t", 0)])
    return consumer


def test_an_outage_is_told_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"t": 1})
    consumer = reading(world)
    consumer.poll(0.5)
    for _ in range(2):
        world.unreachable = WHY
        for _ in range(100):
            consumer.poll(0.1)
        (line,) = warned(caplog)[-1:]
        assert line == f"me: no broker can be reached; trying again until one answers. Tried: {WHY}"
        world.unreachable = ""
        for _ in range(50):
            consumer.poll(0.1)
        assert "me: a broker answers again, after " in warned(caplog)[-1]
    assert len([w for w in warned(caplog) if "broker" in w]) == 4


def test_a_consumer_that_never_reached_anybody_says_so(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"t": 1})
    world.unreachable = WHY
    consumer = reading(world)
    heard: list[Any] = []
    consumer.on_note(heard.append)
    for _ in range(100):
        consumer.poll(0.1)
    assert [note.kind for note in heard] == ["no_broker"]
    assert heard[0].fields == {"tried": WHY}
    assert len(warned(caplog)) == 1


def test_one_lost_connection_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    world = World({"t": 1}, nodes=2)
    consumer = reading(world)
    world.script("Fetch", DROP, DROP)
    world.script("Metadata", DROP)
    for _ in range(30):
        consumer.poll(0.1)
    assert warned(caplog) == []
