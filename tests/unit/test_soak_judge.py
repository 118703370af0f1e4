"""The judge of the soak notices every fault that it is there for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from soak_judge import EVENTS, FADING, Found, Ledger, Place, Seen, judge

from support.clients.member import COPIES

Day = tuple[Ledger, Found, dict[str, Seen]]
SENT: dict[Place, bytes] = {(0, 0): b"a-1", (1, 0): b"b-1"}
COPIED: dict[Place, bytes] = {(0, 0): b"a-1@c.1", (0, 3): b"b-1@c.3"}
MANY = 100


def seen(values: dict[Place, bytes]) -> Seen:
    return Seen({(*place, value.decode()) for place, value in values.items()})


def good_day() -> Day:
    """Two events, each copied once, with an aborted attempt between; a topic that lost its first record; two keys."""
    ledger = Ledger(keys={b"k": b"2", b"gone": None, b"open": b"1"}, key_writes=MANY, unknown={b"open", b"late"})
    ledger.acknowledged = {EVENTS: dict(SENT), FADING: {(0, 0): b"a-2", (0, 1): b"a-3"}}
    values = {EVENTS: {**SENT, (0, 1): b"late"}, EVENTS + COPIES: {**COPIED, (0, 4): b"late@c.3"}}
    found = Found({**values, FADING: {(0, 1): b"a-3"}}, {b"k": b"2", b"open": b"7"}, 3, {0: 1})
    groups = {"classic": seen(values[EVENTS]), "epochs": seen(values[EVENTS])}
    groups |= {"copy-readers": seen(values[EVENTS + COPIES]), "copiers": Seen(set(), aborted={"c.2"})}
    return ledger, found, groups


def log(topic: str, place: Place, value: bytes | None) -> Callable[[Day], None]:
    def change(day: Day) -> None:
        values = day[1].values[topic]
        values.pop(place, None)
        if value is not None:
            values[place] = value
        if topic == EVENTS:
            day[2]["classic"] = day[2]["epochs"] = seen(values)
        elif topic == EVENTS + COPIES:
            day[2]["copy-readers"] = seen(values)

    return change


def key(name: bytes, value: bytes) -> Callable[[Day], None]:
    return lambda day: day[1].last.update({name: value})


def handed(group: str, *records: tuple[int, int, str]) -> Callable[[Day], None]:
    return lambda day: day[2][group].records.update(records)


def handed_again(day: Day) -> None:
    day[2]["epochs"].unexplained = 1


def never_handed(day: Day) -> None:
    day[2]["classic"].records.remove((1, 0, "b-1"))


def kept(day: Day) -> None:
    day[1].starts[0] = 0
    day[1].values[FADING][0, 0] = b"a-2"


def not_compacted(day: Day) -> None:
    day[1].key_records = MANY


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (log(EVENTS, (1, 0), None), "acknowledged events are not in the log"),
        (log(EVENTS, (0, 0), b"late"), "acknowledged events are not in the log"),
        (log(EVENTS, (0, 2), b"a-1"), "more than once"),
        (log(EVENTS, (0, 2), b"strange"), "no producer sent"),
        (log(FADING, (0, 1), None), "behind the log start"),
        (key(b"k", b"1"), "another value"),
        (key(b"gone", b"1"), "another value"),
        (log(EVENTS + COPIES, (0, 3), None), "were not copied"),
        (log(EVENTS + COPIES, (0, 5), b"a-1@c.4"), "copied more than once"),
        (log(EVENTS + COPIES, (0, 5), b"z-1@c.4"), "copies are of no event"),
        (log(EVENTS + COPIES, (0, 0), b"a-1@c.2"), "aborted copies are visible"),
        (never_handed, "never seen by classic"),
        (handed("epochs", (0, 9, "z")), "seen by epochs that are not there"),
        (handed("copy-readers", (0, 2, "a-1@c.2")), "aborted records were seen"),
        (handed_again, "came again to epochs"),
        (kept, "kept everything"),
        (not_compacted, "too many"),
    ],
)
def test_a_fault_is_noticed(happens: Callable[[Day], None], words: str) -> None:
    day = good_day()
    assert judge(*day, is_long=True) == []
    happens(day)
    assert any(words in problem for problem in judge(*day, is_long=True))


def test_a_short_day_need_not_show_retention_or_compaction() -> None:
    day = good_day()
    kept(day)
    not_compacted(day)
    assert judge(*day, is_long=False) == []
