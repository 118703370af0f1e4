"""The verdict on a batch by the error code of its produce answer.

Mirrors Sender.completeBatch and TransactionManager.canRetry of Kafka 4.3; `PartitionQueue.gap` stands for the
unresolved sequences there. The effect of a failed batch on its transaction is in
`partita.producer.transactions.reactions`.

Deviation: Partita's producer sends a batch that was refused for some of its records again without them, where in Kafka
all of them fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from partita.protocol.error_codes import ErrorCode


class Verdict(Enum):
    """The next step for a batch that was answered."""

    DELIVERED = "delivered"
    AGAIN = "send again with the same sequence number"
    BEHIND = "send again once the batches before it are done; this was no attempt of its own"
    NEW_EPOCH = "send again, numbered from 0 in a new producer epoch"
    HALVES = "send again as two batches with the same sequence numbers"
    IN_PART = "fail the records that the answer names, send the others again in a new producer epoch"
    FAILED = "fail every record of the batch"


NEEDS_NEW_EPOCH = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
"""Codes of a batch that is larger than the topic or a segment takes; its records may fit."""
OF_A_RECORD = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})
"""Codes of a batch of which one record is refused; from Produce version 8 the answer names the record."""


@dataclass(frozen=True, slots=True)
class Place:
    """Circumstances of a batch that a verdict depends on besides the error."""

    is_first: bool = True
    """No earlier batch of the partition is still on its way."""
    is_sequenced: bool = True
    is_transactional: bool = False
    is_after_gap: bool = False
    """An earlier batch was refused for good, so the sequence numbers of this one do not fit any more."""
    is_single: bool = True
    """The batch has one record only."""


def judge(code: ErrorCode, place: Place, *, names_records: bool = False) -> Verdict:
    """The verdict on one batch. `names_records`: the answer says which records of the batch are refused.

    A gap in sequence numbers (OUT_OF_ORDER_SEQUENCE_NUMBER) is to be expected while an earlier batch is being sent
    again, and after one that was refused. Otherwise the broker has lost what it knew of this producer, which a new
    epoch mends; but the epoch of a transaction changes only with its end.
    """
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict.DELIVERED
    if code in TOO_LARGE or (code in OF_A_RECORD and not names_records):
        return Verdict.FAILED if place.is_single else Verdict.HALVES
    if place.is_sequenced and code in NEEDS_NEW_EPOCH:
        return Verdict.FAILED if place.is_transactional else Verdict.NEW_EPOCH
    if place.is_sequenced and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        if not place.is_first or place.is_after_gap:
            return Verdict.BEHIND
        return Verdict.FAILED if place.is_transactional else Verdict.NEW_EPOCH
    if code.retriable:
        return Verdict.AGAIN
    return Verdict.IN_PART if names_records else Verdict.FAILED
