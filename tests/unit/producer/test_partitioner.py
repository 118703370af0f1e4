import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from partita.producer.partitioner import StickyPartitioner, murmur2, partition_for_key
from support.every_case import every_case

VECTORS = [
    json.loads(line) for line in (Path(__file__).parents[2] / "vectors" / "murmur2.jsonl").read_text().splitlines()
]


@every_case("vector", VECTORS, lambda vector: vector["key"][:24] or "empty")
def test_keys_hash_to_kafkas_partitions(vector: dict[str, Any]) -> None:
    key = bytes.fromhex(vector["key"])
    assert murmur2(key) == vector["murmur2"] & 0xFFFFFFFF
    for count, partition in vector["partitions"].items():
        assert partition_for_key(key, int(count)) == partition


def share(
    partitioner: StickyPartitioner,
    records: int,
    size: int,
    sizes: Callable[[int], int] | None = None,
    available: tuple[int, int, int] = (0, 1, 2),
) -> list[int]:
    """The partitions of `records` records of `size` bytes each."""
    got = []
    for _ in range(records):
        partition = partitioner.current(1)
        if partition < 0:
            partition = partitioner.switch(available, sizes, 1)
        partitioner.sent(partition, size)
        got.append(partition)
    return got


def test_records_without_key_stick_to_a_partition_for_a_batch() -> None:
    got = share(StickyPartitioner(100, Random(1).randrange), 40, 25)
    assert all(len(set(got[start : start + 4])) == 1 for start in range(0, 40, 4))
    assert set(got) == {0, 1, 2}


def test_a_longer_queue_is_drawn_less_often() -> None:
    sizes = {0: 0, 1: 0, 2: 9}.__getitem__
    counts = Counter(share(StickyPartitioner(1, Random(1).randrange), 2000, 1, sizes))
    assert counts[2] * 5 < counts[0]
    assert counts[2] > 0


def test_a_partition_that_lost_its_leader_is_left_at_once() -> None:
    partitioner = StickyPartitioner(1000, Random(1).randrange)
    (first,) = share(partitioner, 1, 1)
    others = [partition for partition in (0, 1, 2) if partition != first]
    assert partitioner.current(2) == -1
    assert partitioner.switch(others, None, 2) in others
