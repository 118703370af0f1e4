"""The log of committed offsets as rows: Kafka's own bytes, and those of our own coordinator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from partita.group.records.log_records import CommittedOffset, group_key, offset_key, offset_value
from partita.spark.reading.offset_commits import offset_commits

VECTORS = Path(__file__).parents[2] / "vectors"


def decoded(pairs: list[tuple[bytes | None, bytes | None]]) -> list[dict[str, Any]]:
    count = len(pairs)
    batch = pa.record_batch(
        {
            "key": pa.array([key for key, _ in pairs], pa.binary()),
            "value": pa.array([value for _, value in pairs], pa.binary()),
            "partition": pa.array([5] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
        }
    )
    rows: list[dict[str, Any]] = offset_commits(batch.slice(0)).to_pylist()
    return rows


def milliseconds(row: dict[str, Any], name: str) -> int | None:
    return None if row[name] is None else round(row[name].timestamp() * 1000)


def test_kafkas_own_bytes_of_every_version() -> None:
    lines = (VECTORS / "group-log.jsonl").read_text().splitlines()
    cases = [c for c in map(json.loads, lines) if c.get("key_id") in (0, 1) and c.get("value_hex") and "value" in c]
    rows = decoded([(bytes.fromhex(c["key_hex"]), bytes.fromhex(c["value_hex"])) for c in cases])
    assert {c["value_version"] for c in cases} == {0, 1, 2, 3, 4}
    assert len(rows) == len(cases)
    for case, row in zip(cases, rows, strict=True):
        key, value = case["key"], case["value"]
        assert (row["group"], row["topic"], row["partition"]) == (key["group"], key["topic"], key["partition"])
        assert (row["offset"], row["metadata"]) == (value["offset"], value["metadata"])
        epoch = value.get("leaderEpoch", -1)
        assert row["leaderEpoch"] == (epoch if epoch >= 0 else None)
        assert not row["isTombstone"]
        assert row["unknownValue"] is None


commits = st.builds(
    CommittedOffset,
    offset=st.integers(0, 2**63 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=300),
    commit_ms=st.integers(0, 4_000_000_000_000),
    expire_ms=st.sampled_from([-1, 4_000_000_000_000]),
    topic_id=st.sampled_from([bytes(16), bytes(range(16))]),
)


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20), st.integers(0, 999), st.none() | commits)))
def test_what_a_coordinator_writes_is_read(rows: list[tuple[str, str, int, CommittedOffset | None]]) -> None:
    pairs = [(offset_key(g, t, p), None if c is None else offset_value(c)) for g, t, p, c in rows]
    for row, (group, topic, partition, commit) in zip(decoded([*pairs]), rows, strict=True):
        assert (row["group"], row["topic"], row["partition"]) == (group, topic, partition)
        assert row["isTombstone"] == (commit is None)
        if commit is None:
            assert (row["offset"], row["metadata"], row["commitTime"]) == (None, None, None)
            continue
        keeps_epoch = commit.expire_ms == -1 and commit.leader_epoch >= 0
        assert row["leaderEpoch"] == (commit.leader_epoch if keeps_epoch else None)
        assert (row["offset"], row["metadata"]) == (commit.offset, commit.metadata)
        assert milliseconds(row, "commitTime") == commit.commit_ms
        assert milliseconds(row, "expireTime") == (None if commit.expire_ms == -1 else commit.expire_ms)


def test_other_records_are_left_out_and_unknown_versions_kept_raw() -> None:
    key, new = offset_key("g", "t", 3), b"\x00\x09" + bytes(20)
    rows = decoded([(group_key("g"), b"\x00\x03"), (None, b"x"), (b"\x00", None), (key, new), (key, b"\x00\x01\x02")])
    assert [(row["logOffset"], row["group"], row["offset"], row["unknownValue"]) for row in rows] == [
        (3, "g", None, new),
        (4, "g", None, b"\x00\x01\x02"),
    ]


def test_damaged_lengths_lead_to_no_bytes_of_other_cells() -> None:
    """A size below zero or beyond the cell is cut, in keys and in the metadata."""
    good = offset_key("g", "t", 3)
    sizes = (b"\x80\x00", b"\xff\xff", b"\x7f\xff")
    keys = [b"\x00\x01" + size + good[4:] for size in sizes]
    value = b"\x00\x03" + bytes(12) + b"\x80\x00" + bytes(8)
    long = b"\x00\x03" + bytes(12) + b"\x7f\xff" + b"m" * 8
    rows = decoded([*((key, value) for key in keys), (good, long)])
    assert [row["group"] for row in rows] == ["", "", (good[4:]).decode(), "g"]
    assert [row["metadata"] for row in rows] == ["", "", "", "m" * 8]
