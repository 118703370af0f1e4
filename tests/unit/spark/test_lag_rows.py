"""`view=lag` on a broker of its own: lag in records and seconds, and groups that cannot be asked. Issue 31, item 3."""

from __future__ import annotations

from typing import Any

import pytest

from partita import Admin, Broker, Producer
from partita.spark.reading.lag_rows import lag_batch
from partita.spark.reading.tables import read_schema
from partita.spark.settings.table import VIEWS
from partita.spark.spark_api import arrow_schema
from support.clock import ManualClock

AT_MS = 1_700_000_000_000
LATER = ManualClock(wall_ms=AT_MS + 90_000)
"""90 seconds after the first record."""


def lag(broker: Broker, group: str | None = None) -> list[dict[str, Any]]:
    client = {"bootstrap.servers": broker.bootstrap, "default.api.timeout.ms": "2000"}
    rows: list[dict[str, Any]] = lag_batch(client, group, LATER, arrow_schema(read_schema(VIEWS["lag"]))).to_pylist()
    return rows


@pytest.fixture
def groups(partita_broker: Broker) -> Broker:
    """Topic t with ten records a second apart; groups at 3 and at 7, one at the end, one beyond it."""
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.create_topic("t", 1)
        with Producer(bootstrap_servers=partita_broker.bootstrap) as producer:
            for i in range(10):
                producer.send("t", b"x", timestamp=AT_MS + i * 1000)
        for name, offset in {"three": 3, "seven": 7, "done": 10, "ahead": 12}.items():
            admin.alter_group_offsets(name, {("t", 0): offset})
    return partita_broker


def test_each_group_is_behind_by_records_and_by_seconds_and_never_below_zero(groups: Broker) -> None:
    rows = {row["group"]: row for row in lag(groups)}
    assert {name: (row["lag"], row["lagSeconds"], row["error"]) for name, row in rows.items()} == {
        "three": (7, 87.0, None), "seven": (3, 83.0, None), "done": (0, 0.0, None), "ahead": (0, 0.0, None),
    }  # fmt: skip


def test_a_group_that_cannot_be_asked_is_a_row_that_says_why(groups: Broker) -> None:
    groups.control.fail("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", None, group_id="seven")
    rows = {row["group"]: row for row in lag(groups)}
    assert rows.keys() == {"three", "seven", "done", "ahead"}
    assert (rows["seven"]["lag"], rows["seven"]["topic"]) == (None, None)
    assert "GROUP_AUTHORIZATION_FAILED" in rows["seven"]["error"]
    (row,) = lag(groups, "nosuch")
    assert (row["group"], row["lag"], row["error"]) == ("nosuch", None, row["error"])
    assert "no group 'nosuch'" in row["error"]
