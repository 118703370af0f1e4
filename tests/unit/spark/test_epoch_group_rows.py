"""Groups with epochs as tables: Kafka's own bytes, and what changes from one record to the next. Issue 31, item 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partita.group.records import consumer_log as log
from partita.group.records.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember
from partita.spark.reading import epoch_group_rows
from support.spark.cluster import MemoryCluster
from unit.spark.test_group_views import Pair, generation, member, seen

VECTORS = Path(__file__).parents[2] / "vectors" / "group-log.jsonl"
T, GONE = (1).to_bytes(16, "big"), b"\xfe" * 16


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = MemoryCluster()
    cluster.create("t", 0, 0, 0)
    return cluster


def held(name: str, epoch: int, *partitions: int, topic_id: bytes = T, **properties: Any) -> ConsumerMember:
    assigned = {(topic_id, partition): epoch for partition in partitions}
    return ConsumerMember(name, epoch=epoch, assigned=assigned, client_id="c", topics=("t",), **properties)


def pairs_of(*records: Any) -> list[Pair]:
    return [(record.key, record.value) for record in records]


def targets(epoch: int, at_ms: int = 0, **members: tuple[int, ...]) -> list[Pair]:
    aims = [log.target_record("k", name, [(T, p) for p in partitions]) for name, partitions in members.items()]
    return pairs_of(*aims, log.target_epoch_record("k", epoch, at_ms))


def joined(one: ConsumerMember) -> list[Pair]:
    return pairs_of(log.member_record("k", one), log.assignment_record("k", one))


def test_kafkas_own_bytes_of_the_epochs_of_three_protocols() -> None:
    cases = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    for kind, protocol in epoch_group_rows.EPOCHS.items():
        given = [c for c in cases if c.get("key_id") == kind and c.get("value_hex")]
        rows = seen("groups", [(bytes.fromhex(c["key_hex"]), bytes.fromhex(c["value_hex"])) for c in given])
        assert [(r["group"], r["generation"], r["protocol"], r["unknownValue"]) for r in rows] == [
            (c["key"]["groupId"], c["value"]["epoch"], protocol, None) for c in given
        ]
        assert rows, kind
    members = [c for c in cases if c.get("key_id") in epoch_group_rows.MEMBERS]
    assert seen("groups", [(bytes.fromhex(c["key_hex"]), b"\x00\x00") for c in members]) == []


def test_a_group_has_a_row_for_each_epoch_with_its_members_then() -> None:
    a, b = held("a", 2), held("b", 3)
    pairs = [
        *joined(a), *pairs_of(log.epoch_record("k", 2, 7)),
        *joined(b), *pairs_of(log.epoch_record("k", 3, 7)),
        *pairs_of(*log.member_tombstones("k", "a"), log.epoch_record("k", 4, 7)),
        generation(9, member("classic"), group="old"),
        *pairs_of(*log.group_tombstones(ConsumerGroup("k"))),
    ]  # fmt: skip
    rows = seen("groups", pairs)
    assert [(r["group"], r["generation"], r["memberCount"], r["protocol"], r["isTombstone"]) for r in rows] == [
        ("k", 2, 1, "consumer", False),
        ("k", 3, 2, "consumer", False),
        ("k", 4, 1, "consumer", False),
        ("old", 9, 1, "range", False),
        ("k", None, None, None, True),
    ]


def test_members_and_what_they_hold(cluster: MemoryCluster) -> None:
    classic = ClassicPart(45_000, (("range", b""),))
    a = held("a", 2, 0, 2, instance_id="desk", rebalance_timeout_ms=300, classic=classic)
    gone = held("b", 2, 1, topic_id=GONE)
    pairs = [*joined(a), *joined(gone), *pairs_of(log.assignment_record("k", held("a", 3, 1)))]
    rows = seen("members", pairs, cluster=cluster)
    assert [(r["memberId"], r["generation"], r["partitionCount"], r["groupInstanceId"]) for r in rows] == [
        ("a", 2, 2, "desk"), ("b", 2, 1, None), ("a", 3, 1, "desk"),
    ]  # fmt: skip
    assert (rows[0]["sessionTimeoutMs"], rows[0]["rebalanceTimeoutMs"], rows[0]["topics"]) == (45_000, 300, ["t"])
    parts = [
        (r["memberId"], r["topic"], r["partition"], r["generation"])
        for r in seen("assignments", pairs, cluster=cluster)
    ]
    gone_name = "_v7-_v7-_v7-_v7-_v7-_g"
    assert parts == [("a", "t", 0, 2), ("a", "t", 2, 2), ("b", gone_name, 1, 2), ("a", "t", 1, 3)]


def test_a_member_whose_properties_change_has_a_row_of_its_present_epoch(cluster: MemoryCluster) -> None:
    """Compaction may leave the properties behind the assignment."""
    pairs = [*reversed(joined(held("a", 2, 0)))]
    before, after = seen("members", pairs, cluster=cluster)
    assert (before["generation"], before["clientId"], after["generation"], after["clientId"]) == (2, "", 2, "c")


def test_a_rebalance_is_a_new_target(cluster: MemoryCluster) -> None:
    pairs = [
        *joined(held("a", 1)), *targets(2, 1_000, a=(0, 1)),
        *joined(held("b", 1)), *targets(3, 4_000, a=(0,), b=(1,)),
        *pairs_of(*log.member_tombstones("k", "a")), *targets(5, 0, b=(1,)),
    ]  # fmt: skip
    first, second, third = seen("rebalances", pairs, cluster=cluster)
    assert (first["generation"], first["previousGeneration"], first["added"], first["moved"]) == (2, 1, ["a"], [])
    assert (second["added"], second["removed"], second["moved"], second["sincePreviousMs"]) == (
        ["b"], [], ["t-1"], 3000,
    )  # fmt: skip
    assert (third["removed"], third["unassigned"], third["memberCount"], third["previousGeneration"]) == (
        ["a"], ["t-0"], 1, 3,
    )  # fmt: skip
    assert seen("rebalances", targets(9, a=(0,)), cluster=cluster) == [], "what was before is not in the log"


@pytest.mark.parametrize("value", [b"\x00\x09new", b"\x00", b"", b"\x00\x00\x01"])
def test_values_of_another_version_are_kept_raw_and_never_fail(value: bytes) -> None:
    key = log.epoch_record("k", 1, 0).key
    (row,) = seen("groups", [(key, value), (b"\x00\x05\x00\x50x", value), (b"\x00\x03", value)])
    assert (row["group"], row["unknownValue"], row["generation"], row["memberCount"]) == ("k", value, None, None)
    damaged: list[Pair] = [(bytes((0, kind)) + key[2:] + b"\x00\x01a", value) for kind in range(3, 24)]
    for view in ("members", "assignments", "rebalances"):
        assert seen(view, damaged) == []
