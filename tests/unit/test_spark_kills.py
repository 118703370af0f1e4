"""The tool that kills parts of a Spark stream fails when a promise is broken or when nothing was killed. BM-172."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import spark_kills

LOG = {(0, offset): b"%d" % offset for offset in range(10)}
ROWS = Counter({(*place, value): 1 for place, value in LOG.items()})
KEPT = {"group is at the end": True, "rounds without a victim": 0}


def judged(rows: Counter[spark_kills.Row], *may_repeat: spark_kills.Row, more: dict[str, Any] | None = None) -> bool:
    return spark_kills.is_right(KEPT | dict(spark_kills.compare(LOG, LOG, rows, set(may_repeat))) | (more or {}))


def test_every_record_once_is_right() -> None:
    assert judged(ROWS)


@pytest.mark.parametrize(
    "rows",
    [ROWS - Counter({(0, 4, b"4"): 1}), ROWS - Counter({(0, 9, b"9"): 1}), ROWS + Counter({(0, 4, b"strange"): 1})],
    ids=["lost in the middle", "lost at the end", "strange"],
)
def test_a_record_that_is_lost_or_strange_is_wrong(rows: Counter[spark_kills.Row]) -> None:
    assert not judged(rows)


def test_a_duplicate_is_right_only_where_it_is_allowed() -> None:
    """Spec 4.5: only what was under way at a kill, or was read without being committed, may be read twice."""
    twice = ROWS + Counter({(0, 4, b"4"): 1})
    assert not judged(twice)
    assert not judged(twice, (0, 5, b"5"))
    assert judged(twice, (0, 4, b"4"))


def test_rounds_without_a_victim_and_a_group_that_is_behind_are_wrong() -> None:
    assert not judged(ROWS, more={"rounds without a victim": 1})
    assert not judged(ROWS, more={"group is at the end": False})


def test_what_a_batch_read_is_taken_from_the_offset_log(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    assert spark_kills.newest_batch(tmp_path) == -1
    end = {"v": 1, "t": {spark_kills.TOPIC: {"0": [2, 4, 0]}}}
    (offsets / "7").write_text(f"v1\n{{}}\n{json.dumps(end)}")
    (offsets / ".8.tmp").touch()
    assert spark_kills.newest_batch(tmp_path) == 7
    assert spark_kills.rows_of_batch(tmp_path, 7, LOG) == {(0, 2, b"2"), (0, 3, b"3")}
    assert spark_kills.rows_of_batch(tmp_path, 8, LOG) == set()


class Workers:
    """A job that has these workers at the first look and the next ones at the second."""

    def __init__(self, *looks: list[int]) -> None:
        self._looks: Iterator[list[int]] = iter(looks)

    def pids(self, what: str) -> list[int]:
        return next(self._looks, [])


def test_a_strike_that_finds_no_victim_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round counted as a kill when the batches of the stream were so small that no worker ran."""
    monkeypatch.setattr(spark_kills, "VICTIM_WITHIN_S", 0.001)
    assert spark_kills.victim_of("worker", Workers(), Random(1)) is None


def test_sources_and_executors_are_victims_always_and_a_worker_only_when_it_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for what in ("source", "executor"):
        assert spark_kills.victim_of(what, Workers([], [7]), Random(1)) == 7
    assert not spark_kills.is_at_work(-1), "no such process"
    monkeypatch.setattr(spark_kills, "is_at_work", lambda pid: pid == 9)
    assert spark_kills.victim_of("worker", Workers([8], [8, 9]), Random(1)) == 9


def test_executors_can_be_killed_on_a_cluster_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spark_kills.py", "--what", "executor"])
    with pytest.raises(SystemExit):
        spark_kills.main()
    assert "give --cluster" in capsys.readouterr().err
