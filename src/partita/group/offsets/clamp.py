"""Committed offsets beyond the end of their log, as a power loss may leave them.

New records would reuse the lost offsets, and the group would silently skip them (faults.md D4). Such an offset is
committed again as the end of the log. One that was beyond the end when it was committed is deliberate and stays; the
shell recognises it by a mark in the log.

Deviation: Partita lowers a committed offset that an unclean stop has left beyond the end of its log to that end, where
Kafka leaves it to the replicas, which have the records, or to `auto.offset.reset`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from partita.group.contract import Producer, Record
from partita.group.notes import OffsetClamped
from partita.group.records import log_records
from partita.group.records.hard_state import HardState, TopicPartition
from partita.group.state.turn import Turn

EndOf: TypeAlias = Callable[[TopicPartition], int | None]
"""Returns where the log of a partition ended after the start; None when there is no such partition."""
NO_PRODUCER_ID = -1
_VALUE_OFFSET = slice(2, 10)
"""Position of the offset in the value; every version begins with version and offset."""


class Beyond(NamedTuple):
    """One committed offset beyond the end of its log, with the value of its record."""

    key: bytes
    value: bytes
    log_end_offset: int
    producer_id: int = NO_PRODUCER_ID
    """Producer of the open transaction it belongs to, if any."""


def offset_of(value: bytes) -> int:
    """Return the offset in the value of an offset record."""
    return int.from_bytes(value[_VALUE_OFFSET], "big", signed=True)


def beyond_ends(hard: HardState, end_of: EndOf) -> Iterator[Beyond | None]:
    """Check every committed offset, also of open transactions; yield it if it is beyond its log, else None."""
    for group_id, offsets in hard.offsets.items():
        yield from _beyond(group_id, offsets, end_of, NO_PRODUCER_ID)
    for producer_id, groups in hard.pending.items():
        for group_id, pending in groups.items():
            values = {partition: entry.value for partition, entry in pending.items() if not entry.superseded}
            yield from _beyond(group_id, values, end_of, producer_id)


def _beyond(
    group_id: str, offsets: Mapping[TopicPartition, bytes], end_of: EndOf, producer_id: int
) -> Iterator[Beyond | None]:
    for partition, value in offsets.items():
        end = end_of(partition)
        is_beyond = end is not None and offset_of(value) > end
        yield Beyond(log_records.offset_key(group_id, *partition), value, end or 0, producer_id) if is_beyond else None


def clamp(turn: Turn, found: Beyond) -> None:
    """Commit the end of the log instead. All other fields stay except the leader epoch, which is lost too."""
    group_id, topic, partition = log_records.read_offset_key(found.key)
    committed = log_records.read_offset_value(found.value)
    producer = None
    if found.producer_id != NO_PRODUCER_ID:
        producer = Producer(found.producer_id, turn.state.hard.producer_epochs[found.producer_id])
    value = log_records.offset_value(committed._replace(offset=found.log_end_offset, leader_epoch=-1))
    turn.write([Record(found.key, value)], producer)
    turn.out.note(OffsetClamped(group_id, topic, partition, committed.offset, found.log_end_offset, turn.now.wall_ms))
