"""All state transitions of transactional ids; each returns the value of the next record. (§4.2)

A transition that the state does not allow is a bug and fails an assertion. The one refusal, of a fenced producer, is a
value. Mirrors the prepare... methods of Kafka's TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from partita.protocol.error_codes import ErrorCode
from partita.transactions.model import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    NOTHING_ADDED,
    State,
    TopicPartition,
    Transaction,
)

VERSION_2 = 2
"""The transaction version from which every end raises the producer epoch. (KIP-890)"""

_IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
MAY_BECOME: dict[State, frozenset[State]] = {
    State.EMPTY: _IDLE,
    State.ONGOING: _IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: _IDLE | {State.ONGOING, State.PREPARE_EPOCH_FENCE},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: _IDLE,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""For each state, the states from which it can be reached."""


def bump(
    transaction: Transaction, expected_epoch: int | None, timeout_ms: int, wall_ms: int
) -> Transaction | ErrorCode:
    """InitProducerId: take the next epoch, or the same one if the request is a repetition. (KIP-360)"""
    assert not transaction.is_used_up, "a used up epoch is rotated, not raised"
    epoch, last_epoch = transaction.epoch + 1, transaction.epoch
    if expected_epoch is None:
        last_epoch = NO_EPOCH
    elif transaction.epoch not in (NO_EPOCH, expected_epoch):
        return repeat(transaction, expected_epoch, timeout_ms, wall_ms)
    return _emptied(transaction, transaction.producer_id, epoch, last_epoch, timeout_ms, wall_ms)


def repeat(transaction: Transaction, expected_epoch: int, timeout_ms: int, wall_ms: int) -> Transaction | ErrorCode:
    """InitProducerId repeated: keep the epoch; a request with neither this epoch nor the previous one is fenced."""
    if expected_epoch != transaction.last_epoch:
        return ErrorCode.PRODUCER_FENCED
    epoch, last_epoch = transaction.epoch, transaction.last_epoch
    return _emptied(transaction, transaction.producer_id, epoch, last_epoch, timeout_ms, wall_ms)


def rotate(
    transaction: Transaction, producer_id: int, timeout_ms: int, wall_ms: int, *, epoch_given: bool
) -> Transaction:
    """InitProducerId: take a new producer id at epoch 0, since the old one has no epoch left."""
    last_epoch = transaction.epoch if epoch_given else NO_EPOCH
    return _emptied(transaction, producer_id, 0, last_epoch, timeout_ms, wall_ms)


def _emptied(
    transaction: Transaction, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, wall_ms: int
) -> Transaction:
    return _moved(
        transaction,
        State.EMPTY,
        producer_id=producer_id,
        next_producer_id=NO_PRODUCER_ID,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=NOTHING_ADDED,
        start_ms=NO_TIME,
        updated_ms=wall_ms,
    )


def add(
    transaction: Transaction, partitions: Iterable[TopicPartition], client_version: int, wall_ms: int
) -> Transaction:
    """Add partitions, or begin a transaction with them."""
    assert transaction.epoch >= 0, "a producer without an epoch adds nothing"
    is_open = transaction.state is State.ONGOING
    return _moved(
        transaction,
        State.ONGOING,
        partitions=transaction.partitions.union(partitions),
        start_ms=transaction.start_ms if is_open else wall_ms,
        updated_ms=wall_ms,
        client_version=client_version,
    )


def fence(transaction: Transaction) -> Transaction:
    """Version 1: raise the epoch before a transaction is aborted without its producer. (§6.4)"""
    return _moved(transaction, State.PREPARE_EPOCH_FENCE, epoch=min(transaction.epoch + 1, EPOCH_MAX))


def end(
    transaction: Transaction,
    *,
    committed: bool,
    client_version: int,
    wall_ms: int,
    next_producer_id: int = NO_PRODUCER_ID,
    nothing_added: bool = False,
) -> Transaction:
    """Decide the outcome. Version 2 raises the epoch; after the last epoch `next_producer_id` takes over."""
    epoch, last_epoch = transaction.epoch, transaction.last_epoch
    if client_version >= VERSION_2:
        assert epoch < EPOCH_MAX or not committed, "no producer has the last epoch, so none commits with it"
        epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
    assert epoch >= 0, "a producer without an epoch ends nothing"
    return _moved(
        transaction,
        State.PREPARE_COMMIT if committed else State.PREPARE_ABORT,
        next_producer_id=next_producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        start_ms=wall_ms if nothing_added else transaction.start_ms,
        updated_ms=wall_ms,
        client_version=client_version,
    )


def complete(transaction: Transaction, wall_ms: int) -> Transaction:
    """Complete the transaction once every marker is written."""
    rotates = transaction.client_version >= VERSION_2 and transaction.next_producer_id != NO_PRODUCER_ID
    epoch = 0 if rotates else transaction.epoch
    assert epoch >= 0, "a producer without an epoch completes nothing"
    return _moved(
        transaction,
        State.COMPLETE_COMMIT if transaction.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
        producer_id=transaction.next_producer_id if rotates else transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        epoch=epoch,
        partitions=NOTHING_ADDED,
        updated_ms=wall_ms,
    )


def expire(transaction: Transaction) -> Transaction:
    """Return the value that ends an idle id."""
    return _moved(transaction, State.DEAD, partitions=NOTHING_ADDED)


def _moved(transaction: Transaction, state: State, **changes: object) -> Transaction:
    assert transaction.state in MAY_BECOME[state], f"{transaction.state.text} does not become {state.text}"
    moved: Transaction = replace(
        transaction,
        state=state,
        previous_producer_id=transaction.producer_id,
        **changes,  # type: ignore[arg-type]  # fields by name, passed on
    )
    return moved
