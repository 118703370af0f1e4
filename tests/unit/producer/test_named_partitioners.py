"""Partitioners by librdkafka's names put each key where confluent-kafka puts it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import confluent_kafka
import pytest

from partita import Broker
from partita.producer.named_partitioners import NAMED, Partitioner, crc32, fnv1a
from unit.producer.test_producer_core import World

PARTITIONS = 13
KEYS = [b"", b"a", b"key", "schlüssel".encode(), b"\xff\x80\x00", *(Random(3).randbytes(size) for size in range(1, 60))]
"""Their FNV hashes have either sign."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(num_partitions=PARTITIONS) as broker:
        yield broker.bootstrap


def confluents(bootstrap: str, name: str, keys: list[Any]) -> list[int]:
    """Where confluent-kafka puts records with these keys."""
    told: dict[int, Any] = {}

    def tell(number: int, error: object, message: confluent_kafka.Message) -> None:
        told[number] = message.partition()

    settings = {"bootstrap.servers": bootstrap, "partitioner": name, "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    for number, key in enumerate(keys):
        producer.produce("t", b"v", key=key, on_delivery=partial(tell, number))
    deadline = time.monotonic() + 60
    while len(told) < len(keys):
        assert time.monotonic() < deadline
        producer.flush(1)
    return [told[number] for number in range(len(keys))]


@pytest.mark.parametrize(
    "name", ["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]
)
def test_each_key_goes_where_librdkafka_puts_it(bootstrap: str, name: str) -> None:
    keys = KEYS if name != "consistent_random" else KEYS[1:]
    world = World(leaders=(1,) * PARTITIONS, partitioner_class=name, batch_size=1)
    assert [world.chosen(key=key) for key in keys] == confluents(bootstrap, name, keys)


@pytest.mark.parametrize("name", ["consistent", "murmur2", "fnv1a"])
def test_records_without_key_share_a_partition_unless_the_name_says_random(bootstrap: str, name: str) -> None:
    partitioner = NAMED[name]
    assert partitioner is not None
    mine = partitioner("t", None, b"v", PARTITIONS)
    assert set(confluents(bootstrap, name, [None] * 5)) == {mine}
    if name != "murmur2":
        random: Partitioner | None = NAMED[f"{name}_random"]
        assert random is not None
        assert random("t", None, b"v", PARTITIONS) is None


@pytest.mark.parametrize("name", ["consistent_random", "murmur2_random", "fnv1a_random", "random"])
def test_what_is_left_to_chance_sticks_to_a_partition_for_a_batch(name: str) -> None:
    world = World(leaders=(1,) * 3, partitioner_class=name, draw=lambda bound: bound - 1)
    assert {world.chosen() for _ in range(9)} == {2}
    if name == "random":
        assert {world.chosen(key=b"%d" % n) for n in range(9)} == {2}
    if name == "consistent_random":
        assert world.chosen(key=b"") == 2


def test_hashes_are_those_that_others_publish() -> None:
    assert crc32(b"123456789") == 0xCBF43926
    assert fnv1a(b"") == 0x100000000 - 0x811C9DC5
    assert fnv1a(b"a") == 0x100000000 - 0xE40C292C
    assert fnv1a(b"foobar") == 0x100000000 - 0xBF9CF968
