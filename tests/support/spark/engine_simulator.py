"""Spark's micro-batch engine without Spark: calls a source in its order, keeps its two logs, crashes on demand.

The order was measured on Spark 4.3: the offset log is written before a batch runs, the commit log after the sink has
committed; latestOffset(start) comes after both; commit(end) one batch late; a restart with an unfinished batch plans
that one first, from the very text in the log. Use it to test offset logic, thousands of runs a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

Task = TypeVar("Task")
OffsetJson = dict[str, Any]


class Source(Protocol[Task]):
    """What the engine calls; `partita.spark.planning.stream_core.StreamCore` is one."""

    def initial_offset(self) -> OffsetJson:
        """Where a query without checkpoint starts."""
        ...

    def prepare_available_now(self) -> None:
        """Called first in an AvailableNow run."""
        ...

    def latest_offset(self, start_json: OffsetJson, *, use_limits: bool) -> OffsetJson:
        """Where the next batch ends; `start_json` when there is none."""
        ...

    def partitions(self, start_json: OffsetJson | None, end_json: OffsetJson) -> list[Task]:
        """The tasks of one batch. The start is None for a replayed first batch."""
        ...

    def commit(self, end_json: OffsetJson) -> None:
        """The batch that ends here is complete; called one batch late."""
        ...


class CrashPoint(Enum):
    """Where a run can be made to die."""

    BEFORE_OFFSET_LOG = "offset decided, not yet logged"
    AFTER_OFFSET_LOG = "offset logged, batch not planned"
    IN_TASK = "one task has written its rows"
    AFTER_SINK_COMMIT = "the sink has committed, the commit log lacks the batch"
    AFTER_COMMIT_LOG = "the batch is complete, the source was not told"


class Crashed(Exception):
    """The simulated engine died at a crash point."""


class Trigger(Enum):
    """How a run is paced."""

    AVAILABLE_NOW = "until what was there at the start is read"
    ONCE = "one batch, limits do not count"
    STEPS = "as many triggers as asked for"


@dataclass(slots=True)
class Checkpoint:
    """What survives a crash: offsets by batch id, as text, and the ids of complete batches."""

    offsets: dict[int, str] = field(default_factory=dict)
    commits: list[int] = field(default_factory=list)

    def last_complete(self) -> OffsetJson | None:
        """The end of the newest complete batch."""
        return json.loads(self.offsets[self.commits[-1]]) if self.commits else None


@dataclass(slots=True)
class Sink:
    """Keeps every row ever written, and the rows of each batch id as an idempotent sink would."""

    written: list[Any] = field(default_factory=list)
    by_batch: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def rows_once(self) -> list[Any]:
        """The rows of a sink that replaces a batch written twice."""
        return [row for _, rows in sorted(self.by_batch.items()) for row in rows]


class EngineSimulator(Generic[Task]):
    """Runs queries over one checkpoint and one sink; each `run` is a new process with a new source."""

    def __init__(self, make_source: Callable[[], Source[Task]], read: Callable[[Task], Iterable[object]]) -> None:
        self._make_source = make_source
        self._read = read
        self.checkpoint = Checkpoint()
        self.sink = Sink()
        self.calls: list[str] = []
        self._crash: tuple[CrashPoint, int] | None = None
        self._source: Source[Task] | None = None

    def run(
        self,
        trigger: Trigger = Trigger.AVAILABLE_NOW,
        *,
        steps: int = 1,
        crash: tuple[CrashPoint, int] | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the query and run it to its end, or to the given crash point of the given batch id.

        `between` is called before every trigger; change the cluster there. Raises Crashed, or what the source raises.
        """
        self._crash = crash
        source = self._make_source()
        if trigger is Trigger.AVAILABLE_NOW:
            self._call("prepare")
            source.prepare_available_now()
        self._source = source
        self._paced(source, self._recover(source), trigger, steps, between)

    def go_on(self, *, steps: int, between: Callable[[], None] = lambda: None) -> None:
        """More triggers of the run that `run` has begun, with the same source and without a crash."""
        assert self._source is not None, "nothing runs yet"
        self._crash = None
        self._paced(self._source, self.checkpoint.last_complete(), Trigger.STEPS, steps, between)

    def _paced(
        self,
        source: Source[Task],
        start: OffsetJson | None,
        trigger: Trigger,
        steps: int,
        between: Callable[[], None],
    ) -> None:
        taken = 0
        while trigger is Trigger.AVAILABLE_NOW or taken < steps:
            taken += 1
            between()
            end = self._trigger(source, start, use_limits=trigger is not Trigger.ONCE)
            if end is None and trigger is Trigger.AVAILABLE_NOW:
                return
            start = end or start

    def _recover(self, source: Source[Task]) -> OffsetJson | None:
        """What a restart does first; returns the end of the last complete batch, None for a new query."""
        unfinished = sorted(self.checkpoint.offsets.keys() - set(self.checkpoint.commits))
        if unfinished:
            self._batch(source, unfinished[0])
        return self.checkpoint.last_complete()

    def _trigger(self, source: Source[Task], start: OffsetJson | None, *, use_limits: bool) -> OffsetJson | None:
        """One trigger; the end of the batch it ran, None if there was none to run."""
        if start is None:
            self._call("initialOffset")
            first = source.initial_offset()
        self._call("latestOffset")
        end = source.latest_offset(first if start is None else start, use_limits=use_limits)
        if start is None:
            self._call("initialOffset")
            source.initial_offset()
        if start is not None and json.dumps(end) == json.dumps(start):
            return None
        batch = max(self.checkpoint.offsets, default=-1) + 1
        self._maybe_crash(CrashPoint.BEFORE_OFFSET_LOG, batch)
        self.checkpoint.offsets[batch] = json.dumps(end)
        if batch > 0:
            self._call("commit")
            source.commit(json.loads(self.checkpoint.offsets[batch - 1]))
        self._batch(source, batch)
        return end

    def _batch(self, source: Source[Task], batch: int) -> None:
        self._maybe_crash(CrashPoint.AFTER_OFFSET_LOG, batch)
        self._call("partitions")
        rows: list[object] = []
        before = self.checkpoint.offsets.get(batch - 1)
        start = None if before is None else json.loads(before)
        for task in source.partitions(start, json.loads(self.checkpoint.offsets[batch])):
            read = list(self._read(task))
            rows.extend(read)
            self.sink.written.extend(read)
            self._maybe_crash(CrashPoint.IN_TASK, batch)
        self.sink.by_batch[batch] = rows
        self._maybe_crash(CrashPoint.AFTER_SINK_COMMIT, batch)
        self.checkpoint.commits.append(batch)
        self._maybe_crash(CrashPoint.AFTER_COMMIT_LOG, batch)

    def _maybe_crash(self, point: CrashPoint, batch: int) -> None:
        if self._crash == (point, batch):
            raise Crashed(f"batch {batch}: {point.value}")

    def _call(self, name: str) -> None:
        self.calls.append(name)
