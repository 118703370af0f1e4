"""Issue 10, 6: a command that reads up to an end gives up in words when that end cannot be reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from partita.cli.records.patience import STANDSTILL_S, UNREACHABLE_S, Patience, brief_calls
from partita.consumer.errors import ApiTimeoutError
from partita.offsets.topic_partition import TopicPartition
from partita.wording import Note

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GONE = Note("no_broker", "no broker can be reached", {"tried": "h:1: refused"})


class Reader:
    """A consumer with known positions, and the clock beside it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.positions: dict[TopicPartition, int] = {T0: 0, T1: 0}
        self.hear: Callable[[Note], Any] = print

    def on_note(self, heard: Callable[[Note], Any]) -> None:
        self.hear = heard

    def position(self, tp: TopicPartition, *, timeout: float) -> int:
        if tp not in self.positions:
            raise ApiTimeoutError(f"the position of {tp} is not known within {timeout} s")
        return self.positions[tp]


@pytest.fixture
def reader() -> Reader:
    return Reader()


def patience_with(reader: Reader, ends: dict[TopicPartition, int]) -> Patience:
    return Patience(reader, ends, lambda: reader.now)  # type: ignore[arg-type]  # stands for a Consumer


def test_what_is_not_at_its_end_is_behind(reader: Reader) -> None:
    patience = patience_with(reader, {T0: 2, T1: 5})
    reader.positions = {T0: 2, T1: 4}
    assert patience.behind([T0, T1]) == [T1]
    assert patience.behind([T0]) == []
    reader.positions = {T0: 2}
    assert patience.behind([T0, T1]) == [T1]  # a position that is not known is not at the end
    assert patience_with(reader, {T1: 5}).behind([T0]) == []  # nobody asked for an end of it


def test_a_broker_that_stays_away_ends_the_wait(reader: Reader) -> None:
    patience = patience_with(reader, {T0: 2})
    reader.hear(GONE)
    reader.now = UNREACHABLE_S - 1
    patience.nothing_came(patience.behind([T0]))
    reader.now = UNREACHABLE_S
    with pytest.raises(click.ClickException, match=r"no broker could be reached for 15 s; .*Tried: h:1: refused"):
        patience.nothing_came(patience.behind([T0]))


def test_a_broker_that_comes_back_is_waited_for_again(reader: Reader) -> None:
    patience = patience_with(reader, {T0: 2})
    reader.hear(GONE)
    reader.now = UNREACHABLE_S - 1
    reader.hear(Note("broker_again", "a broker answers again"))
    reader.now = UNREACHABLE_S + STANDSTILL_S - 2
    patience.nothing_came([T0])
    reader.hear(GONE)
    with pytest.raises(click.ClickException, match="no broker could be reached for 0 s"):
        patience.check_reachable(0)


def test_a_partition_that_never_moves_ends_the_wait(reader: Reader) -> None:
    patience = patience_with(reader, {T0: 2, T1: 5})
    for position in range(3):
        reader.positions[T1] = position
        reader.now = position * (STANDSTILL_S - 1)
        patience.nothing_came(patience.behind([T0, T1]))
    reader.now += STANDSTILL_S
    with pytest.raises(click.ClickException, match="nothing of t-0, t-1 came for 120 s"):
        patience.nothing_came(patience.behind([T0, T1]))


def test_a_member_without_partitions_waits_for_others(reader: Reader) -> None:
    patience = patience_with(reader, {T0: 2})
    reader.now = 10 * STANDSTILL_S
    patience.nothing_came(patience.behind([]))


def test_calls_are_brief_unless_the_user_says_how_long_they_take() -> None:
    assert brief_calls({}, {"client.id": "c"}) == {"default.api.timeout.ms": 15_000}
    assert brief_calls({"default_api_timeout_ms": "90000"}, {}) == {}
    assert brief_calls({}, {"default.api.timeout.ms": "90000"}) == {}
