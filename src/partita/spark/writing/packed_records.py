"""Rows of a table as batches of records, encoded and not yet sealed with a producer's id and sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from partita.producer.columns import cells_of
from partita.protocol.primitives import Buffer
from partita.records import row_packing
from partita.records.builder import assemble
from partita.records.compression import compress
from partita.records.header import HEADER_SIZE, TRANSACTIONAL_BIT
from partita.records.row_packing import RowEncoder
from partita.spark.writing.arrow_encoder import ArrowEncoder

Places = NDArray[np.int64]
"""Selected rows of a table in their order."""


class Encoder(Protocol):
    """Encodes rows of one table. Both implementations give the same bytes."""

    def cuts(self, places: Places, batch_bytes: int) -> Sequence[int]:
        """Cuts of the rows into batches of at most `batch_bytes`: 0 first, their count last."""
        ...

    def encode(self, places: Places) -> memoryview:
        """The records of these rows behind room for a header, with offsets from 0 and times from the first row's on."""
        ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of one partition. `timestamps_ms` has a timestamp for each row of the table; None: all have one."""

    encoder: Encoder
    places: Places
    timestamp_ms: int
    timestamps_ms: NDArray[np.int64] | None = None

    def at(self, places: Places) -> Rows:
        """Other rows of the same table."""
        return Rows(self.encoder, places, self.timestamp_ms, self.timestamps_ms)


def rows_of(
    keys: pa.Array,
    values: pa.Array,
    headers: pa.Array | None,
    timestamp_ms: int,
    timestamps_ms: NDArray[np.int64] | None = None,
) -> Rows:
    """All rows of these columns, which are binary.

    `headers` holds the encoded headers of each row with their count in front; None: no row has any.
    """
    encoder: Encoder
    if row_packing.COMPILED:
        encoded = None if headers is None else cells_of(headers)
        encoder = RowEncoder(cells_of(keys), cells_of(values), encoded, timestamps_ms)
    else:
        encoder = ArrowEncoder(keys, values, headers, timestamps_ms)
    return Rows(encoder, np.arange(len(values)), timestamp_ms, timestamps_ms)


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """Encoded records of one batch, compressed, behind room for its header. `rows` are their source, for `split`.

    `size` is that of the records before compression.
    """

    payload: memoryview
    size: int
    rows: Rows
    codec: int
    level: int | None = None

    @property
    def records_count(self) -> int:
        """Number of records it holds."""
        return len(self.rows.places)

    def split(self, batch_bytes: int) -> list[PackedRecords]:
        """The same records in batches of at most `batch_bytes`, but for a single large record."""
        return pack(self.rows, batch_bytes=batch_bytes, codec=self.codec, level=self.level)

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> Buffer:
        """The bytes of the whole batch, which are the payload's own, so each call changes the last result."""
        rows = self.rows
        times = None if rows.timestamps_ms is None else rows.timestamps_ms[rows.places]
        return assemble(
            self.payload,
            codec=0,
            room=HEADER_SIZE,
            base_offset=0,
            leader_epoch=-1,
            attributes=self.codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            last_offset_delta=self.records_count - 1,
            base_timestamp=rows.timestamp_ms if times is None else int(times[0]),
            max_timestamp=rows.timestamp_ms if times is None else int(times.max()),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self.records_count,
        )


def pack(rows: Rows, *, batch_bytes: int, codec: int, level: int | None = None) -> list[PackedRecords]:
    """Batches of about `batch_bytes` (never more, but for a single large record), in row order."""
    packed = []
    for begin, end in pairwise(rows.encoder.cuts(rows.places, batch_bytes)):
        part = rows.at(rows.places[begin:end])
        payload = rows.encoder.encode(part.places)
        size = len(payload) - HEADER_SIZE
        if codec:
            # At once: memory that is given back before the next batch is asked for costs no page faults.
            payload = memoryview(bytearray().join((bytes(HEADER_SIZE), compress(codec, payload[HEADER_SIZE:], level))))
        packed.append(PackedRecords(payload, size, part, codec, level))
    return packed
