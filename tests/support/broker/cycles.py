"""Prints what a broker leaves to the garbage collection. Run as a program: only then is all garbage its own."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from partita import Broker
from partita.broker.requests.dispatch import QUICK_ELEMENTS
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw

ROUNDS = 20


def ask_everything(port: int) -> None:
    """Produce, a fetch that waits, a large request, a commit of a group: on one connection that then ends."""
    keys = FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{n}" for n in range(2 * QUICK_ELEMENTS)])
    data = [PartitionProduceData(index=0, records=build_batch([(0, b"k", b"v", ())]))]
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1)])]
    with Raw(port) as raw:
        raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 1)
        raw.ask(
            ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)]), 9
        )
        raw.ask(FetchRequest(max_wait_ms=1, min_bytes=1 << 20, max_bytes=1 << 20, topics=wanted, session_epoch=0), 11)
        raw.ask(keys, 4)
        raw.commit("offsets", 1)


def left_by_requests() -> dict[str, int]:
    """How many objects of which type are in cycles after `ROUNDS` rounds."""
    with Broker() as broker:
        ask_everything(broker.port)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        for _ in range(ROUNDS):
            ask_everything(broker.port)
        broker.run(lambda: None)
        assert broker.call(asyncio.sleep(0, "the last connections are gone"))
        gc.collect()
        gc.set_debug(0)
        return dict(Counter(type(each).__qualname__ for each in gc.garbage))


if __name__ == "__main__":
    print(json.dumps(left_by_requests()))
