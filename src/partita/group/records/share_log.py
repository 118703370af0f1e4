"""Records of share groups, keys 10 to 15, as Kafka 4.4.0 writes and reads them.

Partitions are written in order of topic id and number. (Kafka: GroupCoordinatorRecordHelpers and the replay methods of
GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.group.contract import Record
from partita.group.records.consumer_group import Partition, Target, by_topic
from partita.group.records.log_records import EpochRecords, Kind, ignored, log_record, put_target_epoch, tombstones
from partita.group.records.share_group import NO_TOPICS, SharedTopic, ShareGroup, ShareMember, StateTopics
from partita.protocol.messages import share_group_log as log

MEMBER_KEY, EPOCH_KEY, TARGET_EPOCH_KEY, TARGET_KEY, ASSIGNMENT_KEY, TOPICS_KEY = range(10, 16)


def member_record(group_id: str, member: ShareMember) -> Record:
    """Return the record of a member's subscription and other properties."""
    value = log.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
    )
    return log_record(log.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Return the record of the group's epoch and the hash of its topics."""
    value = log.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return log_record(log.ShareGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Iterable[Partition]) -> Record:
    """Return the record of a member's target."""
    topics = [
        log.ShareGroupTargetTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(target).items()
    ]
    value = log.ShareGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return log_record(log.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, assigned_ms: int) -> Record:
    """Return the record of the targets' epoch and the time they were computed."""
    value = log.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
    return log_record(log.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def assignment_record(group_id: str, member: ShareMember) -> Record:
    """Return the record of a member's epochs and partitions."""
    value = log.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        assigned_partitions=[
            log.ShareGroupCurrentTopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_topic(member.assigned).items()
        ],
    )
    return log_record(log.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def topics_record(group_id: str, topics: StateTopics) -> Record:
    """Return the record of which share partitions have state, get it, or lose it."""
    value = log.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_written(topics.initializing),
        initialized_topics=_written(topics.initialized),
        deleting_topics=[
            log.ShareGroupDeletingTopic(topic_id=topic_id, topic_name=name)
            for topic_id, name in sorted(topics.deleting.items())
        ],
    )
    return log_record(log.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of a member, in Kafka's order."""
    return tombstones((ASSIGNMENT_KEY, TARGET_KEY, MEMBER_KEY), group_id, member_id)


def group_tombstones(group_id: str) -> list[Record]:
    """Return the tombstones of a group without members, in Kafka's order."""
    return tombstones((TARGET_EPOCH_KEY, TOPICS_KEY, EPOCH_KEY), group_id)


def _written(topics: Mapping[bytes, SharedTopic]) -> list[log.ShareGroupTopicPartitionsInfo]:
    return [
        log.ShareGroupTopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
        for topic_id, (name, partitions) in sorted(topics.items())
    ]


def _member(group: ShareGroup, member_id: str, read: log.ShareGroupMemberMetadataValue) -> None:
    topics = tuple(read.subscribed_topic_names)
    group.replay_member(ShareMember(member_id, read.rack_id, read.client_id, read.client_host, topics))


def _epoch(group: ShareGroup, _: str, read: log.ShareGroupMetadataValue) -> None:
    group.replay_epoch(read.epoch, read.metadata_hash)


def _target(group: ShareGroup, member_id: str, read: log.ShareGroupTargetAssignmentMemberValue) -> None:
    group.replay_target(member_id, _partitions(read.topic_partitions))


def _assignment(group: ShareGroup, member_id: str, read: log.ShareGroupCurrentMemberAssignmentValue) -> None:
    assigned = _partitions(read.assigned_partitions)
    group.replay_assignment(member_id, read.member_epoch, read.previous_member_epoch, assigned)


def _topics(group: ShareGroup, _: str, read: log.ShareGroupStatePartitionMetadataValue) -> None:
    initializing, initialized = (
        {topic.topic_id: SharedTopic(topic.topic_name, frozenset(topic.partitions)) for topic in topics}
        for topics in (read.initializing_topics, read.initialized_topics)
    )
    deleting = {topic.topic_id: topic.topic_name for topic in read.deleting_topics}
    group.replay_topics(StateTopics(initializing, initialized, deleting))


def _partitions(
    topics: Iterable[log.ShareGroupTargetTopicPartitions | log.ShareGroupCurrentTopicPartitions],
) -> Target:
    return frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)


_KINDS: dict[int, Kind[ShareGroup]] = {
    MEMBER_KEY: Kind(log.ShareGroupMemberMetadataValue, _member, ShareGroup.replay_no_member),
    EPOCH_KEY: Kind(log.ShareGroupMetadataValue, _epoch, ignored, is_named=False),
    TARGET_EPOCH_KEY: Kind(log.ShareGroupTargetAssignmentMetadataValue, put_target_epoch, ignored, is_named=False),
    TARGET_KEY: Kind(log.ShareGroupTargetAssignmentMemberValue, _target, ShareGroup.replay_no_target),
    ASSIGNMENT_KEY: Kind(log.ShareGroupCurrentMemberAssignmentValue, _assignment, ShareGroup.replay_no_assignment),
    TOPICS_KEY: Kind(
        log.ShareGroupStatePartitionMetadataValue,
        _topics,
        lambda group, _: group.replay_topics(NO_TOPICS),
        is_named=False,
    ),
}
KINDS = frozenset(_KINDS)
replay = EpochRecords(ShareGroup, EPOCH_KEY, _KINDS).replay
