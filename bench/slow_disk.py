"""An honest client on a broker whose disk takes a second per sync, while others make it sync: the canary's latency.

    python bench/slow_disk.py

The goal is a 99th percentile below 100 ms (issue 9, finding B10), under `os`, where an answer waits for no sync.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from contextlib import suppress
from itertools import count

from canary import Canary
from harness import Server, process, report, wait_for_port

from partita.designs.zookeeper.ports import free_ports
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch
from support.broker.raw import Raw

SYNC_SECONDS, SECONDS, GOAL_MS = 1.0, 20.0, 100.0
SLOW_BROKER = f"""
import os, sys, time
def slowed(sync):
    def slow(fd):
        time.sleep({SYNC_SECONDS})
        sync(fd)
    return slow
os.fsync, os.fdatasync = slowed(os.fsync), slowed(os.fdatasync)
sys.argv = ["partita", *sys.argv[1:]]
from partita.cli.main import main
main()
"""


def make_it_sync(port: int, name: str, over: threading.Event) -> None:
    """Topics that come and go, first records of partitions, segments that roll, blocks of producer ids, new shards."""
    small = [CreatableTopicConfig(name="segment.bytes", value=str(1 << 20))]
    records = build_batch([(0, None, bytes(700_000), [])])
    with Raw(port, "busy") as raw, suppress(EOFError, OSError):
        raw.socket.settimeout(120)
        for i in count():
            topic = f"{name}-{i}"
            new = CreatableTopic(name=topic, num_partitions=2, replication_factor=1, configs=small)
            raw.ask(CreateTopicsRequest(topics=[new]), 5)
            for partition in (0, 1, 0, 1, 0, 1):
                data = [PartitionProduceData(index=partition, records=records)]
                topics = [TopicProduceData(name=topic, partition_data=data)]
                raw.ask(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics), 8)
            raw.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 2)
            raw.find(topic)
            raw.commit(topic, 1, topic=topic)
            if i % 2:
                raw.ask(DeleteTopicsRequest(topic_names=[f"{name}-{i - 1}"], timeout_ms=60_000), 4)
            if over.is_set():
                return


def main() -> int:
    """Measure and print; 1 when the goal is missed."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        options = ["broker", "--port", str(port), "--data-dir", f"{folder}/data", "--durability", "os"]
        with process([sys.executable, "-c", SLOW_BROKER, *options]) as running:
            wait_for_port(port)
            canary = Canary(Server("partita", running.pid, port))
            over = threading.Event()
            busy = [threading.Thread(target=make_it_sync, args=(port, name, over), daemon=True) for name in "ab"]
            for thread in busy:
                thread.start()
            canary.start()
            over.wait(SECONDS)
            seen = canary.stop()
            over.set()
            canary.close()
    report(
        "slow_disk", **{"s per sync": SYNC_SECONDS, "answers": seen.answers, "p99 ms": round(seen.p99_ms, 1),
        "worst ms": round(seen.max_ms, 1), "slowest": seen.slowest, "refused": seen.refused,
        "waited for a core ms": round(seen.queued_ms), "goal ms": GOAL_MS},
    )  # fmt: skip
    return int(seen.p99_ms > GOAL_MS or bool(seen.refused))


if __name__ == "__main__":
    sys.exit(main())
