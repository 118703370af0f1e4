"""The state of one shard that its log can rebuild; it changes only by `replay`.

Values stay the bytes of the log: immutable, compared and reloaded exactly, decoded on access. A million commits
therefore load without decoding offsets that a later commit replaced. (Kafka: OffsetMetadataManager.Offsets and the
hard half of GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partita.group.contract import Record
from partita.group.records import consumer_log, log_records
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.log_records import CommittedOffset, read_offset_value
from partita.group.records.replay_batch import check_value, read_batch, split_key
from partita.lazy import later
from partita.protocol.primitives import Buffer

if TYPE_CHECKING:
    from partita.group.records import share_log, streams_log
    from partita.group.records.share_group import ShareGroup
    from partita.group.records.streams_group import StreamsGroup
else:
    # Nothing of these is loaded before the first record of such a group.
    share_log = later("partita.group.records.share_log")
    streams_log = later("partita.group.records.streams_log")

TopicPartition = tuple[str, int]


class Pending:
    """One offset of an open transaction. `position` gives the order in the log."""

    __slots__ = ("position", "superseded", "value")

    def __init__(self, position: int, value: bytes) -> None:
        self.position = position
        self.value = value
        self.superseded = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pending) and (self.value, self.superseded) == (other.value, other.superseded)

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable


class HardState:
    """Groups of both protocols, committed offsets, and the offsets of open transactions of one shard."""

    __slots__ = (
        "_latest", "_position", "consumer_groups", "coordinator_epochs", "groups", "offsets", "pending",
        "producer_epochs", "share_groups", "skipped", "streams_groups",
    )  # fmt: skip

    def __init__(self) -> None:
        self.groups: dict[str, bytes] = {}
        """Classic groups: the value of their newest record."""
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        """KIP-848 groups."""
        self.share_groups: dict[str, ShareGroup] = {}
        self.streams_groups: dict[str, StreamsGroup] = {}
        self.offsets: dict[str, dict[TopicPartition, bytes]] = {}
        """Committed offsets by group; a group without any has no entry."""
        self.pending: dict[int, dict[str, dict[TopicPartition, Pending]]] = {}
        """Offsets of open transactions: by producer id, group, partition."""
        self.producer_epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        """By producer id: the epoch of the transaction coordinator that wrote its last marker."""
        self.skipped = 0
        """Number of skipped records of unknown kinds."""
        self._position = 0
        self._latest: dict[bytes, bytes | None] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HardState):
            return NotImplemented
        self.settle()
        other.settle()
        return self._all() == other._all()

    def _all(self) -> tuple[object, ...]:
        groups = (self.groups, self.consumer_groups, self.share_groups, self.streams_groups)
        return (*groups, self.offsets, self.pending)

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable

    def replay(self, record: Record, producer_id: int = -1, producer_epoch: int = -1) -> None:
        """Apply one record, in log order. Raises MalformedRequest when a known kind cannot be read."""
        key, value = record
        kind = log_records.kind_of(key)
        if kind == log_records.GROUP_KEY:
            group_id = log_records.read_group_key(key)
            if value is None:
                self.groups.pop(group_id, None)
            else:
                self.groups[group_id] = bytes(value)
        elif kind <= log_records.OFFSET_KEY:
            if self._latest:
                self.settle()
            self._replay_offset(key, value, producer_id, producer_epoch)
        elif kind in consumer_log.KINDS:
            consumer_log.replay(self.consumer_groups, kind, key, value)
        elif kind in share_log.KINDS:
            share_log.replay(self.share_groups, kind, key, value)
        elif kind in streams_log.KINDS:
            streams_log.replay(self.streams_groups, kind, key, value)
        else:
            self.skipped += 1

    def replay_offsets(self, group_id: str, offsets: Mapping[TopicPartition, bytes]) -> None:
        """Apply offsets outside of transactions, like `replay` of a record for each but much faster."""
        if not offsets:
            return
        if self._latest:
            self.settle()
        self.offsets.setdefault(group_id, {}).update(offsets)
        if self.pending:
            for partition in offsets:
                self._supersede(group_id, partition, self._position + 1)

    def replay_batch(self, batch: Buffer) -> None:
        """Apply one batch of the log. Plain offsets are only collected, newest per key; `settle` applies them."""
        plain = read_batch(batch, self._latest)
        for record in plain.others:
            self.replay(Record(*record), plain.producer_id, plain.producer_epoch)
        if plain.marker is not None:
            ended = (plain.producer_id, plain.producer_epoch, plain.coordinator_epoch)
            self.end_transaction(*ended, committed=plain.marker)

    def settle(self) -> None:
        """Apply the offsets that `replay_batch` has collected."""
        latest, self._latest = self._latest, {}
        for key, value in latest.items():
            self._replay_offset(key, value, -1, -1)

    def _replay_offset(self, key: bytes, value: bytes | None, producer_id: int, producer_epoch: int) -> None:
        group_id, partition = split_key(key)
        if value is None:
            self._drop(group_id, partition)
            return
        check_value(value)
        if producer_id >= 0:
            self.producer_epochs[producer_id] = producer_epoch
            self._position += 1
            of_group = self.pending.setdefault(producer_id, {}).setdefault(group_id, {})
            of_group[partition] = Pending(self._position, value)
        else:
            of = self.offsets.get(group_id)
            if of is None:
                of = self.offsets[group_id] = {}
            of[partition] = value
            if self.pending:
                self._supersede(group_id, partition, self._position + 1)

    def _drop(self, group_id: str, partition: TopicPartition) -> None:
        committed = self.offsets.get(group_id)
        if committed is not None:
            committed.pop(partition, None)
            if not committed:
                del self.offsets[group_id]
        for producer_id in list(self.pending):
            groups = self.pending[producer_id]
            offsets = groups.get(group_id)
            if offsets is not None and offsets.pop(partition, None) is not None and not offsets:
                del groups[group_id]
                if not groups:
                    del self.pending[producer_id]

    def _supersede(self, group_id: str, partition: TopicPartition, position: int) -> None:
        """Drop pending offsets older than `position`, so that they do not replace a newer committed one."""
        for groups in self.pending.values():
            pending = groups.get(group_id, {}).get(partition)
            if pending is not None and pending.position < position:
                pending.superseded = True

    def end_transaction(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int = 0, *, committed: bool
    ) -> None:
        """Apply a marker: commit the pending offsets that are newest in the log, or drop them all."""
        self.settle()
        self.producer_epochs[producer_id] = max(producer_epoch, self.producer_epochs.get(producer_id, -1))
        self.coordinator_epochs[producer_id] = coordinator_epoch
        for group_id, offsets in self.pending.pop(producer_id, {}).items():
            for partition, pending in offsets.items():
                if committed and not pending.superseded:
                    self.offsets.setdefault(group_id, {})[partition] = pending.value
                    self._supersede(group_id, partition, pending.position)

    def committed(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of the partition, if there is one."""
        value = self.offsets.get(group_id, {}).get(partition)
        return None if value is None else read_offset_value(value)

    def pending_partitions(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions with offsets of open transactions, in log order, each once."""
        return list(dict.fromkeys(p for groups in self.pending.values() for p in groups.get(group_id, ())))

    def has_offsets(self, group_id: str) -> bool:
        """Whether the group has any offset, committed or in an open transaction."""
        return group_id in self.offsets or any(group_id in groups for groups in self.pending.values())

    def group_ids(self) -> list[str]:
        """Return the ids of all groups with any state, in the order of first appearance."""
        pending = (group_id for groups in self.pending.values() for group_id in groups)
        return list(dict.fromkeys((*self.groups, *self.consumer_groups, *self.streams_groups, *self.offsets, *pending)))
