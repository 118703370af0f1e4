"""The reading of one Spark task: one range after the other, as Arrow batches of the requested columns or view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from partita.spark.spark_api import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.spark.reading import views
else:
    views = later("partita.spark.reading.views")

AHEAD = 4
"""Number of a task's ranges that are requested before the first is read."""


def read_ranges(options: SourceOptions, ranges: Sequence[RangeTask]) -> Iterator[pa.RecordBatch]:
    """The rows of a task. Raises DataLossError, SourceError or KafkaError."""
    settings = fetch_settings(options)
    readers = [RangeReader(link_to(options.client), task, settings) for task in ranges]
    return decoded(options, in_turn(readers))


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


def decoded(options: SourceOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of a reader as the columns or the view asked for."""
    schema = arrow_schema(tables.read_schema(options.columns))
    decode: Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch] = tables.chosen
    if options.view != "records":
        lookups = ClusterLookups(link_to(options.client), read_committed=options.read_committed)
        decode = views.decoder(options.view, lookups)
    for batch in joined(batches):
        yield decode(batch, schema)


def fetch_settings(options: SourceOptions) -> FetchSettings:
    """Fetch settings of a task, on the executor where this is called. Raises ConfigError."""
    client: Mapping[str, str] = options.client
    plain = FetchSettings()
    return FetchSettings(
        read_committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        headers="headers" in options.columns,
        leader_epoch="leaderEpoch" in options.columns,
        max_wait_ms=whole_number(client, "fetch.max.wait.ms", plain.max_wait_ms),
        max_bytes=whole_number(client, "fetch.max.bytes", plain.max_bytes),
        partition_max_bytes=whole_number(client, "max.partition.fetch.bytes", plain.partition_max_bytes),
        rack=resolve_option("kafka.client.rack", client.get("client.rack", "")),
    )
