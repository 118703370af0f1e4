"""The state of a share partition <-> its records in __share_group_state. (Kafka: ShareCoordinatorRecordHelpers)

A snapshot replaces, an update merges, a snapshot without value removes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from partita.protocol.messages.share_log import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateBatch,
    ShareUpdateKey,
    ShareUpdateValue,
)
from partita.protocol.primitives import Reader
from partita.share.coordinator.model import ShareKey, ShareState, StateBatch

_SNAPSHOT = ShareSnapshotKey.MIN_VERSION
_UPDATE = ShareUpdateKey.MIN_VERSION
_VALUE_VERSION = 0


class Record(NamedTuple):
    """One record of __share_group_state; without a value it is a tombstone."""

    key: bytes
    value: bytes | None


class Update(NamedTuple):
    """A decoded update: only what one write has changed."""

    leader_epoch: int
    start_offset: int
    completed: int
    batches: tuple[StateBatch, ...]


Loaded: TypeAlias = tuple[ShareKey, ShareState | Update | None]
"""A decoded record; None: the share partition was removed."""


def snapshot_of(key: ShareKey, state: ShareState) -> Record:
    """Return the record that stores everything."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_written(state.batches),
        delivery_complete_count=state.completed,
    )
    return Record(_snapshot_key(key), _prefixed(_VALUE_VERSION, value.encode(_VALUE_VERSION)))


def update_of(key: ShareKey, snapshot_epoch: int, update: Update) -> Record:
    """Return the record that stores one change to the snapshot of this epoch."""
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        state_batches=_written(update.batches),
        delivery_complete_count=update.completed,
    )
    stored = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return Record(_prefixed(_UPDATE, stored.encode(_UPDATE)), _prefixed(_VALUE_VERSION, value.encode(_VALUE_VERSION)))


def tombstone_of(key: ShareKey) -> Record:
    """Return the record that removes a share partition."""
    return Record(_snapshot_key(key), None)


def read_record(record: Record) -> Loaded | None:
    """Decode the record; None for an unknown kind or version, and for an update without value.

    Raises MalformedRequest.

    Deviation: Partita passes over an unknown kind or version in __share_group_state, where Kafka's load of the
    partition fails.
    """
    reader = Reader(record.key)
    kind = reader.int16()
    if kind not in (_SNAPSHOT, _UPDATE):
        return None
    stored = (ShareSnapshotKey if kind == _SNAPSHOT else ShareUpdateKey).read(reader, kind)
    key = ShareKey(stored.group_id, bytes(stored.topic_id), stored.partition)
    if record.value is None:
        return (key, None) if kind == _SNAPSHOT else None
    reader = Reader(record.value)
    if reader.int16() != _VALUE_VERSION:
        return None
    return key, _snapshot(reader) if kind == _SNAPSHOT else _update(reader)


def _snapshot(reader: Reader) -> ShareState:
    value = ShareSnapshotValue.read(reader, _VALUE_VERSION)
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        completed=value.delivery_complete_count,
        batches=_read(value.state_batches),
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
    )


def _update(reader: Reader) -> Update:
    value = ShareUpdateValue.read(reader, _VALUE_VERSION)
    batches = _read(value.state_batches)
    return Update(value.leader_epoch, value.start_offset, value.delivery_complete_count, batches)


def _snapshot_key(key: ShareKey) -> bytes:
    stored = ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return _prefixed(_SNAPSHOT, stored.encode(_SNAPSHOT))


def _prefixed(version: int, encoded: bytes) -> bytes:
    return version.to_bytes(2, "big") + encoded


def _written(batches: Iterable[StateBatch]) -> list[ShareStateBatch]:
    return [
        ShareStateBatch(
            first_offset=b.first, last_offset=b.last, delivery_state=b.state, delivery_count=b.delivery_count
        )
        for b in batches
    ]


def _read(batches: Iterable[ShareStateBatch]) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in batches)
