"""What an error code in a produce answer means for the batch.

Mirrors Sender.completeBatch and TransactionManager.canRetry of Kafka 4.3 for an idempotent producer. What a
failed batch means for its transaction is told by `partita.producer.transactions.reactions`.
"""

from __future__ import annotations

from enum import Enum

from partita.protocol.error_codes import ErrorCode


class Verdict(Enum):
    """What becomes of a batch."""

    DELIVERED = "delivered"
    AGAIN = "send again with the same sequence number"
    NEW_EPOCH = "send again, numbered from 0 in a new producer epoch"
    FAILED = "tell the caller"


NEEDS_NEW_EPOCH = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH})


def judge(code: ErrorCode, *, is_first: bool, is_sequenced: bool, is_transactional: bool = False) -> Verdict:
    """The verdict. `is_first`: no earlier batch of the partition is still on its way.

    A gap in sequence numbers (OUT_OF_ORDER_SEQUENCE_NUMBER) is to be expected while an earlier batch is being sent
    again; of the first one it means that records were lost. The epoch of a transaction changes only with its end.
    """
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Verdict.DELIVERED
    if is_sequenced and code in NEEDS_NEW_EPOCH:
        if is_transactional:
            return Verdict.FAILED
        return Verdict.NEW_EPOCH
    if is_sequenced and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_first:
        return Verdict.AGAIN
    return Verdict.AGAIN if code.retriable else Verdict.FAILED
