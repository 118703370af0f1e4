"""Watch the queries of a session: stop those that must not run, commit the last batch of stopped ones.

The source itself learns that a batch is complete only when Spark asks it for the next one. A query reports its progress
once a batch is in the commit log, so the end that it names is proven. Only queries with groupMode=commit are committed
for, and a commit is never lowered. With asynchronous progress tracking Spark reports a batch before it is in the commit
log, so nothing is committed for such a query. Over Spark Connect, which does not show options, one query is watched at
a time.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from partita.options import ConfigError
from partita.spark.last_commit import ends_of, try_commit
from partita.spark.query_shape import STATEFUL, QueryShape, refusals
from partita.spark.settings.options import SourceOptions, parse_source
from partita.spark.spark_api import HAS_LIMITS

log = logging.getLogger("partita.spark")
EXIT_WAIT_S = 10.0
"""Time that the end of the interpreter waits for the last commits of ended queries."""


class QueryWatch(StreamingQueryListener):
    """Remembers each running query and its shape; when a query ends, its last progress is where it got to."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._running: dict[str, tuple[StreamingQuery, QueryShape]] = {}
        self._committing: set[str] = set()
        self._has_committed = threading.Condition()
        self._in_jvm: Any = None

    @property
    def _jlistener(self) -> Any:
        """The object that Spark's JVM calls: `addListener` asks for it by this name."""
        if self._in_jvm is None:
            jvm: Any = SparkContext._jvm
            self._in_jvm = jvm.PythonStreamingQueryListenerWrapper(StartsAndEnds(self))
        return self._in_jvm

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Look at the plan. Spark waits for this call, so a query that is refused is stopped from another thread."""
        query: Any = self._spark.streams.get(str(event.id))
        if query is None:
            return
        execution = query._jsq.streamingQuery()
        shape = shape_of(execution)
        for used, columns in wasted_columns(execution.analyzedPlan()):
            log.info(
                "query %s uses %d of the %d columns that it reads; columns=%s would read only what it needs",
                *(event.name or event.id, len(used), len(columns), ",".join(used) or "offset"),
            )
        # A query that was stopped is gone from here before its last event comes.
        running = {str(other.runId) for other in self._spark.streams.active}
        reasons = refusals(shape, [other for run, (_, other) in self._running.items() if run in running])
        self._running[str(event.runId)] = query, shape
        if any(options.commits for options in shape.sources) and not shape.is_async:
            self._committing.add(str(event.runId))
        for reason in reasons:
            log.error("query %s is stopped: %s", event.name or event.id, reason)
        if reasons:
            threading.Thread(target=query.stop, name="partita-refusal", daemon=True).start()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Do nothing: see `StartsAndEnds`."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Commit the ends of the last batch that the query completed."""
        run = str(event.runId)
        query, shape = self._running.pop(run, (None, QueryShape(())))
        try:
            if query is not None and run in self._committing:
                ends = ends_of(query.lastProgress)
                for options in shape.sources:
                    if options.commits:
                        try_commit(options, ends)
        finally:
            with self._has_committed:
                self._committing.discard(run)
                self._has_committed.notify_all()

    def settle(self) -> None:
        """Wait for the last commits of queries that have ended.

        Spark reports an end in a thread of its own, so without this the interpreter could exit before the commit. A
        query that still runs is not waited for.
        """
        if not self._committing or self._spark.sparkContext._jsc is None:
            return  # a context that was stopped has reported everything before
        try:
            running = {str(query.runId) for query in self._spark.streams.active}
        except (Py4JError, OSError) as error:
            log.debug("Spark has ended before the commits of its last batches: %s", error)
            return
        with self._has_committed:
            self._has_committed.wait_for(lambda: self._committing <= running, EXIT_WAIT_S)


class StartsAndEnds(JStreamingQueryListener):
    """Passes only starts and ends to a listener. Reading a progress event takes 40 ms of CPU time, for every batch."""

    def onQueryProgress(self, jevent: Any) -> None:
        """Skip the event unread."""

    def onQueryIdle(self, jevent: Any) -> None:
        """Skip the event unread."""


class ConnectWatch(StreamingQueryListener):
    """Remembers how far one query of Spark Connect got, and commits that when its server reports the end.

    A client gets the events of its session's queries, but not the options of their sources.
    """

    def __init__(self, query: Any, options: SourceOptions) -> None:
        self._run = str(query.runId)
        self._options = options
        self._ends = ends_of(query.lastProgress)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: the query had started before."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Remember the end of each source; the batch is in the commit log now."""
        if str(event.progress.runId) == self._run:
            self._ends = [source.endOffset for source in event.progress.sources if source.endOffset]

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Commit the last remembered ends."""
        if str(event.runId) == self._run:
            try_commit(self._options, self._ends)


def watch_queries(spark: SparkSession) -> None:
    """Watch the queries of this session; once for each session, and not over Spark Connect, which has no plans here."""
    if hasattr(spark, "_jsparkSession") and not getattr(spark, "_partita_watch", None):
        watch = QueryWatch(spark)
        spark.streams.addListener(watch)
        atexit.register(watch.settle)
        spark._partita_watch = watch  # type: ignore[attr-defined]  # kept with the session it belongs to


def shape_of(execution: Any) -> QueryShape:
    """The shape of a query of the JVM, from the plan it was started with."""
    sources, stateful = [], []
    for node in _nodes(execution.analyzedPlan()):
        name = node.getClass().getSimpleName()
        if name == "StreamingRelationV2":
            options = _options_of(node)
            if options is not None:
                sources.append(options)
        elif node.isStreaming() and (name in STATEFUL or (name == "Join" and _joins_streams(node))):
            stateful.append(name)
    is_async = "Async" in execution.getClass().getSimpleName()
    ends_early = not HAS_LIMITS and "AvailableNow" in execution.trigger().getClass().getSimpleName()
    return QueryShape(tuple(sources), tuple(stateful), is_async=is_async, ends_early=ends_early)


def wasted_columns(plan: Any) -> Iterator[tuple[list[str], list[str]]]:
    """For each source of this format whose keys or values nobody asks for: the columns in use, and all it reads."""
    for leaf in _nodes(plan):
        options = _options_of(leaf) if leaf.getClass().getSimpleName() == "StreamingRelationV2" else None
        if options is None or options.typed is not None or not {"key", "value"} & set(options.columns):
            continue
        asked = [plan.outputSet(), *(node.references() for node in _nodes(plan))]
        output = leaf.output()
        columns = [output.apply(i) for i in range(output.size())]
        used = [column.name() for column in columns if any(wanted.contains(column) for wanted in asked)]
        names = [column.name() for column in columns]
        if {"key", "value"} & set(names) - set(used):
            yield used, names


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))


def _joins_streams(node: Any) -> bool:
    children = node.children()
    return all(children.apply(i).isStreaming() for i in range(children.size()))


def _options_of(leaf: Any) -> SourceOptions | None:
    """The options of a streaming leaf of the plan, when it is one of ours."""
    if leaf.sourceName() not in ("partita", "pyspark_partita"):
        return None
    try:
        return parse_source(dict(leaf.extraOptions().asCaseSensitiveMap()))
    except ConfigError:
        return None
