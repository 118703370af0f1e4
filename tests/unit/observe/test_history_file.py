"""What the dashboard remembers across restarts."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from partita.observe.history import History
from partita.observe.history_file import ENDS_KEPT_MS, LAG_KEPT_MS, HistoryFile
from support.dashboard.world import FakeCluster, member

KEY = ("orders", 0)


def watched(path: Path, minutes: int) -> FakeCluster:
    """A look every minute, kept in the file; a member joins in the last one."""
    world = FakeCluster()
    file = HistoryFile(path)
    for minute in range(minutes):
        world.log(*KEY, 100 + minute * 60)
        joined = [member("late", KEY)] if minute == minutes - 1 else []
        world.group("g", {KEY: 40}, joined)
        world.look()
        asyncio.run(file.keep(world.observed))
        world.pass_s(60)
    file.close()
    return world


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    world = watched(tmp_path / "h.db", 31)
    file, again = HistoryFile(tmp_path / "h.db"), History()
    file.load(again, world.now_ms)
    assert [point.lag for point in again.lag_points("g")] == [60 + 300 * step for step in range(7)]
    assert [end for _, end in again.ends_of(KEY)] == [100 + 60 * minute for minute in range(31)]
    assert [one.what for one in again.rebalances("g")] == ["late joined"]
    log = world.observed.logs[KEY]
    behind = again.behind(log, 160, world.observed.seen_ms)
    assert behind is not None
    assert (behind.ms, behind.is_rough) == (29 * 60_000, False), "known from before the restart"
    asyncio.run(file.keep(world.observed))
    file.close()
    with sqlite3.connect(tmp_path / "h.db") as database:
        assert database.execute("SELECT count(*) FROM rebalances").fetchone() == (1,), "told once"


def test_what_is_old_is_removed(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "h.db")
    world = FakeCluster()
    for _ in range(4):
        world.log(*KEY, 100)
        world.group("g", {KEY: 40})
        world.look()
        asyncio.run(file.keep(world.observed))
        world.pass_s((LAG_KEPT_MS // 2 + ENDS_KEPT_MS) / 1000)
    file.close()
    with sqlite3.connect(tmp_path / "h.db") as database:
        counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("lag", "ends")]
    assert counts == [2, 1]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(ValueError, match=r"notes\.txt cannot be used for the history"):
        HistoryFile(tmp_path / "notes.txt")


def test_a_file_that_fails_is_named_and_watching_goes_on(tmp_path: Path) -> None:
    file, world = HistoryFile(tmp_path / "h.db"), FakeCluster()
    file.close()
    world.log(*KEY, 100)
    world.group("g", {KEY: 40})
    world.look()
    asyncio.run(file.keep(world.observed))
    assert "the history is not written to" in file.problem
