"""`view=lag` as Spark's Python Data Source API asks for it: a batch is one sample, a stream one for every trigger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.lazy import later
from partita.spark.reading import tables
from partita.spark.settings.options import SourceOptions, check_batch, check_stream
from partita.spark.spark_api import (
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    ReadLimit,
    SupportsTriggerAvailableNow,
    arrow_schema,
)
from partita.spark.worker_process import SentToWorkers
from partita.system_clock import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.spark.reading import lag_rows
else:
    lag_rows = later("partita.spark.reading.lag_rows")


class LagReader(SentToWorkers, DataSourceReader):
    """Reads one sample of `view=lag`, in one task."""

    def __init__(self, options: SourceOptions) -> None:
        check_batch(options)
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """One partition: the whole cluster."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The sample."""
        return _lag(self._options)


class LagStreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A sample of `view=lag` for every trigger; its offset is the time of the sample in milliseconds."""

    def __init__(self, options: SourceOptions) -> None:
        check_stream(options)
        self._options = options
        self._is_one_sample = False
        self._begun_ms = 0
        self._reached = self.initialOffset()

    def initialOffset(self) -> dict[str, Any]:
        """Before all samples."""
        return {"sampledAtMs": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """Such a run takes one sample."""
        self._is_one_sample = True
        self._begun_ms = SystemClock().now().wall_ms

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Now, unless the last sample is younger than offsetPollMs or was the only one asked for."""
        start = self._reached if start is None else start
        now_ms = SystemClock().now().wall_ms
        is_due = start["sampledAtMs"] < self._begun_ms if self._is_one_sample else True
        if not is_due or now_ms - start["sampledAtMs"] < self._options.offset_poll_ms:
            return start
        return {"sampledAtMs": now_ms}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One partition: the whole cluster. A batch that runs again takes its sample again."""
        self._reached = end
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The sample."""
        return _lag(self._options)


def _lag(options: SourceOptions) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(tables.read_schema(options.columns))
    yield lag_rows.lag_batch(options.client, options.group, SystemClock(), schema)
