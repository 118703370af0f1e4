"""Writing a table to topics, from a batch or a stream: Arrow batches in, record batches out, in each task.

At least once: a task that is run again writes its rows again; within one try, retries are stored once. With
exactlyOnce=true a stream writes as `partita.spark.writing.exactly_once` says.
Nothing is kept on the driver: Spark builds a new writer for every batch of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partita.options import ConfigError
from partita.spark.cluster.broker_link import link_to
from partita.spark.settings.options import SinkOptions
from partita.spark.spark_api import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from partita.spark.worker_process import SentToWorkers, settle
from partita.spark.writing import exactly_once
from partita.spark.writing.rows_out import RowsWritten, packer_of, send_rows
from partita.spark.writing.topic_producer import TopicProducer

if TYPE_CHECKING:
    import pyarrow as pa


class TopicArrowWriter(SentToWorkers, DataSourceArrowWriter):
    """The batch write."""

    def __init__(self, options: SinkOptions) -> None:
        if options.sink_name is not None:
            raise ConfigError("exactlyOnce=true needs a streaming query: a batch write has no batch number to remember")
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; returns when the brokers have them."""
        return write_rows(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: rows are visible as soon as they are written."""
        settle()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: written rows cannot be taken back."""


class TopicStreamArrowWriter(SentToWorkers, DataSourceStreamArrowWriter):
    """The streaming write."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; returns when the brokers have them."""
        if self._options.sink_name is None:
            return write_rows(self._options, iterator)
        place = exactly_once.place_of_task(self._options.sink_name)
        return exactly_once.write_once(link_to(self._options.client), self._options, place, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Rows are visible when their task is done; a sink that writes exactly once remembers the batch."""
        if self._options.sink_name is not None:
            topics = (message.topic for message in messages if isinstance(message, RowsWritten))
            exactly_once.batch_is_complete(link_to(self._options.client), self._options, batchId, topics)
        settle()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: written rows cannot be taken back."""


def write_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> RowsWritten:
    """Write all rows of one task and wait until the brokers have them."""
    link = link_to(options.client)
    return send_rows(link, TopicProducer(link.cluster, options.produce), packer_of(options), batches)
