"""Which partition holds a group, against Kafka's own answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.group import partition_for

VECTORS = Path(__file__).parents[2] / "vectors" / "coordinator-hash.jsonl"


@pytest.mark.case("GC-A08")
def test_every_hash_is_javas() -> None:
    count = 0
    for line in VECTORS.read_text().splitlines():
        case = json.loads(line)
        for partitions, answer in case["partitions"].items():
            assert partition_for(case["group_id"], int(partitions)) == answer, case
            count += 1
    assert count > 4000


@pytest.mark.case("GC-A01", "GC-A02", "GC-A03", "GC-A04", "GC-A05", "GC-A06", "GC-A07")
@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("test", 48),
        ("my-group", 12),
        ("mykafka-group", 22),
        ("polygenelubricants", 0),
        ("", 0),
        ("消费者组", 38),
        ("😀group", 32),
    ],
)
def test_a_group_has_the_partition_that_kafka_gives_it(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition
