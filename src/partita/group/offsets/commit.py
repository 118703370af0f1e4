"""OffsetCommit and OffsetFetch: who may commit, what is stored, what is told.

(Kafka: OffsetMetadataManager, specification sections 12 and 13.)
Deviation: a retention of 0 sent by an old client means the broker's; Kafka expires such offsets at once.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from partita.group import answers
from partita.group.contract import GroupRequest, Record, Token
from partita.group.records import log_records
from partita.group.records.hard_state import HardState, TopicPartition
from partita.group.records.log_records import CommittedOffset
from partita.group.requests import FetchOffsets
from partita.group.state.model import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, Group, GroupState, unknown_identity
from partita.group.state.shard import Shard
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_TELLS_ABSENT_GROUP = 9


class CommitCase(IntEnum):
    OFFSETS_ONLY = 0
    """No generation, no member, no instance: whoever assigns partitions itself."""
    NAMED = 1
    """No generation, but a member or instance id."""
    MEMBER = 2
    """With a generation."""


NONE, REBALANCE, UNKNOWN = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID
IDENTIFY = None
"""Only for the member it claims to be, in the current generation; NONE then, but for Completing."""
# fmt: off
COMMIT: dict[GroupState, tuple[ErrorCode | None, ...]] = {
    #            OFFSETS_ONLY NAMED     MEMBER
    EMPTY:      (NONE,        NONE,     IDENTIFY),
    PREPARING:  (UNKNOWN,     IDENTIFY, IDENTIFY),
    COMPLETING: (UNKNOWN,     IDENTIFY, IDENTIFY),
    STABLE:     (UNKNOWN,     IDENTIFY, IDENTIFY),
}  # DEAD: a guard answers COORDINATOR_NOT_AVAILABLE. An absent group: see `_absent`.
# fmt: on


class Caller(Protocol):
    """What a commit says about who sends it."""

    member_id: str
    group_instance_id: str | None


def classify(generation: int, caller: Caller) -> CommitCase:
    if generation >= 0:
        return CommitCase.MEMBER
    return CommitCase.NAMED if caller.member_id or caller.group_instance_id is not None else CommitCase.OFFSETS_ONLY


def identify(group: Group, generation: int, caller: Caller) -> ErrorCode:
    """NONE, or why the caller is not a member of the current generation."""
    error = unknown_identity(group, caller.member_id, caller.group_instance_id)
    if not error and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def commit_offsets(shard: Shard, token: Token, request: GroupRequest) -> None:
    wire = request.message
    assert isinstance(wire, OffsetCommitRequest)
    group = shard.groups.get(wire.group_id)
    error = _absent(shard, wire, request.version) if group is None else _refuse(group, wire)
    if not error:
        response, records = _store(shard, wire, request.version)
        if not shard.fits(records):
            error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error:
        shard.answer(token, answers.offset_commit_error(wire, error))
        return
    if group is not None:
        member = group.members.get(wire.member_id)
        if member is not None:
            shard.start_session(group, member)
    elif records:
        # Deviation: a commit that is refused whole leaves no group behind. Kafka keeps one that can be deleted and
        # joined but is not described or listed until something is written for it.
        shard.create(wire.group_id)
    shard.write(records)
    shard.answer(token, response)


def _absent(shard: Shard, wire: OffsetCommitRequest, version: int) -> ErrorCode:
    if wire.generation_id_or_member_epoch >= 0:
        absent = ErrorCode.GROUP_ID_NOT_FOUND
        return absent if version >= _TELLS_ABSENT_GROUP else ErrorCode.ILLEGAL_GENERATION
    full = len(shard.groups) >= shard.config.partita_groups_max
    return ErrorCode.GROUP_MAX_SIZE_REACHED if full else NONE


def _refuse(group: Group, wire: OffsetCommitRequest) -> ErrorCode:
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    generation = wire.generation_id_or_member_epoch
    verdict = COMMIT[group.state][classify(generation, wire)]
    if verdict is not IDENTIFY:
        return verdict
    return identify(group, generation, wire) or (REBALANCE if group.state is COMPLETING else NONE)


def _store(shard: Shard, wire: OffsetCommitRequest, version: int) -> tuple[OffsetCommitResponse, list[Record]]:
    """The answer and the records, one per partition whose metadata is short enough."""
    expire_ms = log_records.NO_EXPIRY
    if wire.retention_time_ms > 0 and version <= 4:
        expire_ms = shard.now.wall_ms + wire.retention_time_ms
    records: list[Record] = []
    topics = [
        OffsetCommitResponseTopic(
            topic_id=topic.topic_id,
            name=topic.name,
            partitions=[
                OffsetCommitResponsePartition(partition_index=index, error_code=error)
                for index, error in _store_topic(shard, wire.group_id, topic, expire_ms, records)
            ],
        )
        for topic in wire.topics
    ]
    return OffsetCommitResponse(topics=topics), records


def _store_topic(
    shard: Shard, group_id: str, topic: OffsetCommitRequestTopic, expire_ms: int, records: list[Record]
) -> list[tuple[int, ErrorCode]]:
    results = []
    for partition in topic.partitions:
        metadata = partition.committed_metadata or ""
        error = NONE
        if is_too_long(metadata, shard.config.offset_metadata_max_bytes):
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            committed = CommittedOffset(
                partition.committed_offset,
                partition.committed_leader_epoch,
                metadata,
                shard.now.wall_ms,
                expire_ms,
                topic.topic_id,
            )
            key = log_records.offset_key(group_id, topic.name, partition.partition_index)
            records.append(Record(key, log_records.offset_value(committed)))
        results.append((partition.partition_index, error))
    return results


def is_too_long(metadata: str, limit: int) -> bool:
    """Is it longer than `limit` UTF-16 code units?"""
    if len(metadata) > limit:
        return True
    return 2 * len(metadata) > limit and len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * limit


def fetch_offsets(shard: Shard, token: Token, request: GroupRequest) -> None:
    """Offsets of one group in any state; members and epochs mean nothing to a classic group."""
    ask = request.message
    assert isinstance(ask, FetchOffsets)
    wire = ask.group
    group = shard.groups.get(wire.group_id)
    hard = HardState() if group is None or group.state is DEAD else shard.hard
    topics: list[OffsetFetchResponseTopics] = []
    if wire.topics is None:
        for (topic, number), _ in hard.offsets.get(wire.group_id, {}).items():
            if not topics or topics[-1].name != topic:
                topics.append(OffsetFetchResponseTopics(name=topic))
            topics[-1].partitions.append(_fetch(hard, ask, (topic, number)))
        topics = _merged(topics)
    else:
        for asked in wire.topics:
            found = [_fetch(hard, ask, (asked.name, number)) for number in asked.partition_indexes]
            topics.append(OffsetFetchResponseTopics(topic_id=asked.topic_id, name=asked.name, partitions=found))
    shard.answer(token, OffsetFetchResponseGroup(group_id=wire.group_id, topics=topics))


def _merged(topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopics]:
    """One entry per topic, in the order of first appearance."""
    by_name: dict[str, OffsetFetchResponseTopics] = {}
    for topic in topics:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            by_name[topic.name] = topic
    return list(by_name.values())


def _fetch(hard: HardState, ask: FetchOffsets, partition: TopicPartition) -> OffsetFetchResponsePartitions:
    group_id = ask.group.group_id
    answer = OffsetFetchResponsePartitions(
        partition_index=partition[1], committed_offset=answers.NO_OFFSET, metadata="", error_code=NONE
    )
    if ask.require_stable and hard.is_pending(group_id, partition):
        answer.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
        return answer
    committed = hard.committed(group_id, partition)
    if committed is not None:
        answer.committed_offset = committed.offset
        answer.committed_leader_epoch = committed.leader_epoch
        answer.metadata = committed.metadata
    return answer
