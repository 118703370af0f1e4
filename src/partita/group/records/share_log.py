"""Records of share groups, keys 10 to 15, as Kafka 4.4.0 writes and reads them.

Partitions are written in order of topic id and number. (Kafka: GroupCoordinatorRecordHelpers and the replay methods of
GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.group.contract import Record
from partita.group.records.consumer_group import Partition, Target, by_topic
from partita.group.records.share_group import NO_TOPICS, SharedTopic, ShareGroup, ShareMember, StateTopics
from partita.protocol.messages import share_group_log as log
from partita.protocol.primitives import MalformedRequest, Message, Reader

MEMBER_KEY, EPOCH_KEY, TARGET_EPOCH_KEY, TARGET_KEY, ASSIGNMENT_KEY, TOPICS_KEY = range(10, 16)
KINDS = frozenset(range(MEMBER_KEY, TOPICS_KEY + 1))


def _record(key: Message, value: Message | None) -> Record:
    kind = key.MIN_VERSION
    encoded = None if value is None else b"\x00\x00" + value.encode(0)
    return Record(kind.to_bytes(2, "big") + key.encode(kind), encoded)


def member_record(group_id: str, member: ShareMember) -> Record:
    """Return the record of a member's subscription and other properties."""
    value = log.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
    )
    return _record(log.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Return the record of the group's epoch and the hash of its topics."""
    value = log.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(log.ShareGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Iterable[Partition]) -> Record:
    """Return the record of a member's target."""
    topics = [
        log.ShareGroupTargetTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(target).items()
    ]
    value = log.ShareGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return _record(log.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, assigned_ms: int) -> Record:
    """Return the record of the targets' epoch and the time they were computed."""
    value = log.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
    return _record(log.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


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
    return _record(log.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


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
    return _record(log.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of a member, in Kafka's order."""
    return [
        _record(log.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        _record(log.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        _record(log.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[Record]:
    """Return the tombstones of a group without members, in Kafka's order."""
    return [
        _record(log.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        _record(log.ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        _record(log.ShareGroupMetadataKey(group_id=group_id), None),
    ]


def _written(topics: Mapping[bytes, SharedTopic]) -> list[log.ShareGroupTopicPartitionsInfo]:
    return [
        log.ShareGroupTopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
        for topic_id, (name, partitions) in sorted(topics.items())
    ]


def _read(topics: Iterable[log.ShareGroupTopicPartitionsInfo]) -> dict[bytes, SharedTopic]:
    return {bytes(t.topic_id): SharedTopic(t.topic_name, frozenset(t.partitions)) for t in topics}


def replay(groups: dict[str, ShareGroup], kind: int, key: bytes, value: bytes | None) -> None:
    """Apply one record of a kind of `KINDS`. Raises MalformedRequest when it cannot be read.

    A tombstone of a group that is not there is passed over: compaction may have removed what came before it.
    """
    reader = Reader(key, 2)
    if kind in (MEMBER_KEY, TARGET_KEY, ASSIGNMENT_KEY):
        stored = log.ShareGroupMemberMetadataKey.read(reader, MEMBER_KEY)  # the three keys have the same fields
        group_id, member_id = stored.group_id, stored.member_id
    else:
        group_id, member_id = log.ShareGroupMetadataKey.read(reader, EPOCH_KEY).group_id, ""
    group = groups.get(group_id)
    if value is None:
        if group is not None:
            _remove(groups, group, kind, member_id)
        return
    if group is None:
        group = groups[group_id] = ShareGroup(group_id)
    body = Reader(value)
    if (version := body.int16()) != 0:
        raise MalformedRequest(f"share group record of kind {kind}: value of version {version}; 0 is known")
    _apply(group, kind, member_id, body)


def _remove(groups: dict[str, ShareGroup], group: ShareGroup, kind: int, member_id: str) -> None:
    if kind == MEMBER_KEY:
        group.replay_no_member(member_id)
    elif kind == TARGET_KEY:
        group.replay_target(member_id, None)
    elif kind == ASSIGNMENT_KEY:
        group.replay_no_assignment(member_id)
    elif kind == TOPICS_KEY:
        group.replay_topics(NO_TOPICS)
    elif kind == EPOCH_KEY:
        del groups[group.group_id]


def _apply(group: ShareGroup, kind: int, member_id: str, body: Reader) -> None:
    if kind == MEMBER_KEY:
        member = log.ShareGroupMemberMetadataValue.read(body, 0)
        topics = tuple(member.subscribed_topic_names)
        group.replay_member(ShareMember(member_id, member.rack_id, member.client_id, member.client_host, topics))
    elif kind == EPOCH_KEY:
        epoch = log.ShareGroupMetadataValue.read(body, 0)
        group.replay_epoch(epoch.epoch, epoch.metadata_hash)
    elif kind == TARGET_EPOCH_KEY:
        target = log.ShareGroupTargetAssignmentMetadataValue.read(body, 0)
        group.replay_target_epoch(target.assignment_epoch, target.assignment_timestamp)
    elif kind == TARGET_KEY:
        aimed = log.ShareGroupTargetAssignmentMemberValue.read(body, 0)
        group.replay_target(member_id, _partitions(aimed.topic_partitions))
    elif kind == ASSIGNMENT_KEY:
        held = log.ShareGroupCurrentMemberAssignmentValue.read(body, 0)
        assigned = _partitions(held.assigned_partitions)
        group.replay_assignment(member_id, held.member_epoch, held.previous_member_epoch, assigned)
    else:
        found = log.ShareGroupStatePartitionMetadataValue.read(body, 0)
        deleting = {bytes(topic.topic_id): topic.topic_name for topic in found.deleting_topics}
        group.replay_topics(StateTopics(_read(found.initializing_topics), _read(found.initialized_topics), deleting))


def _partitions(
    topics: Iterable[log.ShareGroupTargetTopicPartitions | log.ShareGroupCurrentTopicPartitions],
) -> Target:
    return frozenset((bytes(topic.topic_id), number) for topic in topics for number in topic.partitions)
