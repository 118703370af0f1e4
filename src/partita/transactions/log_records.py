"""A transactional id <-> its record in `__transaction_state`. (§5; Kafka: TransactionLog)"""

from __future__ import annotations

from typing import NamedTuple

from partita.protocol.messages.transaction_log import TransactionLogKey, TransactionLogPartitions, TransactionLogValue
from partita.protocol.primitives import MalformedRequest, Reader
from partita.transactions.contract import Record
from partita.transactions.model import NOTHING_ADDED, State, TopicPartition, Transaction

_KEY_VERSION = 0
_VALUE_VERSIONS = (0, 1)


class Loaded(NamedTuple):
    """A decoded record: the id's newest value, or None if the id was removed."""

    transactional_id: str
    transaction: Transaction | None


def record_of(transaction: Transaction, transaction_version: int) -> Record:
    """Return the record that stores a transactional id; version 0 of the value if `transaction.version` is 0.

    Deviation: Partita stores a transaction of version 2 in version 1 of the value even while `transaction.version` is
    0, where Kafka cannot store it and its transactional id stays unusable until the coordinator moves.
    """
    version = 1 if transaction_version or transaction.client_version else 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is State.EMPTY else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        client_transaction_version=transaction.client_version,
        last_producer_epoch=transaction.last_epoch,
    )
    return Record(key_of(transaction.transactional_id), version.to_bytes(2, "big") + value.encode(version))


def tombstone_of(transactional_id: str) -> Record:
    """Return the tombstone of a transactional id."""
    return Record(key_of(transactional_id), None)


def key_of(transactional_id: str) -> bytes:
    """Return the key of the id's records."""
    return _KEY_VERSION.to_bytes(2, "big") + TransactionLogKey(transactional_id=transactional_id).encode(_KEY_VERSION)


def _by_topic(partitions: frozenset[TopicPartition]) -> list[TransactionLogPartitions]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [TransactionLogPartitions(topic=topic, partition_ids=indexes) for topic, indexes in topics.items()]


def read_record(record: Record) -> Loaded | None:
    """Decode the record; None for an unknown kind or version. Raises MalformedRequest.

    Deviation: Partita fails the load of a partition with an unreadable transaction record, where Kafka ignores the
    records after it and serves the rest.
    """
    key = Reader(record.key)
    if key.int16() != _KEY_VERSION:
        return None
    transactional_id = TransactionLogKey.read(key, _KEY_VERSION).transactional_id
    if record.value is None:
        return Loaded(transactional_id, None)
    reader = Reader(record.value)
    version = reader.int16()
    if version not in _VALUE_VERSIONS:
        return None
    return Loaded(transactional_id, _read(transactional_id, TransactionLogValue.read(reader, version)))


def _read(transactional_id: str, value: TransactionLogValue) -> Transaction:
    if not State.EMPTY <= value.transaction_status <= State.PREPARE_EPOCH_FENCE:
        raise MalformedRequest(f"{transactional_id}: there is no state {value.transaction_status}")
    state = State(value.transaction_status)
    if value.transaction_partitions is None and state is not State.EMPTY:
        raise MalformedRequest(f"{transactional_id}: {state.text} without partitions")
    added = ((topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        last_epoch=value.last_producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=NOTHING_ADDED if state is State.EMPTY else frozenset(added),
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
