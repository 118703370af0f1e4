"""The records of one partition in the answer to a share fetch, matched with what was acquired.

The answer holds whole batches of the log, of which only some offsets may be acquired. Acquired offsets without a record
(transaction markers, and what compaction removed) are acknowledged as gaps. (Kafka: ShareCompletedFetch.)
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.consumer.errors import CorruptRecordError
from partita.consumer.sharing.holding import Hold, Parcel, Place, Verdict
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.messages.share_fetch import ShareFetchPartitionData
from partita.records.batch import InvalidBatch, Record
from partita.records.fetched_batches import FetchedBatches, FetchedRecords

_ALL = 1 << 30
_RELEASED = "what could not be read is released, and archived once the group's delivery limit is reached"


@dataclass(frozen=True, slots=True)
class Acquired:
    """Records held now, acknowledgements of the other offsets, and the error that ended the reading."""

    holds: list[Hold]
    others: Parcel
    fault: CorruptRecordError | None = None


def acquired_of(
    tp: TopicPartition, topic_id: bytes, node_id: int, data: ShareFetchPartitionData, *, check_crcs: bool
) -> Acquired:
    """Match records and acquired ranges.

    Deviation: Partita's share consumer releases records whose bytes are corrupt, so that another attempt may read them
    until the group's delivery limit is reached, where Kafka's rejects them at once.
    """
    ranges = sorted(data.acquired_records, key=lambda one: one.first_offset)
    records, fault = _records(tp, memoryview(data.records or b""), ranges[0].first_offset, check_crcs=check_crcs)
    place = Place(tp, topic_id, node_id)
    holds: list[Hold] = []
    others = Parcel(place)
    waiting = iter(records)
    record = next(waiting, None)
    for one in ranges:
        behind = one.first_offset
        while record is not None and record.offset <= one.last_offset:
            if record.offset >= behind:
                _lack(others, behind, record.offset - 1, fault)
                holds.append(Hold(place, record, one.delivery_count, 0))
                behind = record.offset + 1
            record = next(waiting, None)
        _lack(others, behind, one.last_offset, fault)
    return Acquired(holds, others, fault)


def _lack(others: Parcel, first: int, last: int, fault: CorruptRecordError | None) -> None:
    """Offsets without a record: gaps up to the place where the reading ended."""
    readable = last if fault is None else min(last, fault.offset - 1)
    if first <= readable:
        others.ranges.append((first, readable, Verdict.GAP))
    if max(first, readable + 1) <= last:
        others.ranges.append((max(first, readable + 1), last, Verdict.RELEASE))


def _records(
    tp: TopicPartition, data: memoryview, first_offset: int, *, check_crcs: bool
) -> tuple[list[Record], CorruptRecordError | None]:
    reader = FetchedRecords(FetchedBatches(data, first_offset, check_crcs=check_crcs), tp.topic, tp.partition)
    records: list[Record] = []
    while True:
        try:
            some = reader.take(_ALL)
        except InvalidBatch as fault:
            return records, CorruptRecordError(tp, reader.next_offset, fault.reason, _RELEASED)
        if not some:
            return records, None
        records += some
