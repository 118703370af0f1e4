"""A log of batches as rules see it: who wrote which values, which markers came, what is committed.

Built from the batches alone, apart from what the partition itself remembers; so each judges the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from partita.log.producer_state import bytes_of, read_marker
from partita.protocol.primitives import Buffer
from partita.records.batch import COMMIT, iter_records
from partita.records.header import BatchHeader


class Entry(NamedTuple):
    """One record of a log. Keys and values are bytes; a plain record belongs to no transaction."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int
    epoch: int
    is_transactional: bool


@dataclass(slots=True)
class End:
    """A marker."""

    offset: int
    producer_id: int
    epoch: int
    is_commit: bool
    coordinator_epoch: int
    has_ended: bool
    """Whether a transaction was open."""


class LogModel:
    """One partition. `next_offset` is where the next batch is expected."""

    def __init__(self) -> None:
        self.items: list[Entry | End] = []
        self.next_offset = 0
        self.open: dict[int, int] = {}
        """First offsets of open transactions, by producer id."""

    def add(self, header: BatchHeader, batch: Buffer) -> list[Entry | End]:
        """Take one batch; returns what is new."""
        new: list[Entry | End] = []
        marker = read_marker(batch) if header.is_control else None
        if marker is not None:
            kind, coordinator_epoch = marker
            producer_id, epoch = header.producer_id, header.producer_epoch
            has_ended = producer_id in self.open
            new.append(End(header.base_offset, producer_id, epoch, kind == COMMIT, coordinator_epoch, has_ended))
        elif not header.is_control:
            for record in iter_records(batch):
                key = None if record.key is None else bytes_of(record.key)
                value = None if record.value is None else bytes_of(record.value)
                producer = (header.producer_id, header.producer_epoch, header.is_transactional)
                new.append(Entry(record.offset, key, value, *producer))
        self.items += new
        for item in new:
            self._note(item)
        self.next_offset = header.next_offset
        return new

    def _note(self, item: Entry | End) -> None:
        if isinstance(item, End):
            self.open.pop(item.producer_id, None)
        elif item.is_transactional:
            self.open.setdefault(item.producer_id, item.offset)

    def open_producers(self) -> list[tuple[int, int, int]]:
        """Of each open transaction: producer id, epoch, and the last marker's coordinator epoch or -1."""
        found = []
        for producer_id in self.open:
            own = [item for item in self.items if item.producer_id == producer_id]
            coordinator = max((item.coordinator_epoch for item in own if isinstance(item, End)), default=-1)
            found.append((producer_id, own[-1].epoch, coordinator))
        return found

    def truncate(self, offset: int) -> None:
        """Forget what is not below `offset`."""
        self.items = [item for item in self.items if item.offset < offset]
        self.next_offset = min(self.next_offset, offset)
        self.open.clear()
        for item in self.items:
            self._note(item)

    def in_effect(self) -> list[Entry]:
        """Records that took effect, in the order they did: a later plain one beats an earlier pending one.

        A plain tombstone, which only topics of offsets have, takes what is pending for its key along.
        """
        waiting: dict[int, list[Entry]] = {}
        found: list[Entry] = []
        for item in self.items:
            if isinstance(item, End):
                done = waiting.pop(item.producer_id, [])
                found += done if item.is_commit else []
            elif item.is_transactional:
                waiting.setdefault(item.producer_id, []).append(item)
            else:
                found.append(item)
                if item.value is None:
                    waiting = {of: [one for one in items if one.key != item.key] for of, items in waiting.items()}
        return found

    def committed(self) -> list[Entry]:
        """Return committed and plain records by offset; open transactions count as aborted."""
        return sorted(self.in_effect())

    def aborted(self) -> list[tuple[int, int, int]]:
        """(producer id, first offset, offset of the marker) of every aborted transaction, by their markers."""
        first: dict[int, int] = {}
        found: list[tuple[int, int, int]] = []
        for item in self.items:
            if not isinstance(item, End):
                if item.is_transactional:
                    first.setdefault(item.producer_id, item.offset)
                continue
            start = first.pop(item.producer_id, None)
            if start is not None and not item.is_commit:
                found.append((item.producer_id, start, item.offset))
        return found

    def ends(self) -> list[End]:
        """Every marker, in order."""
        return [item for item in self.items if isinstance(item, End)]
