"""Writing a table to topics, from a batch or a stream: Arrow batches in, record batches out, in each task.

At least once: a task that is run again writes its rows again; within one try, retries are stored once. While one
Arrow batch is on its way to the brokers, the next is encoded.
Nothing is kept on the driver: Spark builds a new writer for every batch of a stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from partita.spark.cluster.broker_link import link_to
from partita.spark.options import SinkOptions
from partita.spark.worker_memory import settle
from partita.spark.writing.topic_producer import TopicProducer, produce_settings

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RowsWritten(WriterCommitMessage):
    """What a task tells the driver."""

    rows: int


class TopicArrowWriter(DataSourceArrowWriter):
    """The batch write."""

    def __init__(self, options: SinkOptions) -> None:
        produce_settings(options.client)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; returns when the brokers have them."""
        return write_rows(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: rows are visible as soon as they are written."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing can be taken back."""


class TopicStreamArrowWriter(DataSourceStreamArrowWriter):
    """The streaming write."""

    def __init__(self, options: SinkOptions) -> None:
        produce_settings(options.client)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; returns when the brokers have them."""
        return write_rows(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: rows are visible as soon as they are written."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing can be taken back."""


def write_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> RowsWritten:
    """Write all rows of one task and wait until the brokers have them."""
    from partita.spark.writing.row_batches import RowBatches

    settings = produce_settings(options.client)
    link = link_to(options.client)
    producer = TopicProducer(link.cluster, settings)
    packer = RowBatches(
        topic=options.topic,
        codec=settings.codec,
        batch_bytes=settings.batch_bytes,
        level=settings.level,
        ignore_keys=settings.ignore_keys,
    )
    pending: Future[None] | None = None
    rows = 0

    def count_of(topic: str, at_least: int) -> int:
        return link.call(producer.partition_count(topic, at_least))

    for batch in batches:
        if not batch.num_rows:
            continue
        if not rows:
            link.call(producer.start())
        built = packer.build(batch, count_of, time.time_ns() // 1_000_000)
        if pending is not None:
            pending.result()
        pending = link.submit(producer.send(built))
        rows += batch.num_rows
    if pending is not None:
        pending.result()
    settle()
    return RowsWritten(rows)
