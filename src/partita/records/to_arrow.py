"""Fetched batches of one or more partitions into one Arrow RecordBatch.

The schema is stable: key, value, topic, partition, offset, timestamp, timestamp_type, headers, and on demand
leader_epoch. The columns are those of Spark's Kafka source, so that a Spark reader only renames. The hot loop is in
`columns`; here memory is given to it and arrays are made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from partita.protocol.primitives import Buffer
from partita.records.column_memory import ColumnMemory, repeated
from partita.records.columns import fill_offsets
from partita.records.compression import DEFAULT_MAX_BYTES
from partita.records.fetched_batches import FetchedBatches
from partita.records.header import InvalidBatch, corrupt

_NO_END = 2**63 - 1
_OVER = (None, b"")


@dataclass(frozen=True, slots=True)
class FetchedPart:
    """Fetched bytes of one partition. `aborted` (producer id, first offset) is set for read_committed only."""

    topic: str
    partition: int
    data: Buffer | Sequence[Buffer]
    fetch_offset: int = 0
    end_offset: int = _NO_END
    """Records from here on are left out."""
    aborted: Sequence[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class ArrowRead:
    """The records of all parts in order; for each part, the next offset and the error that stopped it, if any.

    Records before a fault are in the batch. A part also ends early when a column has no room for its next batch.
    """

    batch: pa.RecordBatch
    next_offsets: tuple[int, ...]
    faults: tuple[InvalidBatch | None, ...]


@cache
def arrow_schema(*, timestamp_unit: str = "ms", headers: bool = True, leader_epoch: bool = False) -> pa.Schema:
    """The schema of `to_arrow` with the same options."""
    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp(timestamp_unit, "UTC")),
        pa.field("timestamp_type", pa.int32()),
    ]
    if headers:
        header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        fields.append(pa.field("headers", pa.list_(pa.field("element", header))))
    if leader_epoch:
        fields.append(pa.field("leader_epoch", pa.int32()))
    return pa.schema(fields)


def to_arrow(
    parts: Iterable[FetchedPart],
    *,
    timestamp_unit: str = "ms",
    headers: bool = True,
    leader_epoch: bool = False,
    check_crcs: bool = True,
    max_batch_bytes: int = DEFAULT_MAX_BYTES,
) -> ArrowRead:
    """Decode everything fetched; `timestamp_unit` is ms, exact, or us, as Spark wants it."""
    if timestamp_unit not in ("ms", "us"):
        raise ValueError(f"timestamp unit {timestamp_unit!r}; expected 'ms' or 'us'")
    parts = list(parts)
    memory = ColumnMemory(_bytes_in(parts), with_headers=headers, in_microseconds=timestamp_unit == "us")
    runs: list[tuple[bytes, int, int]] = []
    walks = []
    for part in parts:
        before = memory.writer.rows
        walk = FetchedBatches(
            part.data,
            part.fetch_offset,
            aborted=part.aborted,
            check_crcs=check_crcs,
            max_batch_bytes=max_batch_bytes,
        )
        walks.append((_append_part(memory, part, walk), walk.fault))
        runs.append((part.topic.encode(), part.partition, memory.writer.rows - before))
    schema = arrow_schema(timestamp_unit=timestamp_unit, headers=headers, leader_epoch=leader_epoch)
    columns = memory.columns(schema) | _where(runs, memory.writer.rows)
    batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    return ArrowRead(batch, tuple(offset for offset, _ in walks), tuple(fault for _, fault in walks))


def _bytes_in(parts: Iterable[FetchedPart]) -> int:
    buffers = ((part.data,) if isinstance(part.data, bytes | bytearray | memoryview) else part.data for part in parts)
    return sum(len(buffer) for several in buffers for buffer in several)


def _append_part(memory: ColumnMemory, part: FetchedPart, walk: FetchedBatches) -> int:
    """Append one partition's records; return the offset to go on from."""
    while walk.fault is None:
        memory.append_plain(walk, part.end_offset)
        header, payload = next(walk, _OVER)
        if header is None:
            break
        if header.base_offset >= part.end_offset:
            return part.end_offset
        if not memory.append(header, payload, walk.next_offset, part.end_offset):
            break
        if memory.writer.fault is not None:
            walk.stop(corrupt(memory.writer.fault), memory.writer.next_offset)
    return min(walk.next_offset, part.end_offset)


def _where(runs: list[tuple[bytes, int, int]], rows: int) -> dict[str, pa.Array]:
    """The topic and partition columns: each part's values repeated."""
    offsets = pa.allocate_buffer(4 * (rows + 1))
    view = memoryview(offsets).cast("B").cast("i")
    view[0] = row = 0
    for topic, _, count in runs:
        fill_offsets(view, row, count, len(topic))
        row += count
    topics = pa.py_buffer(b"".join(topic * count for topic, _, count in runs))
    partitions = repeated((partition, count) for _, partition, count in runs)
    return {
        "topic": pa.StringArray.from_buffers(rows, offsets, topics),
        "partition": pa.Array.from_buffers(pa.int32(), rows, [None, partitions]),
    }
