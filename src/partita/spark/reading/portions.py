"""Cuts fetched data into portions, and rows into Arrow batches, so that a task's memory stays bounded.

A broker bounds an answer by compressed bytes; a few hundred kilobytes can hold a gigabyte of records. So compressed
answers are inflated in portions, sized by how much the last ones grew. A single record batch is never cut: it is
inflated whole, and handed on in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.protocol.primitives import Buffer
from partita.records.header import cut, read_header

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = later("pyarrow")

ROWS_MAX = 65_536
BYTES_MAX = 16 << 20
"""Most rows, and bytes, of one Arrow batch. One row may be larger."""
JOINED_MAX = 4096
"""Most rows of a batch that is made of smaller ones."""
Aborted = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Portion:
    """Whole record batches, the offset behind them, and the aborted transactions that may reach into them."""

    data: Buffer
    next_offset: int
    aborted: Aborted | None


@dataclass(slots=True)
class Portions:
    """One per task. `bytes_max` bounds the inflated size of a portion that holds more than one record batch.

    `growth` is how much compressed records grow; infinite before any were seen, so that the first portion is one batch.
    """

    bytes_max: int = BYTES_MAX
    growth: float = math.inf

    def of(self, data: Buffer, aborted: Aborted | None) -> Iterator[Portion]:
        """The portions of one answer, in order. Call `inflated` after each one."""
        view = memoryview(data)
        begin = end = 0
        growth, last = 1.0, (2, view)
        for magic, entry in cut(view):
            if end > begin and (end - begin + len(entry)) * growth > self.bytes_max:
                yield Portion(view[begin:end], _behind(*last), aborted)
                aborted = _still_open(view[begin:end], aborted)
                begin = end
            if begin == end:
                growth = self.growth if _is_compressed(magic, entry) else 1.0
            end += len(entry)
            last = (magic, entry)
        if end > begin:
            yield Portion(view[begin:end], _behind(*last), aborted)

    def inflated(self, portion: Portion, nbytes: int) -> None:
        """Take note of how large the portion became. Forgets large growth only slowly."""
        before = 1.0 if math.isinf(self.growth) else self.growth / 2
        self.growth = max(1.0, before, nbytes / len(portion.data))


def bounded(batch: pa.RecordBatch, bytes_max: int = BYTES_MAX) -> Iterator[pa.RecordBatch]:
    """The same rows in batches within the bounds, without copying."""
    for start in range(0, batch.num_rows, ROWS_MAX):
        yield from _halved(batch.slice(start, ROWS_MAX), bytes_max)


def joined(batches: Iterable[pa.RecordBatch], bytes_max: int = BYTES_MAX) -> Iterator[pa.RecordBatch]:
    """The same rows with neighbours of few rows in one batch: each batch costs Spark time, however small it is.

    A joined portion has at most `JOINED_MAX` rows and `bytes_max` bytes; Arrow's columns could not hold 2 GB.
    """
    held: list[pa.RecordBatch] = []
    rows = nbytes = 0
    for batch in batches:
        if held and (rows + batch.num_rows > JOINED_MAX or nbytes + batch.nbytes > bytes_max):
            yield _one(held)
            held, rows, nbytes = [], 0, 0
        if batch.num_rows > JOINED_MAX:
            yield batch
            continue
        held.append(batch)
        rows += batch.num_rows
        nbytes += batch.nbytes
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _halved(batch: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= bytes_max:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halved(batch.slice(0, middle), bytes_max)
    yield from _halved(batch.slice(middle), bytes_max)


def _is_compressed(magic: int, entry: memoryview) -> bool:
    return magic < 2 or read_header(entry).codec != 0


def _behind(magic: int, entry: memoryview) -> int:
    """The offset after the last one of a batch."""
    return read_header(entry).next_offset if magic >= 2 else int.from_bytes(entry[:8], "big") + 1


def _still_open(data: memoryview, aborted: Aborted | None) -> Aborted | None:
    """The aborted transactions whose end marker is not among these batches.

    Without this, records that the same producer committed later would be taken for aborted ones.
    """
    if not aborted:
        return aborted
    headers = [read_header(entry) for magic, entry in cut(data) if magic >= 2]
    markers = [(header.producer_id, header.base_offset) for header in headers if header.is_control]
    return tuple(
        (producer, first)
        for producer, first in aborted
        if not any(producer == ended and first < at for ended, at in markers)
    )
