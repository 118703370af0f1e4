"""Commits the last batch of a query that was stopped, so that the group shows no false lag afterwards.

The source itself learns that a batch is complete only when Spark asks it for the next one. `session()` therefore adds
a listener: a progress event is sent once a batch is in the commit log, so the end it names is proven. Only queries
with groupMode=commit are looked at, and a commit is never lowered.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from partita.errors import KafkaError
from partita.options import ConfigError
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.options import SourceOptions, parse_source
from partita.spark.planning.group_progress import CommitBook, query_key
from partita.spark.planning.lookups import CommitRefused
from partita.spark.planning.offsets import OffsetFormatError, StreamOffset, decode

log = logging.getLogger("partita.spark")


class LastCommit(StreamingQueryListener):
    """Remembers where each running query stands; commits it when the query ends."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._queries: dict[str, Any] = {}
        self._ends: dict[str, list[str]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Spark forgets a query before it tells that it ended; so it is kept here."""
        query: Any = self._spark.streams.get(str(event.id))
        if query is not None:
            self._queries[str(event.runId)] = query._jsq

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Remember the end of each source; the batch is in the commit log now."""
        self._ends[str(event.progress.runId)] = [source.endOffset for source in event.progress.sources]

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Commit the last remembered ends of the query."""
        run = str(event.runId)
        query, ends = self._queries.pop(run, None), self._ends.pop(run, [])
        if query is None or not ends:
            return
        leaves = query.streamingQuery().logicalPlan().collectLeaves()
        sources = [_options_of(leaves.apply(i)) for i in range(leaves.size())]
        for options, end in zip(sources, ends, strict=False):
            if options is not None and len(sources) == len(ends):
                _try_commit(options, end)


def _try_commit(options: SourceOptions, end: str) -> None:
    try:
        commit_proven(options, decode(json.loads(end)))
    except (KafkaError, CommitRefused, OffsetFormatError, ValueError) as error:
        log.warning("group %s: the last batch of the stopped query is not committed: %s", options.group, error)


def commit_proven(options: SourceOptions, proven: StreamOffset) -> None:
    """Commit the end of a complete batch for a query that no longer runs, unless the group has it already."""
    lookups = ClusterLookups(link_to(options.client))
    book = CommitBook(query_key(options))
    found = lookups.committed(options.group or "", sorted(proven.ranges))
    book.learn(found)
    due = {key: c for key, c in book.due(proven).items() if key not in found or book.is_ours(found[key])}
    if due:
        lookups.commit(options.group or "", due)


def _options_of(leaf: Any) -> SourceOptions | None:
    """The options of a streaming leaf of the plan, when it is one of ours that commits."""
    from py4j.protocol import Py4JError

    try:
        options = dict(leaf.relation().options().asCaseSensitiveMap())
        source = parse_source(options)
    except (Py4JError, ConfigError):
        return None
    return source if source.commits else None
