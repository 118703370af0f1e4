"""Merge batches of delivery states: on equal offsets the higher delivery count wins, then the higher state.

The result does not depend on the order in which leaders' writes arrive, so a write that is repeated does no harm.
(Kafka: PersisterStateBatchCombiner.)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from operator import itemgetter

from partita.share.coordinator.model import KEEP_START, StateBatch

_ORDER = itemgetter(0, 1, 3, 2)


def merged(stored: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return the batches at or above the start offset, sorted and without overlap."""
    waiting = sorted({batch for given in (stored, new) for batch in _from(start_offset, given)}, key=_ORDER)
    waiting.reverse()
    done: list[StateBatch] = []
    while waiting:
        batch = waiting.pop()
        if not waiting or not _meet(batch, waiting[-1]):
            done.append(batch)
            continue
        other = waiting.pop()
        for piece in _joined(batch, other):
            insort(waiting, piece, key=_descending)
    return tuple(done)


def _descending(batch: StateBatch) -> tuple[int, int, int, int]:
    return (-batch.first, -batch.last, -batch.delivery_count, -batch.state)


def _from(start_offset: int, batches: Iterable[StateBatch]) -> Iterable[StateBatch]:
    if start_offset == KEEP_START:
        return batches
    return [b._replace(first=max(b.first, start_offset)) for b in batches if b.last >= start_offset]


def _meet(batch: StateBatch, other: StateBatch) -> bool:
    """Whether they overlap, or touch and can be one. `batch` sorts before `other`."""
    return other.first <= batch.last or (other.first == batch.last + 1 and _rank(batch) == _rank(other))


def _rank(batch: StateBatch) -> tuple[int, int]:
    return (batch.delivery_count, batch.state)


def _joined(batch: StateBatch, other: StateBatch) -> list[StateBatch]:
    """One batch if they agree, else the higher one whole and the remainders of the other. `batch` sorts first."""
    if _rank(batch) == _rank(other):
        return [batch._replace(last=max(batch.last, other.last))]
    high, low = (other, batch) if _rank(other) > _rank(batch) else (batch, other)
    pieces = [high]
    if low.first < high.first:
        pieces.append(low._replace(last=high.first - 1))
    if low.last > high.last:
        pieces.append(low._replace(first=high.last + 1))
    return pieces
