"""Records of KIP-848 groups, keys 3 to 8 and 16, as Kafka 4.3.1 writes and reads them.

Partitions are written in order of topic id and number. (Kafka: GroupCoordinatorRecordHelpers and the replay methods of
GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from partita.group.contract import Record
from partita.group.records.consumer_group import (
    ClassicPart,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Partition,
    ResolvedRegex,
    Target,
    by_topic,
)
from partita.protocol.messages import consumer_group_log as log
from partita.protocol.primitives import MalformedRequest, Message, Reader

EPOCH_KEY, PARTITION_METADATA_KEY, MEMBER_KEY, TARGET_EPOCH_KEY, TARGET_KEY, ASSIGNMENT_KEY = range(3, 9)
REGEX_KEY = 16
KINDS = frozenset({*range(EPOCH_KEY, ASSIGNMENT_KEY + 1), REGEX_KEY})
_STATES = {int(state): state for state in MemberState}


def _record(key: Message, value: Message | None) -> Record:
    kind = key.MIN_VERSION
    encoded = None if value is None else b"\x00\x00" + value.encode(0)
    return Record(kind.to_bytes(2, "big") + key.encode(kind), encoded)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Return the record of the group's epoch and the hash of its topics."""
    value = log.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(log.ConsumerGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: ConsumerMember) -> Record:
    """Return the record of a member's subscription and other properties."""
    classic = None
    if member.classic is not None:
        classic = log.ConsumerGroupClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                log.ConsumerGroupClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = log.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )
    return _record(log.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, epoch: int, assigned_ms: int) -> Record:
    """Return the record of the targets' epoch and the time they were computed."""
    value = log.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
    return _record(log.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Iterable[Partition]) -> Record:
    """Return the record of a member's target."""
    topics = [
        log.ConsumerGroupTargetTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(target).items()
    ]
    value = log.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return _record(log.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def assignment_record(group_id: str, member: ConsumerMember) -> Record:
    """Return the record of a member's current assignment and state."""
    value = log.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    return _record(log.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _with_epochs(partitions: Mapping[Partition, int]) -> list[log.ConsumerGroupCurrentTopicPartitions]:
    return [
        log.ConsumerGroupCurrentTopicPartitions(
            topic_id=topic_id,
            partitions=numbers,
            assignment_epochs=[partitions[topic_id, number] for number in numbers],
        )
        for topic_id, numbers in by_topic(partitions).items()
    ]


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> Record:
    """Return the record of the topics that a regular expression matches."""
    key = log.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    value = log.ConsumerGroupRegularExpressionValue(
        topics=list(resolved.topics), version=resolved.version, timestamp=resolved.resolved_ms
    )
    return _record(key, value)


def regex_tombstone(group_id: str, regex: str) -> Record:
    """Return the tombstone of a regular expression without subscribers."""
    return _record(log.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of a member: its assignment, its target, itself."""
    return [
        _record(log.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        _record(log.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        _record(log.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[Record]:
    """Return the tombstones of a group: assignments, targets, their epoch, members, expressions, the group."""
    group_id, members = group.group_id, list(group.members)
    # Targets may exist for members that are not in the log, for example of a replaced static member.
    targets = list(dict.fromkeys((*members, *group.targets)))
    records = [
        _record(log.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=name), None)
        for name in members
    ]
    records += [
        _record(log.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=name), None) for name in targets
    ]
    records.append(_record(log.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None))
    records += [
        _record(log.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=name), None) for name in members
    ]
    records += [regex_tombstone(group_id, regex) for regex in group.regexes]
    if group.has_partition_metadata:
        records.append(_record(log.ConsumerGroupPartitionMetadataKey(group_id=group_id), None))
    records.append(_record(log.ConsumerGroupMetadataKey(group_id=group_id), None))
    return records


def group_id_of(key: bytes) -> str:
    """Return the group id, with which every key of these kinds starts."""
    return Reader(key, 2).string()


def replay(groups: dict[str, ConsumerGroup], kind: int, key: bytes, value: bytes | None) -> None:
    """Apply one record of `KINDS`. Tombstones of absent entries are ignored. Raises MalformedRequest."""
    group_id = group_id_of(key)
    group = groups.get(group_id)
    if value is None and group is None:
        return
    if group is None:
        group = groups[group_id] = ConsumerGroup(group_id)
    if kind == EPOCH_KEY and value is None:  # the group's record is the last of its tombstones
        del groups[group_id]
    else:
        _REPLAY[kind](group, Reader(key, 2), value)


def _opened(value: bytes) -> Reader:
    reader = Reader(value)
    version = reader.int16()
    if version != 0:
        raise MalformedRequest(f"record of a consumer group, version {version}; only 0 is known")
    return reader


def _epoch(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    assert value is not None
    read = log.ConsumerGroupMetadataValue.read(_opened(value), 0)
    group.replay_epoch(read.epoch, read.metadata_hash)


def _partition_metadata(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    if value is not None:
        log.ConsumerGroupPartitionMetadataValue.read(_opened(value), 0)
    group.has_partition_metadata = value is not None


def _member(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    member_id = log.ConsumerGroupMemberMetadataKey.read(key, MEMBER_KEY).member_id
    if value is None:
        group.replay_no_member(member_id)
        return
    read = log.ConsumerGroupMemberMetadataValue.read(_opened(value), 0)
    classic = read.classic_member_metadata
    member = ConsumerMember(
        member_id=member_id,
        instance_id=read.instance_id,
        rack_id=read.rack_id,
        client_id=read.client_id,
        client_host=read.client_host,
        topics=tuple(sorted(read.subscribed_topic_names)),
        regex=read.subscribed_topic_regex or "",
        rebalance_timeout_ms=read.rebalance_timeout_ms,
        server_assignor=read.server_assignor,
        classic=None
        if classic is None
        else ClassicPart(
            classic.session_timeout_ms, tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols)
        ),
    )
    group.replay_member(member)


def _target_epoch(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    if value is None:
        group.replay_target_epoch(-1, 0)
        return
    read = log.ConsumerGroupTargetAssignmentMetadataValue.read(_opened(value), 0)
    group.replay_target_epoch(read.assignment_epoch, read.assignment_timestamp)


def _target(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    member_id = log.ConsumerGroupTargetAssignmentMemberKey.read(key, TARGET_KEY).member_id
    target: Target | None = None
    if value is not None:
        read = log.ConsumerGroupTargetAssignmentMemberValue.read(_opened(value), 0)
        target = frozenset((t.topic_id, number) for t in read.topic_partitions for number in t.partitions)
    group.replay_target(member_id, target)


def _assignment(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    member_id = log.ConsumerGroupCurrentMemberAssignmentKey.read(key, ASSIGNMENT_KEY).member_id
    if value is None:
        group.replay_no_assignment(member_id)
        return
    read = log.ConsumerGroupCurrentMemberAssignmentValue.read(_opened(value), 0)
    group.replay_assignment(
        ConsumerMember(
            member_id,
            epoch=read.member_epoch,
            previous_epoch=read.previous_member_epoch,
            state=_STATES.get(read.state, MemberState.UNKNOWN),
            assigned=_epochs(read.assigned_partitions, read.member_epoch),
            revoking=_epochs(read.partitions_pending_revocation, read.member_epoch),
        )
    )


def _epochs(topics: Iterable[log.ConsumerGroupCurrentTopicPartitions], epoch: int) -> dict[Partition, int]:
    """Return partitions with the epoch of their assignment; older releases imply the member's epoch."""
    found: dict[Partition, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [epoch] * len(topic.partitions)
        found.update(((topic.topic_id, number), given) for number, given in zip(topic.partitions, epochs, strict=True))
    return found


def _regex(group: ConsumerGroup, key: Reader, value: bytes | None) -> None:
    regex = log.ConsumerGroupRegularExpressionKey.read(key, REGEX_KEY).regular_expression
    resolved = None
    if value is not None:
        read = log.ConsumerGroupRegularExpressionValue.read(_opened(value), 0)
        resolved = ResolvedRegex(tuple(sorted(read.topics)), read.version, read.timestamp)
    group.replay_regex(regex, resolved)


_REPLAY: dict[int, Callable[[ConsumerGroup, Reader, bytes | None], None]] = {
    EPOCH_KEY: _epoch,
    PARTITION_METADATA_KEY: _partition_metadata,
    MEMBER_KEY: _member,
    TARGET_EPOCH_KEY: _target_epoch,
    TARGET_KEY: _target,
    ASSIGNMENT_KEY: _assignment,
    REGEX_KEY: _regex,
}
