"""The reading of one Spark task: one range after the other, as Arrow batches of the requested columns or view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.references import resolve_option
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.planning.planner import RangeTask
from partita.spark.reading import tables
from partita.spark.reading.portions import joined
from partita.spark.reading.range_reader import FetchSettings, RangeReader
from partita.spark.settings.client_checks import whole_number
from partita.spark.settings.options import SourceOptions
from partita.spark.spark_api import Filter, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.spark.reading import letters, typed_columns, views
else:
    letters = later("partita.spark.reading.letters")
    typed_columns = later("partita.spark.reading.typed_columns")
    views = later("partita.spark.reading.views")

FIRST_ROWS = 1000
AHEAD = 4
"""Number of a task's ranges that are requested before the first is read."""


def read_ranges(
    options: SourceOptions, ranges: Sequence[RangeTask], filters: Sequence[Filter] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of a task, without those that filters on decoded columns exclude.

    Raises DataLossError, SourceError or KafkaError.
    """
    settings = fetch_settings(options)
    readers = [RangeReader(link_to(options.client), task, settings) for task in ranges]
    return decoded(options, in_turn(readers), filters)


def in_turn(readers: Sequence[RangeReader]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of each reader, one reader after the other. The next ones fetch meanwhile."""
    try:
        for place, reader in enumerate(readers):
            for coming in readers[place : place + AHEAD]:
                coming.start()
            yield from reader.batches()
    finally:
        for reader in readers:
            reader.close()


def decoded(
    options: SourceOptions, batches: Iterable[pa.RecordBatch], filters: Sequence[Filter] = ()
) -> Iterator[pa.RecordBatch]:
    """Batches of a reader as the columns or the view asked for."""
    is_first = True
    schema = arrow_schema(tables.read_schema(options.columns, options.typed))
    decode: Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch] = tables.chosen
    if options.typed is not None:
        send = None if options.typed.letter_topic is None else partial(letters.send, options.client, options.typed)
        decode = typed_columns.TypedColumns(options.typed, filters, send)
    elif options.view != "records":
        lookups = ClusterLookups(link_to(options.client), read_committed=options.read_committed)
        decode = views.decoder(options.view, lookups)
    for batch in joined(batches):
        # Spark passes rows on by the batch: `show()` and `limit` end after a small first one.
        if is_first and batch.num_rows > 2 * FIRST_ROWS:
            yield decode(batch.slice(0, FIRST_ROWS), schema)
            batch = batch.slice(FIRST_ROWS)
        is_first = False
        yield decode(batch, schema)


def fetch_settings(options: SourceOptions) -> FetchSettings:
    """Fetch settings of a task, on the executor where this is called. Raises ConfigError."""
    client: Mapping[str, str] = options.client
    plain = FetchSettings()
    return FetchSettings(
        read_committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        headers="headers" in options.columns or (options.typed is not None and options.typed.letter_topic is not None),
        leader_epoch="leaderEpoch" in options.columns,
        max_wait_ms=whole_number(client, "fetch.max.wait.ms", plain.max_wait_ms),
        max_bytes=whole_number(client, "fetch.max.bytes", plain.max_bytes),
        partition_max_bytes=whole_number(client, "max.partition.fetch.bytes", plain.partition_max_bytes),
        rack=resolve_option("kafka.client.rack", client.get("client.rack", "")),
    )
