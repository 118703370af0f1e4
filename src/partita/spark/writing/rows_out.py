"""Send the Arrow batches of one task: while some are on their way to the brokers, the next is encoded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from random import randrange
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.settings.options import SinkOptions
from partita.spark.spark_api import WriterCommitMessage
from partita.spark.worker_process import settle
from partita.spark.writing.topic_producer import TopicProducer

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.spark.writing import row_batches
else:
    row_batches = later("partita.spark.writing.row_batches")

TURNS = 1 << 30
"""First partitions of keyless rows: many more than a topic has partitions."""


@dataclass
class RowsWritten(WriterCommitMessage):
    """A task's report to the driver. `topic` is one that it wrote to, None without rows."""

    rows: int
    topic: str | None = None


def packer_of(options: SinkOptions) -> row_batches.RowBatches:
    """Return the sink's row packer; keyless rows begin with a random partition, as tasks are many and small."""
    settings = options.produce
    return row_batches.RowBatches(
        topic=options.topic,
        codec=settings.codec,
        batch_bytes=settings.batch_bytes,
        level=settings.level,
        ignore_keys=settings.ignore_keys,
        turn=randrange(TURNS),
    )


def send_rows(
    link: BrokerLink, producer: TopicProducer, packer: row_batches.RowBatches, batches: Iterator[pa.RecordBatch]
) -> RowsWritten:
    """Send all rows and wait until the brokers have them. After an error nothing is under way any more."""
    pending: Future[None] | None = None
    rows = 0
    topic: str | None = None

    def count_of(topic: str, at_least: int) -> int:
        return link.call(producer.partition_count(topic, at_least))

    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            if not rows:
                link.call(producer.start())
            built = packer.build(batch, count_of, time.time_ns() // 1_000_000)
            topic = topic or next(iter(built))[0]
            if pending is not None:
                pending.result()
            pending = link.submit(producer.send(built))
            rows += batch.num_rows
        if pending is not None:
            pending.result()
            link.call(producer.flush())
    finally:
        if pending is not None:
            pending.cancel()
            link.call(producer.stop())
    settle()
    return RowsWritten(rows, topic)
