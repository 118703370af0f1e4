"""Child process: one member of the plain group. Processes flights and commits once a second.

Run as `python -m partita.demo.member BOOTSTRAP NAME`. Every processed range is told to the parent before it is
committed, so that the parent sees what a killed member had done.
"""

from __future__ import annotations

import json
import sys
import time

from partita import Consumer
from partita.consumer.listener import RebalanceListener
from partita.consumer.topic_partition import TopicPartition
from partita.demo.worker import FLIGHTS, SESSION_TIMEOUT_MS, WATCHERS, say, until_told

COMMIT_EVERY_S = 1.0


class Ownership(RebalanceListener):
    """Tells the parent what this member gains and gives up; what is lost counts as revoked."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Tell the runner which partitions this member got."""
        say("assigned", partitions=sorted(tp.partition for tp in partitions))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Tell the runner which partitions this member gave up."""
        say("revoked", partitions=sorted(tp.partition for tp in partitions))


def main(bootstrap: str, name: str) -> None:
    """Consume until told to stop, reporting what was read."""
    told = until_told()
    consumer = Consumer(
        bootstrap_servers=bootstrap, group_id=WATCHERS, client_id=name, auto_offset_reset="earliest",
        enable_auto_commit=False, session_timeout_ms=SESSION_TIMEOUT_MS, heartbeat_interval_ms=1000,
        max_poll_records=2000, partition_assignment_strategy=["range"],
    )  # fmt: skip
    with consumer:
        consumer.subscribe([FLIGHTS], listener=Ownership())
        committed_at = time.monotonic()
        while not told.is_set():
            ranges: dict[int, list[int]] = {}
            for record in consumer.poll(timeout=0.2):
                assert isinstance(record.value, bytes)
                json.loads(record.value)
                span = ranges.setdefault(record.partition, [record.offset, record.offset])
                span[1] = record.offset + 1
            if ranges:
                say("processed", ranges=[[number, *span] for number, span in ranges.items()])
            if time.monotonic() - committed_at >= COMMIT_EVERY_S:
                consumer.commit()
                committed_at = time.monotonic()
        consumer.commit()
    say("left")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
