"""Keeps the history in a SQLite file over restarts: lag of groups, ends of logs, rebalances. Bounded by age.

A file that cannot be written any more is named in `problem`; watching goes on without it.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any, TypeAlias

from partita.observe.history import History, LagPoint, RebalanceSeen
from partita.observe.observed import Observed

MINUTE, DAY = 60_000, 86_400_000
LAG_EVERY_MS, LAG_KEPT_MS = 5 * MINUTE, 7 * DAY
ENDS_EVERY_MS, ENDS_KEPT_MS = MINUTE, 120 * MINUTE
LOADED_MS = DAY
TABLES = """
CREATE TABLE IF NOT EXISTS lag (at_ms INTEGER, name TEXT, lag INTEGER, behind_ms INTEGER, committed INTEGER);
CREATE TABLE IF NOT EXISTS ends (at_ms INTEGER, topic TEXT, number INTEGER, offset INTEGER);
CREATE TABLE IF NOT EXISTS rebalances (at_ms INTEGER, name TEXT, what TEXT);
CREATE INDEX IF NOT EXISTS lag_at ON lag (at_ms);
CREATE INDEX IF NOT EXISTS ends_at ON ends (at_ms);
"""
Rows: TypeAlias = list[tuple[int | str | None, ...]]
logger = logging.getLogger("partita.observe")


class HistoryFile:
    """One file for one cluster. Raises ValueError for a file that is something else."""

    def __init__(self, path: Path) -> None:
        self.problem = ""
        self._path = path
        self._lag_at_ms = self._ends_at_ms = self._told_ms = 0
        try:
            self._db = sqlite3.connect(path, check_same_thread=False)
            self._db.executescript(TABLES)
        except sqlite3.Error as error:
            raise ValueError(f"{path} cannot be used for the history: {error}") from error

    def load(self, history: History, now_ms: int) -> None:
        """Load the file's last day into a history."""
        for at_ms, name, lag, behind_ms, committed in self._rows("lag", now_ms - LOADED_MS):
            history.saw_group(name, LagPoint(at_ms, lag, behind_ms, committed))
        for at_ms, topic, number, offset in self._rows("ends", now_ms - ENDS_KEPT_MS):
            history.saw_end((topic, number), at_ms, offset)
        for at_ms, name, what in self._rows("rebalances", now_ms - LOADED_MS):
            history.saw_rebalance(RebalanceSeen(at_ms, name, what))
            self._told_ms = at_ms

    def _rows(self, table: str, since_ms: int) -> list[Any]:
        """Rows of a table, whose columns SQLite does not type."""
        return self._db.execute(f"SELECT * FROM {table} WHERE at_ms >= ? ORDER BY at_ms", (since_ms,)).fetchall()

    async def keep(self, observed: Observed) -> None:
        """Write new rows that are due. Called after every look."""
        now_ms = observed.seen_ms
        lag: Rows = []
        ends: Rows = []
        if now_ms >= self._lag_at_ms + LAG_EVERY_MS:
            self._lag_at_ms = now_ms
            lag = [
                (point.at_ms, name, point.lag, point.behind_ms, point.committed)
                for name in observed.groups
                if (point := observed.history.lag_before(name, now_ms)) is not None
            ]
        if now_ms >= self._ends_at_ms + ENDS_EVERY_MS:
            self._ends_at_ms = now_ms
            ends = [(now_ms, *key, log.end) for key, log in observed.logs.items() if log.end is not None]
        fresh = [one for one in observed.history.rebalances() if one.at_ms > self._told_ms]
        self._told_ms = max((one.at_ms for one in fresh), default=self._told_ms)
        told: Rows = [(one.at_ms, one.group_id, one.what) for one in fresh]
        if lag or ends or told:
            await asyncio.to_thread(self._write, now_ms, lag, ends, told)

    def _write(self, now_ms: int, lag: Rows, ends: Rows, told: Rows) -> None:
        try:
            with self._db:
                self._db.executemany("INSERT INTO lag VALUES (?, ?, ?, ?, ?)", lag)
                self._db.executemany("INSERT INTO ends VALUES (?, ?, ?, ?)", ends)
                self._db.executemany("INSERT INTO rebalances VALUES (?, ?, ?)", told)
                self._db.execute("DELETE FROM lag WHERE at_ms < ?", (now_ms - LAG_KEPT_MS,))
                self._db.execute("DELETE FROM ends WHERE at_ms < ?", (now_ms - ENDS_KEPT_MS,))
                self._db.execute("DELETE FROM rebalances WHERE at_ms < ?", (now_ms - LAG_KEPT_MS,))
            self.problem = ""
        except sqlite3.Error as error:
            if not self.problem:
                logger.warning("the history is not written to %s: %s", self._path, error)
            self.problem = f"the history is not written to {self._path}: {error}"

    def close(self) -> None:
        """Close the file."""
        self._db.close()
