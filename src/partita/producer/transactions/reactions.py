"""The reaction of a transactional producer to each error code, by request.

Mirrors the handlers of TransactionManager and Sender.completeBatch of Kafka 4.3. (transactions.md 20.4)
"""

from __future__ import annotations

from enum import Enum

from partita.protocol.error_codes import ErrorCode


class Reaction(Enum):
    """The next step for a request that was refused, and for the transaction."""

    RETRY = "ask again"
    LOOK_UP = "find the coordinator, ask again"
    ABORTABLE = "the transaction can only be aborted"
    BUMP = "the transaction can only be aborted, and the epoch must be raised"
    FENCED = "another producer has taken the transactional id"
    FATAL = "this producer is of no use any more"
    OTHERS = "another partition of the request decides"


R, E = Reaction, ErrorCode
_FENCED = {E.INVALID_PRODUCER_EPOCH: R.FENCED, E.PRODUCER_FENCED: R.FENCED}
_ABORTABLE = {E.TRANSACTION_ABORTABLE: R.ABORTABLE}
_MOVED = {E.COORDINATOR_NOT_AVAILABLE: R.LOOK_UP, E.NOT_COORDINATOR: R.LOOK_UP}

TABLE: dict[str, dict[ErrorCode, Reaction]] = {
    "FindCoordinator": {
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: R.ABORTABLE,
        E.GROUP_AUTHORIZATION_FAILED: R.ABORTABLE,
        **_ABORTABLE,
    },
    "InitProducerId": {
        **_MOVED,
        **_FENCED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: R.ABORTABLE,
        E.CLUSTER_AUTHORIZATION_FAILED: R.ABORTABLE,
        **_ABORTABLE,
    },
    "AddPartitionsToTxn": {
        **_MOVED,
        **_FENCED,
        E.INVALID_TXN_STATE: R.FATAL,
        E.INVALID_PRODUCER_ID_MAPPING: R.FATAL,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: R.FATAL,
        E.CLUSTER_AUTHORIZATION_FAILED: R.FATAL,
        E.UNKNOWN_PRODUCER_ID: R.BUMP,
        E.OPERATION_NOT_ATTEMPTED: R.OTHERS,
    },
    "AddOffsetsToTxn": {
        **_MOVED,
        **_FENCED,
        E.GROUP_AUTHORIZATION_FAILED: R.ABORTABLE,
        E.UNKNOWN_PRODUCER_ID: R.BUMP,
        **_ABORTABLE,
    },
    "TxnOffsetCommit": {
        **_MOVED,
        **_FENCED,
        E.REQUEST_TIMED_OUT: R.LOOK_UP,
        E.GROUP_AUTHORIZATION_FAILED: R.ABORTABLE,
        E.ILLEGAL_GENERATION: R.ABORTABLE,
        E.UNKNOWN_MEMBER_ID: R.ABORTABLE,
        E.GROUP_ID_NOT_FOUND: R.ABORTABLE,
        E.STALE_MEMBER_EPOCH: R.ABORTABLE,
        E.FENCED_INSTANCE_ID: R.ABORTABLE,
        **_ABORTABLE,
    },
    "EndTxn": {
        **_MOVED,
        **_FENCED,
        E.UNKNOWN_PRODUCER_ID: R.BUMP,
        **_ABORTABLE,
    },
    "Produce": {
        E.PRODUCER_FENCED: R.FENCED,
        E.INVALID_PRODUCER_ID_MAPPING: R.FATAL,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: R.FATAL,
        E.CLUSTER_AUTHORIZATION_FAILED: R.FATAL,
    },
}
OTHERWISE: dict[str, Reaction] = {
    "FindCoordinator": R.FATAL,
    "InitProducerId": R.FATAL,
    "AddPartitionsToTxn": R.ABORTABLE,
    "AddOffsetsToTxn": R.FATAL,
    "TxnOffsetCommit": R.FATAL,
    "EndTxn": R.FATAL,
    "Produce": R.ABORTABLE,
}
"""The reaction to an error that the table does not name, unless it is retriable."""


def reaction(api: str, code: ErrorCode) -> Reaction:
    """The reaction to an error. Of a batch it is asked once the batch has failed for good, so nothing is retried."""
    found = TABLE[api].get(code)
    if found is not None:
        return found
    return R.RETRY if code.retriable and api != "Produce" else OTHERWISE[api]
