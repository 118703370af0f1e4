"""What one task of Spark reads: one range after the other, as Arrow batches of the columns or the view asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from partita.references import resolve_option
from partita.spark.client_checks import whole_number
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.options import SourceOptions
from partita.spark.planning.planner import RangeTask
from partita.spark.reading import tables
from partita.spark.reading.portions import joined
from partita.spark.reading.range_reader import FetchSettings, RangeReader

if TYPE_CHECKING:
    import pyarrow as pa

AHEAD = 4
"""How many ranges of a task are asked for before the first of them is read."""


def read_ranges(options: SourceOptions, ranges: Sequence[RangeTask]) -> Iterator[pa.RecordBatch]:
    """The rows of a task. Raises DataLossError, SourceError or KafkaError."""
    settings = fetch_settings(options)
    readers = [RangeReader(link_to(options.client), task, settings) for task in ranges]
    return decoded(options, in_turn(readers))


def in_turn(readers: Sequence[RangeReader]) -> Iterator[pa.RecordBatch]:
    """The batches of each reader, those of a reader after those of the one before. The next ones fetch meanwhile."""
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
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(tables.read_schema(options.columns), timezone="UTC")
    decode: Callable[[pa.RecordBatch, pa.Schema], pa.RecordBatch] = tables.chosen
    if options.view != "records":
        from partita.spark.reading.views import decoder

        lookups = ClusterLookups(link_to(options.client), read_committed=options.read_committed)
        decode = decoder(options.view, lookups)
    for batch in joined(batches):
        yield decode(batch, schema)


def fetch_settings(options: SourceOptions) -> FetchSettings:
    """How a task of this read fetches, on the executor where this is called. Raises ConfigError."""
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
