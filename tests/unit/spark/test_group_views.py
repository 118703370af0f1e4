"""The records of groups as tables: Kafka's own bytes of every version, and what changes from one to the next.

Issue 13, item 2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from partita.assignors.interface import Subscription
from partita.assignors.payloads import encode_assignment, encode_subscription
from partita.group.records.log_records import CommittedOffset, group_key, group_value, offset_key, offset_value
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.spark.reading.tables import read_schema
from partita.spark.reading.views import decoder
from partita.spark.settings import table as option_table
from support.spark.cluster import MemoryCluster

VECTORS = Path(__file__).parents[2] / "vectors"
Pair = tuple[bytes | None, bytes | None]


def log_of(pairs: list[Pair]) -> pa.RecordBatch:
    count = len(pairs)
    return pa.record_batch(
        {
            "key": pa.array([key for key, _ in pairs], pa.binary()),
            "value": pa.array([value for _, value in pairs], pa.binary()),
            "partition": pa.array([5] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
        }
    )


def seen(view: str, *batches: list[Pair], cluster: MemoryCluster | None = None) -> list[dict[str, Any]]:
    schema = to_arrow_schema(read_schema(option_table.VIEWS[view]), timezone="UTC")
    decode = decoder(view, cluster or MemoryCluster())
    found = [decode(log_of(pairs), schema) for pairs in batches]
    assert all(batch.schema == schema for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def member(name: str, *partitions: int, static: str | None = None, user_data: bytes | None = None) -> Any:
    return GroupMetadataValueMember(
        member_id=name, group_instance_id=static, client_id="client", client_host="/127.0.0.1", rebalance_timeout=300,
        session_timeout=45, subscription=encode_subscription(Subscription(topics=("t",), user_data=user_data)),
        assignment=encode_assignment([("t", partition) for partition in partitions]),
    )  # fmt: skip


def generation(number: int, *members: Any, at_ms: int = 1000, group: str = "g") -> Pair:
    value = GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol="range", leader=members[0].member_id if members else None,
        current_state_timestamp=at_ms, members=list(members),
    )  # fmt: skip
    return group_key(group), group_value(value)


def test_kafkas_own_bytes_of_every_version() -> None:
    lines = (VECTORS / "group-log.jsonl").read_text().splitlines()
    cases = [c for c in map(json.loads, lines) if c.get("key_id") == 2 and c.get("value_hex") and "value" in c]
    assert len({c["value_version"] for c in cases}) >= 4
    pairs: list[Pair] = [(bytes.fromhex(c["key_hex"]), bytes.fromhex(c["value_hex"])) for c in cases]
    rows = seen("groups", pairs)
    assert [row["group"] for row in rows] == [c["key"]["group"] for c in cases]
    for row, case in zip(rows, cases, strict=True):
        value = case["value"]
        assert (row["generation"], row["leader"], row["protocol"]) == (
            value["generation"], value["leader"], value["protocol"],
        )  # fmt: skip
        assert row["memberCount"] == len(value["members"])
        assert row["unknownValue"] is None
    assert len(seen("members", pairs)) == sum(len(c["value"]["members"]) for c in cases)


def test_members_and_what_they_hold() -> None:
    pairs = [generation(3, member("a-1", 0, 2, user_data=b"xyz"), member("b-1", 1, static="b"))]
    first, second = seen("members", pairs)
    assert (first["memberId"], first["isLeader"], first["topics"], first["partitionCount"]) == ("a-1", True, ["t"], 2)
    assert (first["userDataBytes"], first["sessionTimeoutMs"], first["rebalanceTimeoutMs"]) == (3, 45, 300)
    assert (second["groupInstanceId"], second["isLeader"]) == ("b", False)
    held = [(row["memberId"], row["topic"], row["partition"]) for row in seen("assignments", pairs)]
    assert held == [("a-1", "t", 0), ("a-1", "t", 2), ("b-1", "t", 1)]


def test_rebalances_compare_generations_across_batches() -> None:
    a, b = member("a-1", 0, 1), member("b-1", 2)
    rows = seen(
        "rebalances",
        [generation(1, a), generation(1, b, group="other")],
        [generation(2, member("a-1", 0), member("b-1", 1), at_ms=4000)],
        [generation(5, member("b-1", 0, 1), at_ms=9000), (group_key("g"), None), generation(1, a)],
    )
    assert [(r["group"], r["previousGeneration"], r["generation"]) for r in rows] == [("g", 1, 2), ("g", 2, 5)]
    joined, left = rows
    assert (joined["added"], joined["removed"], joined["moved"], joined["sincePreviousMs"]) == (
        ["b-1"], [], ["t-1"], 3000,
    )  # fmt: skip
    assert (left["added"], left["removed"], left["moved"], left["unassigned"]) == ([], ["a-1"], ["t-0"], [])
    assert left["stateTime"].timestamp() == 9


@pytest.mark.parametrize("value", [b"\x00\x09new", b"\x00", b"\x00\x03\x7f\xff", b"\x00\x03\x00\x01\xff"])
def test_values_that_nobody_knows_are_kept_raw_and_never_fail(value: bytes) -> None:
    pairs: list[Pair] = [(group_key("g"), value), (b"\x00\x02\x00\x50x", value), (None, value), (b"\x01", None)]
    (row,) = seen("groups", pairs)
    assert (row["group"], row["unknownValue"], row["generation"], row["isTombstone"]) == ("g", value, None, False)
    assert seen("members", pairs) == seen("assignments", pairs) == seen("rebalances", pairs) == []
    assert [raw["value"] for raw in seen("group_log", pairs)] == [value, value, value, None]


def test_other_kinds_are_in_the_raw_view_with_their_group() -> None:
    consumer_group = b"\x00\x03\x00\x02kg"
    rows = seen("group_log", [(consumer_group, b"\x00\x00abc"), generation(1)])
    assert [(row["group"], row["keyVersion"], row["valueVersion"]) for row in rows] == [("kg", 3, 0), ("g", 2, 3)]


def test_the_lineage_of_commits_names_query_and_batch() -> None:
    def commit(metadata: str) -> Pair:
        return offset_key("g", "t", 3), offset_value(CommittedOffset(9, 0, metadata, 1000, -1, bytes(16)))

    rows = seen("commit_lineage", [commit("spark:delays:41"), commit("by hand"), commit("spark:x"), generation(1)])
    (row,) = rows
    assert (row["query"], row["batch"], row["offset"], row["partition"], row["logOffset"]) == ("delays", 41, 9, 3, 0)
