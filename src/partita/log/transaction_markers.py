"""Commit and abort markers, and the effect of a batch on its producer's state.

A marker is a control batch with one record: key = version, type; value = version, coordinator epoch.
Upstream: EndTransactionMarker.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.log.producer_state import COMMIT, ProducerStates
from partita.protocol.primitives import Buffer
from partita.records.header import BatchHeader, corrupt

if TYPE_CHECKING:
    from partita.records import batch as record_batch
else:
    record_batch = later("partita.records.batch")

_KEY = Struct(">hh")
_VALUE = Struct(">hi")


def read_marker(batch: Buffer) -> tuple[int, int] | None:
    """Return (type, coordinator epoch) of a commit or abort marker, None for other control batches."""
    for record in record_batch.iter_records(batch, check_crcs=False):
        try:
            _, kind = _KEY.unpack_from(bytes_of(record.key))
            if kind not in (0, COMMIT):
                return None
            return kind, int(_VALUE.unpack_from(bytes_of(record.value))[1])
        except StructError:
            raise corrupt("a control record without type or coordinator epoch") from None
    return None


def bytes_of(field: object) -> bytes:
    """Return a record's key or value as written; empty for null."""
    assert field is None or isinstance(field, bytes), f"raw records hold bytes, not {type(field)}"
    return field or b""


def note_batch(
    states: ProducerStates, header: BatchHeader, control_batch: Buffer | None, transaction_version: int = 0
) -> None:
    """Apply one batch of the log to the producer states; control batches need their bytes."""
    if not header.is_control:
        states.remember(header, header.base_offset)
        return
    assert control_batch is not None, "a control batch is read with its bytes"
    marker = read_marker(control_batch)
    if marker is not None:
        kind, coordinator_epoch = marker
        states.end_transaction(
            header,
            header.base_offset,
            is_commit=kind == COMMIT,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
