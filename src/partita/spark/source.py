"""`format("partita")`: the classes that Spark's Python Data Source API asks for. Thin: every decision is elsewhere.

Spark calls the factories with keyword arguments, in planner processes. They open nothing before the first offset or
partitions call, but for `schema`, which asks once whether the topics exist. Readers are pickled to the executors, so
they hold options and nothing that lives. Every planner, source and worker is a process of its own that imports this
module; imports that only some need stand where they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from partita.errors import KafkaError
from partita.lazy import later
from partita.options import ConfigError
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.cores import check_cores, member_count
from partita.spark.lag_source import LagReader, LagStreamReader
from partita.spark.planning.batch_core import not_found, plan_batch
from partita.spark.planning.planner import RangeTask, together
from partita.spark.planning.starts import SourceError
from partita.spark.planning.stream_core import StreamCore
from partita.spark.reading import tables
from partita.spark.reading.prefetching import prefetched, simple_reader
from partita.spark.reading.pushed_filters import PushedFilters
from partita.spark.reading.task_reader import read_ranges
from partita.spark.settings.options import (
    SinkOptions,
    SourceOptions,
    parse_sink,
    parse_source,
    table_options,
)
from partita.spark.settings.table import BOOTSTRAP
from partita.spark.spark_api import (
    HAS_FILTERS,
    HAS_LIMITS,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from partita.spark.worker_process import SentByArchive, SentToWorkers, settle
from partita.system_clock import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from partita.spark import share_source
    from partita.spark.cluster import group_members
    from partita.spark.reading import typed_columns
    from partita.spark.writing import sink
else:
    typed_columns = later("partita.spark.reading.typed_columns")
    share_source = later("partita.spark.share_source")
    group_members = later("partita.spark.cluster.group_members")
    sink = later("partita.spark.writing.sink")

log = logging.getLogger("partita.spark")
NO_TRIGGER = (
    "before 4.2 a source does not learn its trigger from Spark: with limits (maxOffsetsPerTrigger and the like) a run"
    " with Trigger.AvailableNow ends after one batch; leave them out there"
)
_warned: set[str] = set()


class GroupSource(SentByArchive, DataSource):
    """The data source: reading and writing topics, in batches and streams."""

    cores: ClassVar[int | None] = None
    """The cores of the session that this was registered in, where that is known."""
    is_local: ClassVar[bool] = False
    """Whether the session never has more cores than these."""

    @classmethod
    def name(cls) -> str:
        """The name users give to `.format()`."""
        return "partita"

    def schema(self) -> StructType:
        """The columns of a read. Raises ConfigError or SourceError, when the user calls `load()`."""
        if share_source.is_share(self.options):
            return share_source.share_schema(share_source.parse_share(self.options))
        of_table = table_options(self.options)
        options = parse_source(self.options if of_table is None else of_table)
        warn_once(options.warnings)
        if of_table is None and options.view == "records":
            refuse_missing(options)
        typed = options.typed
        if typed is not None:
            typed = typed_columns.looked_up(typed, options.topics.names)
        schema = tables.read_schema(options.columns, typed)
        settle()
        return schema if of_table is None else tables.with_options(schema, of_table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch."""
        if share_source.is_share(self.options):
            raise ConfigError("group.type=share is for streams: a batch of Spark cannot say when it is complete")
        options = self._checked(schema)
        if options.limits.any:
            warn_once(("limits of a trigger (maxOffsetsPerTrigger and the like) have no effect in a batch",))
        return LagReader(options) if options.view == "lag" else BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of a stream."""
        if share_source.is_share(self.options):
            return share_source.ShareStreamReader(dict(self.options), self.cores or 1)
        options = self._checked(schema)
        check_cores(options, self.cores)
        if options.limits.any and not HAS_LIMITS:
            warn_once((NO_TRIGGER,))
        if options.view == "lag":
            return LagStreamReader(options)
        return StreamReader(options, self.cores, is_local=self.is_local)

    def writer(self, schema: StructType, overwrite: bool) -> sink.TopicArrowWriter:
        """The writer of a batch. Raises ConfigError for a table that cannot be written."""
        if overwrite:
            raise ConfigError("a topic cannot be overwritten; use mode append")
        return sink.TopicArrowWriter(self._sink(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> sink.TopicStreamArrowWriter:
        """The writer of a stream. Raises ConfigError for a table that cannot be written."""
        return sink.TopicStreamArrowWriter(self._sink(schema))

    def _sink(self, schema: StructType) -> SinkOptions:
        options = parse_sink(self._options(schema))
        tables.check_write(schema, has_topic=options.topic is not None)
        warn_once(options.warnings)
        settle()
        return options

    def _checked(self, schema: StructType) -> SourceOptions:
        options = parse_source(self._options(schema))
        if options.typed is not None:
            options = replace(options, typed=tables.typed_by(schema, options.columns, options.typed))
        tables.check_read(schema, options.columns, options.typed)
        return options

    def _options(self, schema: StructType) -> dict[str, str]:
        """Return the user's options; for a table of Spark's catalog also those it was created with."""
        given = dict(self.options)
        return given if BOOTSTRAP in (name.lower() for name in given) else tables.options_in(schema) | given


def source_for(cores: int | None, *, is_local: bool = False) -> type[GroupSource]:
    """The data source for a session with so many cores, and never more if it is local.

    Spark pickles the class when it is registered; one of a function goes with its attributes.
    """

    class SessionSource(GroupSource):
        """The data source of one session."""

    SessionSource.cores, SessionSource.is_local = cores, is_local
    return SessionSource


def refuse_missing(options: SourceOptions) -> None:
    """Raise SourceError when a topic that is named does not exist. A cluster that gives no answer says so later."""
    with suppress(KafkaError, ConfigError, TimeoutError):
        named = {*options.topics.names, *(topic for topic, _ in options.topics.assigned)}
        if options.typed is not None and options.typed.letter_topic is not None:
            named.add(options.typed.letter_topic)
        lacking = _lookups(options).not_there(named)
        if lacking:
            raise SourceError(not_found("topic", lacking))


def warn_once(warnings: Iterable[str]) -> None:
    """Log each text once in a process: Spark builds a new writer for every batch of a stream."""
    for warning in warnings:
        if warning not in _warned:
            _warned.add(warning)
            log.warning("%s", warning)


class RangePartition(InputPartition):
    """The ranges of one task, on their way to an executor."""

    def __init__(self, ranges: Sequence[RangeTask]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class BatchReader(SentToWorkers, DataSourceReader):
    """Plans and reads one batch. Filters that Spark offers narrow the ranges, unless pushdown=false."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        decoded = (
            ()
            if options.typed is None
            else set(tables.read_schema(options.columns, options.typed).names) - set(options.columns)
        )
        self._pushed = PushedFilters(frozenset(decoded))
        if HAS_FILTERS and options.pushdown is not False and options.view == "records":
            # Spark's own way to offer filters; an attribute, for the reason that `FilterTaker` gives.
            self.pushFilters = FilterTaker(self._pushed)  # type: ignore[method-assign]  # Spark's own way; see above

    def partitions(self) -> list[InputPartition]:
        """The tasks, planned against the cluster as it is now."""
        lookups = _lookups(self._options)
        now_ms, since_ms = SystemClock().now().wall_ms, self._pushed.not_before_ms
        tasks = plan_batch(self._options, lookups, self._pushed.narrow, now_ms=now_ms, not_before_ms=since_ms)
        settle()
        return _shared(tasks, self._options.shared_task_records(in_stream=False))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, in a worker."""
        return _read(self._options, partition, self._pushed.of_decoded)


class FilterTaker:
    """Takes filters where Spark offers them, and does no harm where it does not.

    With `spark.sql.python.filterPushdown.enabled` off, Spark fails every query whose reader has a method of its own for
    filters. It compares `__func__`; this one is inherited, so such a query just gets no filters.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters) if HAS_FILTERS else None

    def __init__(self, pushed: PushedFilters) -> None:
        self._pushed = pushed

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take filters that narrow the ranges exactly; hand back the rest."""
        settle()
        return [found for found in filters if not self._pushed.take(found)]


class StreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One run of a streaming read; its core starts with the first offset call, in the source's own process."""

    def __init__(self, options: SourceOptions, cores: int | None = None, *, is_local: bool = False) -> None:
        self._options = options
        self._cores = cores
        self._is_local = is_local
        self._running: StreamCore | None = None
        self._prefetched: list[pa.RecordBatch] | None = None
        self._reached: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_running": None, "_prefetched": None}

    @property  # type: ignore[misc]  # an override of `object.__class__`, which only `isinstance` of Spark's process sees
    def __class__(self) -> type:
        """This class; the one that Spark asks for rows while some are ready, between `partitions` and `getCache`.

        Spark takes rows with the plan only from readers of that class, which have no limits (decision 0261).
        """
        return type(self) if self._prefetched is None else simple_reader() or type(self)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark has no composite limit: this one only says that there is a limit; the core applies all of them."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        return ReadAllAvailable() if limits.min_offsets is None else ReadMinRows(limits.min_offsets)

    def initialOffset(self) -> dict[str, Any]:
        """Start of a query without checkpoint."""
        return self._core.initial_offset()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """End of the next batch; the same offset as `start` when there is nothing to read.

        Before 4.2 Spark passes nothing. It asks only when the batch before is complete, so `start` is its end then; at
        a restart it first asks for the tasks between the last offset of the checkpoint and itself.
        """
        if start is None:
            start = self.initialOffset() if self._reached is None else self._reached
        return self._core.latest_offset(start, use_limits=not HAS_LIMITS or not isinstance(limit, ReadAllAvailable))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The real ends, for the query's progress."""
        return self._core.report_latest()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of an AvailableNow run."""
        self._core.prepare_available_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch."""
        if not HAS_LIMITS:
            self._reached = end
            if start == end:
                return []
        tasks = self._core.partitions(start, end)
        records_max = self._core.shared_records(end)
        shared = _shared(tasks, records_max)
        self._prefetched = prefetched(self._options, tasks) if HAS_LIMITS and records_max and len(shared) == 1 else None
        return shared

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """The rows that were read with the plan of this batch, which Spark asks for right after `partitions`."""
        rows, self._prefetched = self._prefetched, None
        return iter(rows or ())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, in a worker."""
        return _read(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit a batch that Spark reports complete, one batch late."""
        self._core.commit(end)

    @property
    def _core(self) -> StreamCore:
        if self._running is None:
            clock, lookups = SystemClock(), _lookups(self._options)
            auto = member_count(self._options, lookups, self._cores)
            membership = None
            if self._options.member:
                membership = group_members.GroupMembers(self._options, clock, auto)
            cores = self._cores if self._is_local else None
            self._running = StreamCore(self._options, lookups, clock, log.warning, membership, cores=cores)
        return self._running


def _lookups(options: SourceOptions) -> ClusterLookups:
    return ClusterLookups(link_to(options.client), read_committed=options.read_committed)


def _shared(tasks: list[RangeTask], records_max: int) -> list[InputPartition]:
    return [RangePartition(ranges) for ranges in together(tasks, records_max)]


def _read(
    options: SourceOptions, partition: InputPartition, filters: Sequence[Filter] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of one task. Spark turns an empty list of partitions into one without a range."""
    if isinstance(partition, RangePartition):
        yield from read_ranges(options, partition.ranges, filters)
        settle()
