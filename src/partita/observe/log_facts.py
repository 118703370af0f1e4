"""Records of `__consumer_offsets` as facts: generations, commits, epochs of KIP-848 and streams groups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from partita.explain.facts import Assigned, Committed, Fact, Forgotten, Member, Partition, Sure
from partita.group.records import consumer_log, streams_log
from partita.group.records.consumer_group import NO_PARTITIONS, ConsumerGroup, ConsumerMember
from partita.group.records.log_records import (
    GROUP_KEY,
    OFFSET_KEY,
    kind_of,
    read_group_key,
    read_offset_key,
    read_offset_value,
)  # fmt: skip
from partita.group.records.read_back import GroupRecord, LogRecord, group_records, held_by, subscription_of
from partita.group.records.streams_group import NO_TASKS, StreamsGroup, StreamsMember
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.protocol.primitives import MalformedRequest

_TARGET_EPOCH = consumer_log.TARGET_EPOCH_KEY - consumer_log.EPOCH_KEY
"""The kind of the record of the target's epoch, counted from that of the group's; 3 for both types of groups."""
NameOf = Callable[[bytes], str | None]


class LogReader:
    """Reads the records of one partition of the log in their order; timestamps are in milliseconds."""

    def __init__(self, name_of: NameOf, wants: Callable[[str], bool] = lambda group: True) -> None:
        self._name_of = name_of
        self._wants = wants
        self._consumer_groups: dict[str, ConsumerGroup] = {}
        self._streams_groups: dict[str, StreamsGroup] = {}
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
        elif kind in consumer_log.KINDS and self._wants(read_group_key(key)):
            consumer_log.replay(self._consumer_groups, kind, key, record.value)
            yield from self._incremental(self._consumer_groups, kind - consumer_log.EPOCH_KEY, key, record)
        elif kind in streams_log.KINDS and self._wants(read_group_key(key)):
            streams_log.replay(self._streams_groups, kind, key, record.value)
            yield from self._incremental(self._streams_groups, kind - streams_log.EPOCH_KEY, key, record)

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

    # Groups with epochs: KIP-848 and KIP-1071

    def _incremental(
        self, groups: Mapping[str, ConsumerGroup | StreamsGroup], kind: int, key: bytes, record: LogRecord
    ) -> Iterator[Fact]:
        """The facts of a record that was replayed; `kind` counts from that of the group's epoch, 0."""
        group_id = read_group_key(key)
        group = groups.get(group_id)
        if group is None:
            if kind == 0 and record.value is None:
                yield Forgotten(group_id, record.timestamp, Sure.SEEN)
            return
        has_target = kind == _TARGET_EPOCH and record.value is not None
        is_emptied = kind == 0 and not group.members and group.epoch > 1
        if has_target or is_emptied:
            yield Assigned(
                group=group_id,
                at_ms=record.timestamp,
                sure=Sure.SEEN,
                generation=group.assignment_epoch if has_target else group.epoch,
                members=tuple(self._members(group)),
                leader_epoch=None if record.leader_epoch < 0 else record.leader_epoch,
                is_incremental=True,
                topics_hash=(group.hard if isinstance(group, StreamsGroup) else group).metadata_hash or None,
                place=_place(record),
            )

    def _members(self, group: ConsumerGroup | StreamsGroup) -> Iterator[Member]:
        if isinstance(group, ConsumerGroup):
            for one in group.members.values():
                target = group.targets.get(one.member_id, NO_PARTITIONS)
                named = [(self._name_of(topic) or topic.hex()[:8], number) for topic, number in target]
                yield _with_epoch(one, group.topics_of(one), named)
            return
        # That a topic has fewer partitions than there are tasks, the log does not say.
        sources = group.source_topics
        for member in group.members.values():
            active = group.targets.get(member.member_id, NO_TASKS).active
            read = [(topic, number) for topic, of in sources.items() for sub, number in active if sub == of]
            yield _with_epoch(member, sources, read)


def _with_epoch(
    member: ConsumerMember | StreamsMember, topics: Iterable[str], partitions: Iterable[Partition]
) -> Member:
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        instance_id=member.instance_id,
        host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=tuple(sorted(topics)),
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
