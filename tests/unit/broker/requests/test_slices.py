"""Slices: how much is done before others have their turn."""

from __future__ import annotations

from partita.broker.requests.slices import SLICE, Pace, sliced
from partita.broker.wire.turns import SLICE_SECONDS


def lengths(elements: int, seconds_each: float) -> list[int]:
    """How many elements each slice has when every element takes so long."""
    now = [0.0]
    found = [0]
    for _, others_turn in sliced(range(elements), lambda: now[0]):
        if others_turn:
            found.append(0)
        found[-1] += 1
        now[0] += seconds_each
    return found


def test_quick_elements_are_counted() -> None:
    """A7: however quick they are, so many are enough."""
    assert lengths(2 * SLICE + 1, 0.0) == [SLICE, SLICE, 1]


def test_slow_elements_are_timed() -> None:
    """A5: logs that are opened at their first use are a slice each, if they take so long."""
    assert max(lengths(6, 2 * SLICE_SECONDS)) <= 2, "the first element after a turn is not timed"
    assert max(lengths(20, SLICE_SECONDS / 4)) <= 5


def test_the_time_of_others_does_not_count() -> None:
    """A slice begins when it is our turn again."""
    now = [0.0]
    turns = []
    for _, others_turn in sliced(range(9), lambda: now[0]):
        turns.append(others_turn)
        now[0] += SLICE_SECONDS / 3 + (1.0 if others_turn else 0.0)
    assert turns == [False, False, False, True, False, False, False, True, False]


def test_a_pace_says_when_a_slice_is_over_and_begins_the_next_with_the_next_question() -> None:
    now = [5.0]
    pace = Pace(lambda: now[0])
    told = []
    for _ in range(9):
        told.append(pace.is_over())
        now[0] += SLICE_SECONDS * 0.6 + (1.0 if told[-1] else 0.0)
    assert told == [False, False, True, False, False, True, False, False, True]
