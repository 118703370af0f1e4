"""Records of `__consumer_offsets` as facts: generations, commits, and the epochs of KIP-848 groups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita.explain.facts import Assigned, Committed, Fact, Forgotten, Member, Sure
from partita.group.records import consumer_log
from partita.group.records.consumer_group import NO_PARTITIONS, ConsumerGroup, ConsumerMember
from partita.group.records.log_records import (
    GROUP_KEY,
    OFFSET_KEY,
    kind_of,
    read_offset_key,
    read_offset_value,
)
from partita.group.records.read_back import GroupRecord, LogRecord, group_records, held_by, subscription_of
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.protocol.primitives import MalformedRequest

NameOf = Callable[[bytes], str | None]


class LogReader:
    """Reads the records of one partition of the log in their order; timestamps are in milliseconds."""

    def __init__(self, name_of: NameOf, wants: Callable[[str], bool] = lambda group: True) -> None:
        self._name_of = name_of
        self._wants = wants
        self._consumer_groups: dict[str, ConsumerGroup] = {}
        self.unreadable = 0
        """Records that could not be read."""

    def read(self, record: LogRecord) -> Iterator[Fact]:
        """Add the facts of one record. An unreadable record is counted and skipped."""
        try:
            if record.key is not None:
                yield from self._facts(record.key, record)
        except (MalformedRequest, UnicodeDecodeError, AssertionError):
            self.unreadable += 1

    def _facts(self, key: bytes, record: LogRecord) -> Iterator[Fact]:
        kind = kind_of(key)
        if kind <= OFFSET_KEY:
            group, topic, partition = read_offset_key(key)
            if record.value is not None and self._wants(group):
                offset = read_offset_value(record.value).offset
                yield Committed(group, record.timestamp, (topic, partition), offset)
        elif kind == GROUP_KEY:
            for read in group_records([record]):
                if self._wants(read.group):
                    yield from self._classic(read, record)
        elif kind in consumer_log.KINDS and self._wants(consumer_log.group_id_of(key)):
            yield from self._incremental(kind, key, record)

    # Classic groups

    def _classic(self, read: GroupRecord, record: LogRecord) -> Iterator[Fact]:
        value = read.value
        if value is None:
            if read.unknown is not None:
                self.unreadable += 1
            else:
                yield Forgotten(read.group, record.timestamp, Sure.SEEN)
        elif value.generation > 0 or value.members:
            stamp = value.current_state_timestamp
            yield Assigned(
                group=read.group,
                at_ms=record.timestamp,
                sure=Sure.SEEN,
                generation=value.generation,
                members=tuple(_member(member) for member in value.members),
                protocol=value.protocol,
                leader_id=value.leader,
                joined_ms=stamp if 0 < stamp <= record.timestamp else None,
                leader_epoch=None if record.leader_epoch < 0 else record.leader_epoch,
                is_abandoned=_is_abandoned(value),
                place=_place(record),
            )

    # KIP-848 groups

    def _incremental(self, kind: int, key: bytes, record: LogRecord) -> Iterator[Fact]:
        group_id = consumer_log.group_id_of(key)
        consumer_log.replay(self._consumer_groups, kind, key, record.value)
        group = self._consumer_groups.get(group_id)
        if group is None:
            if kind == consumer_log.EPOCH_KEY and record.value is None:
                yield Forgotten(group_id, record.timestamp, Sure.SEEN)
            return
        has_target = kind == consumer_log.TARGET_EPOCH_KEY and record.value is not None
        is_emptied = kind == consumer_log.EPOCH_KEY and not group.members and group.epoch > 1
        if has_target or is_emptied:
            yield Assigned(
                group=group_id,
                at_ms=record.timestamp,
                sure=Sure.SEEN,
                generation=group.assignment_epoch if has_target else group.epoch,
                members=tuple(self._consumer(group, member) for member in group.members.values()),
                leader_epoch=None if record.leader_epoch < 0 else record.leader_epoch,
                is_incremental=True,
                topics_hash=group.metadata_hash or None,
                place=_place(record),
            )

    def _consumer(self, group: ConsumerGroup, member: ConsumerMember) -> Member:
        target = group.targets.get(member.member_id, NO_PARTITIONS)
        partitions = [(self._name_of(topic) or topic.hex()[:8], number) for topic, number in target]
        return Member(
            member_id=member.member_id,
            client_id=member.client_id,
            instance_id=member.instance_id,
            host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topics=tuple(sorted(group.topics_of(member))),
            partitions=tuple(sorted(partitions)),
        )


def _place(record: LogRecord) -> str:
    return f"__consumer_offsets-{record.partition} offset {record.offset}"


def _member(member: GroupMetadataValueMember) -> Member:
    topics, _ = subscription_of(member)
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        instance_id=member.group_instance_id,
        host=member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout,
        topics=None if topics is None else tuple(topics),
        partitions=tuple(held_by(member)),
    )


def _is_abandoned(value: GroupMetadataValue) -> bool:
    """Whether the generation has neither leader nor assignments; with assignments alone it is a downgraded group."""
    return value.leader is None and bool(value.members) and not any(member.assignment for member in value.members)
