"""Interprets the answers to markers for the transaction that they end. (§10.1)"""

from __future__ import annotations

from enum import Enum

from partita.protocol.error_codes import ErrorCode


class Verdict(Enum):
    """DONE: the partition needs no marker of this decision any more. AGAIN: retry later."""

    DONE = "done"
    AGAIN = "again"


_DONE = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)


def verdict_of(code: ErrorCode) -> Verdict:
    """Return the verdict on one partition's answer.

    Deviation: Partita counts a partition that refuses a marker for a newer producer or coordinator epoch as done and
    retries other refusals, where Kafka blocks the transactional id until its coordinator reloads (TX-S01 to TX-S05).
    """
    return Verdict.DONE if code in _DONE else Verdict.AGAIN
