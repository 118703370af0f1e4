# cython: boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=True
"""Many records of one topic at once: rows of columns, written into batches with no Python object for each.

Compiled by Cython when a compiler is there (its types: bulk.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from partita.producer.batch import Batch
from partita.producer.core import ProducerCore
from partita.producer.intake import STICKY_OVERHEAD_BYTES
from partita.records.row_packing import Cells

_OVERHEAD: int = STICKY_OVERHEAD_BYTES


class Columns:
    """Rows to send. `headers` are encoded, their count in front; None: no row has any.

    `times` are 64-bit milliseconds, None: now. `partitions` are 32-bit integers, -1: to be chosen, as all are if None.
    """

    __slots__ = ("headers", "keys", "partitions", "rows", "times", "values")

    def __init__(
        self, keys: Cells, values: Cells, headers: Cells | None, times: object | None, partitions: object | None
    ) -> None:
        self.keys = keys
        self.values = values
        self.headers = headers
        self.times = None if times is None else memoryview(times)  # type: ignore[arg-type]  # any buffer
        self.partitions = None if partitions is None else memoryview(partitions)  # type: ignore[arg-type]  # any buffer
        self.rows = values.rows


class RowsIn:
    """`add` takes rows in. `guard` is the lock around the core, the clocks are in ns (wall) and s (monotonic)."""

    __slots__ = ("_core", "_guard", "_ignores_keys", "_mono", "_room", "_size_max", "_wall_ns")

    def __init__(
        self,
        core: ProducerCore,
        guard: AbstractContextManager[Any],
        wall_ns: Callable[[], int],
        mono: Callable[[], float],
    ) -> None:
        self._core = core
        self._guard = guard
        self._wall_ns = wall_ns
        self._mono = mono
        self._ignores_keys = core.config.ignore_keys
        self._room = core.config.buffer_memory
        self._size_max = core.intake.size_max

    def add(self, topic: str, columns: Columns, begin: int, places: Any, homes: list[Any]) -> int:
        """Put rows from `begin` on into batches while the buffer has room; return the next row.

        `places`, 64-bit integers, gets for each row the number of its home, times 2**32, and its place there; a batch
        or the error of a record that cannot be sent is appended to `homes`. The topic's partitions must be known.
        Takes nothing while records of the topic wait. Raises what forbids to send at all.
        """
        with self._guard:
            self._core.check_open()
            if topic in self._core.intake.blocked:
                return begin
            end = self._take(topic, columns, begin, places, homes)
            if end > begin:
                self._core.rows_taken()
        return end

    def _take(self, topic: str, columns: Columns, begin: int, places: Any, homes: list[Any]) -> int:
        core = self._core
        accumulator, intake = core.accumulator, core.intake
        where = memoryview(places)
        partitions = len(core.view.topics[topic].partitions)
        version = core.view.version
        now_ms = self._wall_ns() // 1_000_000
        sticky = intake.sticky.get(topic)
        batches: list[Batch | None] = [None] * partitions
        numbers = [0] * partitions
        waiting = intake.waiting_bytes  # does not change while the core is guarded
        row = begin
        while row < columns.rows and accumulator.used_bytes + waiting < self._room:
            key_size = columns.keys.size(row)
            size = max(key_size, 0) + max(columns.values.size(row), 0)
            partition = -1 if columns.partitions is None else columns.partitions[row]
            if size > self._size_max or partition >= partitions:
                error = intake.too_large(size) if size > self._size_max else intake.no_such_partition(topic, partition)
                homes.append(core.refuse(topic, error))
                number = len(homes) - 1
                where[row] = number << 32
                row += 1
                continue
            if partition < 0 and key_size >= 0 and not self._ignores_keys:
                partition = (columns.keys.hash(row) & 0x7FFFFFFF) % partitions
            elif partition < 0:
                partition = -1 if sticky is None else sticky.current(version)
                if partition < 0:
                    partition = intake.sticky_partition(topic, partitions)
                    sticky = intake.sticky[topic]
            batch = batches[partition]
            if batch is None:
                batch = accumulator.open_wide(topic, partition, int(self._mono() * 1000))
                homes.append(batch)
                batches[partition] = batch
                numbers[partition] = len(homes) - 1
            builder = batch.builder
            before = builder.size_in_bytes
            moment = now_ms if columns.times is None else columns.times[row]
            if not builder.append_row(moment, columns.keys, columns.values, columns.headers, row):
                batch.is_closed = True
                batches[partition] = None
                continue
            accumulator.used_bytes += builder.size_in_bytes - before
            if sticky is not None:
                sticky.sent(partition, _OVERHEAD + size)
            number = numbers[partition]
            where[row] = number << 32 | (builder.records_count - 1)
            row += 1
        return row
