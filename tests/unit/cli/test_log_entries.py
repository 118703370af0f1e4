"""Records of `__consumer_offsets` as `partita groups log` shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from partita.cli.groups.log_entries import TYPES, read_entry
from partita.records.batch import Record

VECTORS = Path(__file__).parents[2] / "vectors" / "group-log.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in VECTORS.read_text().splitlines()]


def record(row: dict[str, Any]) -> Record:
    key, value = (None if row[name] is None else bytes.fromhex(row[name]) for name in ("key_hex", "value_hex"))
    return Record("__consumer_offsets", 22, 105, 1_700_000_000_000, 0, key, value, ())


def test_every_record_that_kafka_writes_is_named_and_read() -> None:
    read = [row for row in ROWS if "key_id" in row]
    assert {row["key_id"] for row in read} == set(TYPES)
    for row in read:
        entry = read_entry(record(row))
        assert entry.fault == "", row
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", entry.type).upper()
        assert (entry.key_version, snake) == (row["key_id"], row["type"])
        assert list(entry.key.values()) == list(row["key"].values())
        assert entry.value_version == row["value_version"]
        assert (entry.value is None) == (row["value_hex"] is None)
        json.dumps(entry.as_json())
        assert entry.line().startswith("22@105  2023-11-14T22:13:20.000Z  ")


def test_what_kafka_cannot_read_has_its_fault() -> None:
    refused = [row for row in ROWS if row.get("outcome") == "refused"]
    assert refused
    for row in refused:
        entry = read_entry(record(row))
        assert entry.fault, row
        assert "unreadable: " in entry.line()
        assert entry.as_json()["is_tombstone"] is False


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (1, {"offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id"}),
        (2, {"protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members"}),
        (5, {"value_base64"}),
    ],
)
def test_a_value_shows_its_fields(kind: int, fields: set[str]) -> None:
    row = next(row for row in ROWS if row.get("key_id") == kind and row["value_hex"] is not None)
    entry = read_entry(record(row))
    assert entry.value is not None
    assert entry.value.keys() == fields


def test_names_that_clients_chose_stay_in_their_line() -> None:
    """A group id with a newline wrote a line of its own, as if it were another record."""
    key = pack(">hh", 2, 9) + b"g\nFAKE\x1b[0"
    assert read_entry(Record("__consumer_offsets", 22, 105, 0, 0, key, None, ())).line().endswith("  g\\nFAKE\\x1b[0")
