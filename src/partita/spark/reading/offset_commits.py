"""Decodes the committed offsets of `__consumer_offsets`, a whole Arrow batch at a time.

Keys of kind 0 and 1, values of version 0 to 4, as Kafka writes them; records of groups and other kinds are left
out. numpy gathers the numbers and texts of all rows at once, because no Python object per record keeps up with a log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
NEWEST_VERSION = 4
"""The newest value version that is understood. Of newer ones only the key is decoded, and the value kept raw."""
_PADDING = 32
"""Zero bytes behind the data, so that a damaged length never reads beyond it."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The bytes of a binary column."""

    data: NDArray[np.uint8]
    starts: Numbers
    lengths: Numbers

    @staticmethod
    def of(column: pa.Array) -> Cells:
        """Null counts as empty."""
        filled = column.fill_null(b"")
        _, offsets, data = filled.buffers()
        bounds = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
        plain = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data is not None else np.zeros(0, np.uint8)
        return Cells(np.concatenate([plain, np.zeros(_PADDING, np.uint8)]), bounds[:-1] - bounds[0], np.diff(bounds))

    def number(self, at: Numbers | int, size: int) -> Numbers:
        """A big-endian signed number of 2, 4 or 8 bytes at a place in each row."""
        last = len(self.data) - size
        every = np.ndarray(last + 1, f">i{size}", self.data, strides=(1,))
        found: Numbers = every[np.clip(self.starts + at, 0, last)].astype(np.int64)
        return found

    def uvarint(self, at: Numbers | int) -> tuple[Numbers, Numbers]:
        """An unsigned varint of up to three bytes at a place in each row, and how many bytes it has."""
        places = np.minimum(self.starts + at, len(self.data) - 3)
        value, size = self.data[places].astype(np.int64), np.ones(len(places), np.int64)
        if value.max(initial=0) < 0x80:
            return value, size
        goes_on = value >= 0x80
        value &= 0x7F
        for i in (1, 2):
            byte = self.data[places + i].astype(np.int64)
            value = np.where(goes_on, value | (byte & 0x7F) << (7 * i), value)
            size = np.where(goes_on, i + 1, size)
            goes_on &= byte >= 0x80
        return value, size

    def texts(self, at: Numbers | int, lengths: Numbers) -> pa.Array:
        """The text at a place in each row; a length that leads out of its cell is cut there."""
        ends = self.starts + self.lengths
        starts = np.clip(self.starts + at, self.starts, ends)
        # The texts and the gaps between them as one column of the same bytes: Arrow then copies every other cell.
        bounds = np.zeros(2 * len(ends) + 1, np.int32)
        bounds[:-1:2] = starts
        bounds[1::2] = starts + np.clip(lengths, 0, ends - starts)
        bounds[-1] = bounds[-2] if len(ends) else 0
        both = pa.StringArray.from_buffers(2 * len(ends), pa.py_buffer(bounds), pa.py_buffer(self.data))
        return both.take(pa.array(np.arange(0, 2 * len(ends), 2)))


def offset_commits(records: pa.RecordBatch) -> pa.RecordBatch:
    """One row per commit or tombstone in these records of `__consumer_offsets`, in their order."""
    keys = Cells.of(records.column("key"))
    kinds = keys.number(0, 2)
    is_commit = (keys.lengths >= 2) & (kinds >= 0) & (kinds <= 1)
    if not is_commit.all():
        records = records.take(pa.array(np.nonzero(is_commit)[0]))
        keys = Cells.of(records.column("key"))
    values = Cells.of(records.column("value"))
    group_size = keys.number(2, 2)
    topic_size = keys.number(4 + group_size, 2)
    is_tombstone = np.asarray(records.column("value").is_null())
    version = values.number(0, 2)
    is_unknown = ~is_tombstone & ((version < 0) | (version > NEWEST_VERSION) | (values.lengths < 10))
    commit = _commit(values, version)
    hidden = is_tombstone | is_unknown
    columns = {
        "group": keys.texts(4, group_size),
        "topic": keys.texts(6 + group_size, topic_size),
        "partition": pa.array(keys.number(6 + group_size + topic_size, 4).astype(np.int32)),
        "offset": pa.array(commit.offset, mask=hidden),
        "leaderEpoch": pa.array(commit.leader_epoch.astype(np.int32), mask=hidden | (commit.leader_epoch < 0)),
        "metadata": pc.if_else(pa.array(hidden), pa.scalar(None, pa.string()), commit.metadata),
        "commitTime": _instants(commit.commit_ms, hidden),
        "expireTime": _instants(commit.expire_ms, hidden | (commit.expire_ms < 0)),
        "isTombstone": pa.array(is_tombstone),
        "unknownValue": pc.if_else(pa.array(is_unknown), records.column("value"), pa.scalar(None, pa.binary())),
        "logPartition": records.column("partition"),
        "logOffset": records.column("offset"),
        "logTimestamp": records.column("timestamp"),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


@dataclass(frozen=True, slots=True)
class _Commits:
    offset: Numbers
    leader_epoch: Numbers
    metadata: pa.Array
    commit_ms: Numbers
    expire_ms: Numbers


def _commit(values: Cells, version: Numbers) -> _Commits:
    """The fields of each value. The leader epoch is -1 before version 3, the expiry in all versions but 1."""
    has_epoch = version >= 3
    at = np.where(has_epoch, 14, 10)
    compact, compact_size = values.uvarint(at)
    is_compact = version >= 4
    size = np.where(is_compact, compact - 1, values.number(at, 2))
    at = at + np.where(is_compact, compact_size, 2)
    behind = at + np.maximum(size, 0)
    return _Commits(
        offset=values.number(2, 8),
        leader_epoch=np.where(has_epoch, values.number(10, 4), -1),
        metadata=values.texts(at, size),
        commit_ms=values.number(behind, 8),
        expire_ms=np.where(version == 1, values.number(behind + 8, 8), -1),
    )


def _instants(milliseconds: Numbers, mask: NDArray[np.bool_]) -> pa.Array:
    """Milliseconds since 1970 as instants; those beyond the range of microseconds are clamped."""
    micros = np.clip(milliseconds, -(2**63) // 1000 + 1, 2**63 // 1000 - 1) * 1000
    return pa.array(micros, pa.int64(), mask=mask).cast(pa.timestamp("us", "UTC"))
