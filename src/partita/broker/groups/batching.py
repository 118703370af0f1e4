"""The steps of a coordinator as batches of the group log: which steps share a batch, and the batches' bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from partita.group.contract import Marker, Producer, Record, Step
from partita.records.builder import Headers, build_batch, build_marker
from partita.records.control import ABORT, COMMIT

BATCH_BYTES = 512 * 1024
"""Steps share a batch up to this size; the records of one step are never parted."""
Shared: TypeAlias = tuple[list[Record], Producer | None, Marker | None, list[Step]]
"""Records of one batch, their producer, a marker behind them, and the steps they come from."""


def shared_batches(steps: list[Step], max_bytes: int = BATCH_BYTES) -> Iterator[Shared]:
    """Put steps together that may share a batch of up to `max_bytes`; a transactional step, or a marker, never does."""
    limit = min(BATCH_BYTES, max_bytes // 2)
    records: list[Record] = []
    covered: list[Step] = []
    size = 0
    for step in steps:
        alone = step.producer is not None or step.marker is not None
        step_bytes = sum(len(key) + len(value or b"") for key, value in step.records)
        if covered and (alone or size + step_bytes > limit):
            yield records, None, None, covered
            records, covered, size = [], [], 0
        if alone:
            yield list(step.records), step.producer, step.marker, [step]
            continue
        records += step.records
        covered.append(step)
        size += step_bytes
    if covered:
        yield records, None, None, covered


def encode(
    records: list[Record],
    producer: Producer | None,
    marker: Marker | None,
    wall_ms: int,
    codec: int,
    headers_of: Callable[[Record], Headers],
) -> Iterator[bytes]:
    """A batch of the records, if any; behind it the marker, if any."""
    if records:
        given = [(wall_ms, record.key, record.value, headers_of(record)) for record in records]
        if producer is None:
            yield build_batch(given, codec=codec)
        else:
            yield build_batch(
                given,
                codec=codec,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                is_transactional=True,
            )
    if marker is not None:
        yield build_marker(
            COMMIT if marker.committed else ABORT,
            timestamp=wall_ms,
            producer_id=marker.producer.producer_id,
            producer_epoch=marker.producer.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
