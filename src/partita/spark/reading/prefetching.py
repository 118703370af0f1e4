"""Read a small batch of a stream in the source's own process, so that Spark needs no Python worker for its task.

Spark takes rows together with the plan of a batch and keeps them as a block until the task takes them. It does so for
readers of the class SimpleDataSourceStreamReader alone, which it recognises by their wrapper. A task that does not
find the block any more reads the ranges itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partita.errors import KafkaError
from partita.options import ConfigError
from partita.spark.cluster.broker_link import link_to
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import SourceError
from partita.spark.reading.range_reader import Fetched, RangeReader
from partita.spark.reading.task_reader import decoded, fetch_settings
from partita.spark.settings.options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

RECORDS_MAX = 4096
BYTES_MAX = 1 << 20
"""Most offsets, and bytes before and after decompression, of a batch that is read here."""
WAIT_S = 2.0


def simple_reader() -> type | None:
    """Return the class by which Spark recognises a reader with ready rows; None where there is none."""
    try:
        from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
    except ImportError:
        return None
    return _SimpleStreamReaderWrapper if hasattr(_SimpleStreamReaderWrapper, "getCache") else None


def prefetched(options: SourceOptions, ranges: Sequence[RangeTask]) -> list[pa.RecordBatch] | None:
    """Return all rows of these ranges; None if there are too many or anything fails: the task reports the error."""
    if not ranges or sum(task.size for task in ranges) > RECORDS_MAX or simple_reader() is None:
        return None
    try:
        settings = replace(fetch_settings(options), max_bytes=BYTES_MAX, partition_max_bytes=BYTES_MAX)
        link = link_to(options.client)
        readers = [RangeReader(link, task, settings) for task in ranges]
        answers = link.call(_first_answers(readers, ranges))
        if any(answer.next_position < task.end for answer, task in zip(answers, ranges, strict=True)):
            return None
        rows: list[pa.RecordBatch] = []
        for reader, answer in zip(readers, answers, strict=True):
            for batch in reader.decode(answer):
                rows.append(batch)
                if sum(found.nbytes for found in rows) > BYTES_MAX:
                    return None
        return list(decoded(options, rows))
    except (KafkaError, SourceError, ConfigError, TimeoutError):
        return None


async def _first_answers(readers: Sequence[RangeReader], ranges: Sequence[RangeTask]) -> list[Fetched]:
    async with asyncio.timeout(WAIT_S):
        return await asyncio.gather(*(r.fetch(task.begin) for r, task in zip(readers, ranges, strict=True)))
