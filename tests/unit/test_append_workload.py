"""The judge of the append workload notices every anomaly that it is there for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from append_workload import Appends, History, judge, reordered_pairs

FINAL = [["1.0", "1.2", "2.0"], ["1.1", "3.0"]]


def told() -> History:
    """Two transactions that were acknowledged, one of unknown end that is there, one that was aborted."""
    history = History()
    history.appends[1] = Appends({0: ["1.0", "1.2"], 1: ["1.1"]}, committed=True)
    history.appends[2] = Appends({0: ["2.0"]}, committed=True)
    history.appends[3] = Appends({1: ["3.0"]}, committed=None)
    history.appends[4] = Appends({0: ["4.0"], 1: ["4.1"]}, committed=False)
    history.reads = [(0, ["1.0", "1.2"]), (1, []), (1, ["1.1"]), (0, FINAL[0])]
    return history


def read(where: int, values: list[str]) -> Callable[[History, list[list[str]]], None]:
    return lambda history, final: history.reads.append((where, values))


def found(where: int, *values: str) -> Callable[[History, list[list[str]]], None]:
    return lambda history, final: final[where].extend(values)


def gone(where: int, value: str) -> Callable[[History, list[list[str]]], None]:
    return lambda history, final: final[where].remove(value)


def unknown(history: History, final: list[list[str]]) -> None:
    history.appends[4].committed = None
    final[1].append("4.1")


@pytest.mark.case("TX-R05")
@pytest.mark.parametrize(
    ("happens", "anomaly"),
    [
        (gone(0, "2.0"), "lost"),
        (found(1, "1.1"), "twice"),
        (found(0, "4.0", "4.1"), "aborted_seen"),
        (unknown, "half"),
        (read(0, ["1.0"]), "strange_reads"),
        (read(1, ["3.0"]), "strange_reads"),
        (read(1, ["1.1", "4.1"]), "strange_reads"),
    ],
    ids=["lost", "twice", "aborted (G1a)", "half", "intermediate (G1b)", "no prefix", "aborted read (G1a)"],
)
def test_an_anomaly_is_noticed(happens: Callable[[History, list[list[str]]], None], anomaly: str) -> None:
    history, final = told(), [list(values) for values in FINAL]
    assert not any(judge(history, final).values())
    happens(history, final)
    assert judge(history, final)[anomaly] == 1


def test_write_cycles_are_counted_and_allowed() -> None:
    """Kafka orders no two transactions alike in all partitions."""
    assert reordered_pairs(told(), FINAL) == 0
    assert reordered_pairs(told(), [["1.0", "2.0"], ["2.0", "1.1"]]) == 1
