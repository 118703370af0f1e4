"""Records of KIP-848 groups, keys 3 to 8 and 16, as Kafka writes and reads them.

Partitions are written in order of topic id and number. (Kafka: GroupCoordinatorRecordHelpers and the replay methods of
GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.group.contract import Record
from partita.group.records.consumer_group import (
    ClassicPart,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Partition,
    ResolvedRegex,
    by_topic,
    with_epochs,
)
from partita.group.records.log_records import EpochRecords, Kind, ignored, log_record, put_target_epoch, tombstones
from partita.protocol.messages import consumer_group_log as log

EPOCH_KEY, PARTITION_METADATA_KEY, MEMBER_KEY, TARGET_EPOCH_KEY, TARGET_KEY, ASSIGNMENT_KEY = range(3, 9)
REGEX_KEY = 16
_STATES = {int(state): state for state in MemberState}


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Return the record of the group's epoch and the hash of its topics."""
    value = log.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return log_record(log.ConsumerGroupMetadataKey(group_id=group_id), value)


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
    return log_record(log.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, epoch: int, assigned_ms: int) -> Record:
    """Return the record of the targets' epoch and the time they were computed."""
    value = log.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
    return log_record(log.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Iterable[Partition]) -> Record:
    """Return the record of a member's target."""
    topics = [
        log.ConsumerGroupTargetTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(target).items()
    ]
    value = log.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return log_record(log.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def assignment_record(group_id: str, member: ConsumerMember) -> Record:
    """Return the record of a member's current assignment and state."""
    value = log.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.revoking),
    )
    return log_record(log.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


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
    return log_record(key, value)


def regex_tombstone(group_id: str, regex: str) -> Record:
    """Return the tombstone of a regular expression without subscribers."""
    return tombstones([REGEX_KEY], group_id, regex)[0]


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of a member: its assignment, its target, itself."""
    return tombstones((ASSIGNMENT_KEY, TARGET_KEY, MEMBER_KEY), group_id, member_id)


def group_tombstones(group: ConsumerGroup) -> list[Record]:
    """Return the tombstones of a group: assignments, targets, their epoch, members, expressions, the group."""
    group_id, members = group.group_id, list(group.members)
    # Targets may exist for members that are not in the log, for example of a replaced static member.
    targets = list(dict.fromkeys((*members, *group.targets)))
    records = [record for name in members for record in tombstones([ASSIGNMENT_KEY], group_id, name)]
    records += [record for name in targets for record in tombstones([TARGET_KEY], group_id, name)]
    records += tombstones([TARGET_EPOCH_KEY], group_id)
    records += [record for name in members for record in tombstones([MEMBER_KEY], group_id, name)]
    records += [regex_tombstone(group_id, regex) for regex in group.regexes]
    last = (PARTITION_METADATA_KEY, EPOCH_KEY) if group.has_partition_metadata else (EPOCH_KEY,)
    return records + tombstones(last, group_id)


def _epoch(group: ConsumerGroup, _: str, read: log.ConsumerGroupMetadataValue) -> None:
    group.replay_epoch(read.epoch, read.metadata_hash)


def _partition_metadata(group: ConsumerGroup, _: str, read: object | None = None) -> None:
    group.has_partition_metadata = read is not None


def _member(group: ConsumerGroup, member_id: str, read: log.ConsumerGroupMemberMetadataValue) -> None:
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


def _target(group: ConsumerGroup, member_id: str, read: log.ConsumerGroupTargetAssignmentMemberValue) -> None:
    target = frozenset((topic.topic_id, number) for topic in read.topic_partitions for number in topic.partitions)
    group.replay_target(member_id, target)


def _assignment(group: ConsumerGroup, member_id: str, read: log.ConsumerGroupCurrentMemberAssignmentValue) -> None:
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
    return with_epochs(((topic.topic_id, topic.partitions, topic.assignment_epochs) for topic in topics), epoch)


def _regex(group: ConsumerGroup, regex: str, read: log.ConsumerGroupRegularExpressionValue) -> None:
    group.replay_regex(regex, ResolvedRegex(tuple(sorted(read.topics)), read.version, read.timestamp))


_KINDS: dict[int, Kind[ConsumerGroup]] = {
    EPOCH_KEY: Kind(log.ConsumerGroupMetadataValue, _epoch, ignored, is_named=False),
    PARTITION_METADATA_KEY: Kind(
        log.ConsumerGroupPartitionMetadataValue, _partition_metadata, _partition_metadata, is_named=False
    ),
    MEMBER_KEY: Kind(log.ConsumerGroupMemberMetadataValue, _member, ConsumerGroup.replay_no_member),
    TARGET_EPOCH_KEY: Kind(
        log.ConsumerGroupTargetAssignmentMetadataValue,
        put_target_epoch,
        lambda group, _: group.replay_target_epoch(-1, 0),
        is_named=False,
    ),
    TARGET_KEY: Kind(log.ConsumerGroupTargetAssignmentMemberValue, _target, ConsumerGroup.replay_no_target),
    ASSIGNMENT_KEY: Kind(
        log.ConsumerGroupCurrentMemberAssignmentValue, _assignment, ConsumerGroup.replay_no_assignment
    ),
    REGEX_KEY: Kind(
        log.ConsumerGroupRegularExpressionValue, _regex, lambda group, regex: group.replay_regex(regex, None)
    ),
}
KINDS = frozenset(_KINDS)
replay = EpochRecords(ConsumerGroup, EPOCH_KEY, _KINDS).replay
