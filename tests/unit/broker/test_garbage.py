"""Garbage collection in a broker's process, and that its requests leave none."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from partita import Broker
from partita.broker.garbage import WHOLE_SECONDS_MIN, WHOLE_SHARE, GarbageCollection
from partita.broker.requests.dispatch import QUICK_ELEMENTS
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw


@pytest.fixture
def python_own_schedule() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Later:
    """A loop that notes when it is to call what."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    def call_later(self, delay: float, callback: object) -> None:
        self.delays.append(delay)


@pytest.mark.usefixtures("python_own_schedule")
def test_everything_is_looked_at_the_more_rarely_the_longer_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """H34: a collection of everything holds up whoever asks."""
    now = iter([0.0, 0.001, 10.0, 10.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    loop = Later()
    collection = GarbageCollection(loop)  # type: ignore[arg-type]  # all it asks of a loop
    collection.start()
    assert gc.get_threshold()[2] > 1_000_000
    collection.collect()
    collection.collect()
    assert loop.delays == [WHOLE_SECONDS_MIN, WHOLE_SECONDS_MIN, pytest.approx(0.5 * WHOLE_SHARE)]


def test_requests_leave_no_reference_cycles() -> None:
    """So nothing piles up between two collections of everything: produce, fetch, long polls, groups, large requests."""
    keys = FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{n}" for n in range(2 * QUICK_ELEMENTS)])
    data = [PartitionProduceData(index=0, records=build_batch([(0, b"k", b"v", ())]))]
    produce = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1)])]
    fetch = FetchRequest(max_wait_ms=1, min_bytes=1 << 20, max_bytes=1 << 20, topics=wanted, session_epoch=0)

    def ask_everything(port: int) -> None:
        with Raw(port) as raw:
            raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 1)
            raw.ask(produce, 9)
            raw.ask(fetch, 11)
            raw.ask(keys, 4)
            raw.commit("offsets", 1)

    with Broker() as broker:
        ask_everything(broker.port)
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                ask_everything(broker.port)
            broker.run(lambda: None)
            assert broker.call(asyncio.sleep(0, "the last connections are gone"))
            found = gc.collect()
        finally:
            gc.enable()
    assert found < 20, "no more than one object for each round"
