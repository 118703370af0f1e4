"""At level DEBUG the log says what poll does with fetched data, and why it returns nothing (sources, 004 row 39)."""

from __future__ import annotations

import logging

import pytest

from support.consumer.world import World

T0 = ("t", 0)


@pytest.fixture
def debug(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="partita.consumer")
    return caplog


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message.partition(": ")[2] for message in caplog.messages]


@pytest.fixture
def world() -> World:
    world = World({"t": 2})
    world.append("t", 0, 20)
    return world


def test_a_fetch_is_told_with_its_places(world: World, debug: pytest.LogCaptureFixture) -> None:
    consumer = world.consumer(auto_offset_reset="earliest")
    consumer.assign([T0])
    consumer.poll(1)
    assert "fetching from node 1: t-0 from 0" in said(debug)


def test_dropped_and_held_back_records_say_why(world: World, debug: pytest.LogCaptureFixture) -> None:
    consumer = world.consumer(auto_offset_reset="earliest", max_poll_records=5)
    consumer.assign([T0])
    consumer.poll(1)
    consumer.pause([T0])
    consumer.poll(0)
    assert "held back records of t-0 from 5: it is paused" in said(debug)
    assert "poll returns nothing: paused: t-0" in said(debug)
    consumer.resume([T0])
    consumer.seek(T0, 11)
    consumer.poll(0)
    assert "dropped records of t-0 from 5: the position is 11" in said(debug)


def test_a_poll_without_records_says_what_is_missing(world: World, debug: pytest.LogCaptureFixture) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"])
    consumer.poll(0)
    assert said(debug)[-1] == "poll returns nothing: the coordinator is not known yet"
    alone = world.consumer(auto_offset_reset="earliest")
    alone.assign([("t", 1)])
    alone.poll(0)
    assert said(debug)[-1] == "poll returns nothing: no position is known yet for t-1"
    alone.poll(1)
    assert said(debug)[-1] == "poll returns nothing: no records have arrived of t-1"


def test_at_other_levels_nothing_is_prepared(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="partita.consumer")
    consumer = world.consumer(auto_offset_reset="earliest")
    consumer.assign([T0])
    consumer.poll(1)
    assert [record for record in caplog.records if record.levelno == logging.DEBUG] == []
