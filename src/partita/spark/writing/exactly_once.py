"""Write the rows of one task exactly once: rows and marker in one transaction, or nothing if the marker is there.

A copy of the task that runs beside, runs again, or belongs to a run that should be dead is fenced when another attempt
takes the transactional id, and a later attempt finds the marker. Decisions: `partita.spark.planning.markers`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from pyspark import TaskContext

from partita.errors import KafkaError, ProducerFencedError
from partita.lazy import later
from partita.options import ConfigError
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.planning.markers import (
    Digest,
    Duty,
    Marker,
    SinkRefused,
    TaskPlace,
    check_empty,
    check_same,
    driver_group,
    duty_of,
)
from partita.spark.settings.options import SinkOptions
from partita.spark.settings.produce import ProduceSettings
from partita.spark.writing.rows_out import RowsWritten, packer_of, send_rows
from partita.spark.writing.task_transaction import TaskTransaction, read_marker, write_marker
from partita.spark.writing.topic_producer import TopicProducer

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.spark.writing import row_digest
else:
    row_digest = later("partita.spark.writing.row_digest")

log = logging.getLogger("partita.spark")


def place_of_task(sink: str) -> TaskPlace:
    """Return which Spark task this is. Raises ConfigError outside a streaming query."""
    context = TaskContext.get()
    batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    if context is None or batch is None:
        raise ConfigError("exactlyOnce=true needs a streaming query: a batch write has no batch number to remember")
    return TaskPlace(sink, int(batch), context.partitionId())


def write_once(
    link: BrokerLink, options: SinkOptions, place: TaskPlace, batches: Iterator[pa.RecordBatch]
) -> RowsWritten:
    """Write the rows of a task and its marker, or find that they are written. Raises SinkRefused and KafkaError."""
    settings = options.produce
    transaction = TaskTransaction(
        link.cluster, place.name, timeout_ms=options.produce.transaction_timeout_ms, max_block_ms=settings.max_block_ms
    )
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        _check_empty(link, options, place, transaction)
        return RowsWritten(0)
    rows = chain([first], batches)
    link.call(transaction.take())
    own, driver = _markers(link, place, settings)
    if duty_of(place, own, driver, starts_with=options.starts_with) is Duty.COMPARE:
        assert own is not None, "there is a marker to compare with"
        check_same(place, own, _digest_of(rows))
        return RowsWritten(own.digest.rows if own.digest is not None else 0, options.topic)
    try:
        return _write(link, options, place, transaction, rows)
    except BaseException:
        _abort(link, transaction, place)
        raise


def _check_empty(link: BrokerLink, options: SinkOptions, place: TaskPlace, transaction: TaskTransaction) -> None:
    """Take the id of a task without rows only where another attempt of it could still commit, and so fence that one."""
    if not link.call(transaction.is_at_rest()):
        link.call(transaction.take())
    own, driver = _markers(link, place, options.produce)
    check_empty(place, own, driver, starts_with=options.starts_with)


def _write(
    link: BrokerLink,
    options: SinkOptions,
    place: TaskPlace,
    transaction: TaskTransaction,
    batches: Iterator[pa.RecordBatch],
) -> RowsWritten:
    settings, started = options.produce, time.monotonic()
    digest = Digest()

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal digest
        for batch in batches:
            digest = row_digest.with_rows(digest, batch)
            yield batch

    link.call(transaction.begin())
    producer = TopicProducer(link.cluster, settings, transaction)
    written = send_rows(link, producer, packer_of(options), counted())
    assert written.topic is not None, "a task with rows has written to a topic"
    link.call(transaction.commit(Marker(place.batch, digest), place.name, (written.topic, 0)))
    _warn_if_slow(place, time.monotonic() - started, options.produce.transaction_timeout_ms)
    return written


def _abort(link: BrokerLink, transaction: TaskTransaction, place: TaskPlace) -> None:
    """Abort the open transaction if possible; else the next attempt or the timeout does."""
    try:
        link.call(transaction.abort())
    except ProducerFencedError:
        log.info("%s: a newer attempt of this task has ended its transaction", place)
    except (KafkaError, TimeoutError) as error:
        log.warning("%s: the transaction was left open: %s", place, error)


def _warn_if_slow(place: TaskPlace, seconds: float, limit_ms: int) -> None:
    if seconds * 2000 > limit_ms:
        log.warning(
            "%s took %.0f s of the %.0f s that kafka.transaction.timeout.ms allows; beyond, brokers abort it",
            place,
            seconds,
            limit_ms / 1000,
        )


def _digest_of(batches: Iterator[pa.RecordBatch]) -> Digest:
    digest = Digest()
    for batch in batches:
        digest = row_digest.with_rows(digest, batch)
    return digest


def _markers(link: BrokerLink, place: TaskPlace, settings: ProduceSettings) -> tuple[Marker | None, Marker | None]:
    """The task's own marker and the driver's, once no transaction holds them back."""
    limit_ms = settings.max_block_ms
    own = link.call(read_marker(link.cluster, place.name, timeout_ms=limit_ms))
    return own, link.call(read_marker(link.cluster, driver_group(place.sink), timeout_ms=limit_ms))


def batch_is_complete(link: BrokerLink, options: SinkOptions, batch: int, topics: Iterator[str | None]) -> None:
    """Record on the driver that a batch is complete. Raises SinkRefused if the sink is further.

    A query whose rows name their topics, and has had none yet, has no partition whose offset could be moved.
    """
    assert options.sink_name is not None, "a sink that writes exactly once has a name"
    topic = options.topic or next((topic for topic in topics if topic is not None), None)
    if topic is None:
        return
    group = driver_group(options.sink_name)
    known = link.call(read_marker(link.cluster, group, timeout_ms=options.produce.max_block_ms))
    if known is not None and known.batch > batch:
        raise SinkRefused(
            f"sink {options.sink_name!r} has written batch {known.batch}, and the query is at batch {batch}: its "
            "checkpoint is older than the sink, or another one"
        )
    link.call(write_marker(link.cluster, group, (topic, 0), Marker(batch)))
