"""Reads partitions for a member of the old designs: our consumer without a group, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from partita import Consumer
from partita.designs.members.settings import Say
from partita.designs.rules.assignment import Partition

T = TypeVar("T")
POLL_S = 0.03
FETCH_WAIT_MS = 100


class Reader:
    """Reads the partitions it is given, reports the records, and knows the position of each partition."""

    def __init__(self, bootstrap: str, say: Say) -> None:
        self._say = say
        self._consumer: Consumer[bytes, bytes] = Consumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )  # fmt: skip
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._positions: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}
        self._slow_ms = 0
        self._is_open = True
        self._thread = threading.Thread(target=self._run, daemon=True, name="reader")
        self._thread.start()

    def start(self, offsets: Mapping[Partition, int | None]) -> None:
        """Read these partitions from these offsets; None: from the beginning."""

        def begin() -> None:
            self._positions = {partition: offset for partition, offset in offsets.items() if offset is not None}
            self._committed = dict(self._positions)
            self._consumer.assign(list(offsets))
            for partition, offset in self._positions.items():
                self._consumer.seek(partition, offset)
            self._say("reading", partitions=sorted(number for _, number in offsets))

        self._do(begin)

    def stop(self) -> dict[Partition, int]:
        """Stop reading; return the positions that moved since they were committed."""

        def end() -> dict[Partition, int]:
            if self._consumer.assignment():
                self._consumer.assign([])
                self._say("reading", partitions=[])
            moved = self._moved()
            self._positions = {}
            return moved

        return self._do(end)

    def moved(self) -> dict[Partition, int]:
        """Return the positions that moved since the last call, to be committed."""
        return self._do(self._moved)

    def slow(self, ms: int) -> None:
        """Make the processing of the next records take `ms`."""
        self._slow_ms = ms

    def close(self) -> None:
        """End the thread and the consumer."""
        self._is_open = False
        self._thread.join()
        self._consumer.close()

    def _moved(self) -> dict[Partition, int]:
        found = {part: offset for part, offset in self._positions.items() if self._committed.get(part) != offset}
        self._committed |= found
        return found

    def _do(self, act: Callable[[], T]) -> T:
        done: SimpleQueue[T] = SimpleQueue()
        self._orders.put(lambda: done.put(act()))
        return done.get()

    def _run(self) -> None:
        while self._is_open:
            is_reading = bool(self._consumer.assignment())
            try:
                self._orders.get(block=not is_reading, timeout=None if is_reading else POLL_S)()
            except Empty:
                if is_reading:
                    self._read()

    def _read(self) -> None:
        records = self._consumer.poll(POLL_S)
        self._positions |= {(r.topic, r.partition): r.offset + 1 for r in records}
        if records:
            self._say("read", ranges=ranges_of(records))
        if records and self._slow_ms:
            ms, self._slow_ms = self._slow_ms, 0
            process_slowly(ms, self._say)


def ranges_of(records: Any) -> list[list[int]]:
    """[partition, first offset, end offset] of each run of records."""
    runs: dict[int, list[int]] = {}
    for record in records:
        run = runs.setdefault(record.partition, [record.partition, record.offset, record.offset])
        run[2] = record.offset + 1
    return list(runs.values())


def process_slowly(ms: int, say: Say) -> None:
    """Spend `ms` on records that were read."""
    say("busy", ms=ms)
    time.sleep(ms / 1000)
