"""Upkeep of many logs: one that cannot be kept in order does not keep the others from it."""

from __future__ import annotations

from functools import partial
from struct import pack_into

import pytest

from partita import Broker
from partita.log.partition_log import PartitionLog
from partita.records.checksum import crc32c
from support.log.logs import at, pairs


def garbled(batch: bytes) -> bytes:
    """The batch with a payload that no codec can read, and the checksum of that."""
    copy = bytearray(batch)
    copy[61:] = b"\xff" * (len(copy) - 61)
    pack_into(">I", copy, 17, crc32c(memoryview(copy)[21:]))
    return bytes(copy)


def test_an_unreadable_batch_keeps_only_its_own_log_from_being_compacted(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:

        def log_of(name: str) -> PartitionLog:
            topic = broker.cluster.create_topic(name, 1, 1)
            broker.cluster.catalogue.configure(topic, {"cleanup.policy": ("compact",)})
            return topic.partitions[0].log

        bad, good = broker.run(lambda: log_of("bad")), broker.run(lambda: log_of("good"))
        for value in ("old", "new"):
            broker.run(partial(good.append, pairs(("k", value)), 0, at(0)))
        broker.run(lambda: bad.append(garbled(pairs(("k", "v"), codec=1)), 0, at(0)))
        size = good.segments[0].size
        assert broker.call(broker.running.upkeep.compact_now(force=True)) == 1
        assert good.segments[0].size < size
        assert bad.log_start_offset == 0
        assert "compaction of" in caplog.text


def test_a_jump_of_the_clock_applies_retention() -> None:
    """Newcomer finding T2: what became due in the time that was passed over happens before the call returns."""
    with Broker() as broker:

        def kept() -> PartitionLog:
            topic = broker.cluster.create_topic("t", 1, 1)
            broker.cluster.catalogue.configure(topic, {"retention.ms": 60_000})
            return topic.partitions[0].log

        log = broker.run(kept)
        clock = broker.cluster.clock
        broker.run(lambda: log.append(pairs(("k", "v"), ms=clock.now().wall_ms - at(0).wall_ms), 0, clock.now()))
        broker.control.advance_clock(1_000)
        assert log.log_start_offset == 0
        broker.control.advance_clock(600_000)
        assert log.log_start_offset == 1
