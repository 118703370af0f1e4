"""DeleteGroups and OffsetDelete: tombstones, all of them or none.

(Kafka: GroupCoordinatorShard.deleteGroups, OffsetMetadataManager.deleteOffsets; specification sections 14 and 16.3.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.group.contract import GroupRequest, Record, Token
from partita.group.notes import GroupDeleted
from partita.group.offsets import consumer_groups
from partita.group.records import log_records
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.consumer_log import group_tombstones
from partita.group.records.hard_state import TopicPartition
from partita.group.requests import DeleteGroup
from partita.group.state.model import DEAD, EMPTY, Group
from partita.group.state.stored import group_tombstone
from partita.group.state.turn import Turn
from partita.lazy import later
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_groups import DeletableGroupResult
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from partita.group.records import streams_log
    from partita.group.records.streams_group import StreamsGroup
else:
    streams_log = later("partita.group.records.streams_log")

CONSUMER = "consumer"


def delete_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Delete an empty group with all its offsets."""
    ask = request.message
    assert isinstance(ask, DeleteGroup)
    error = _refuse_delete(turn, ask.group_id)
    if not error:
        records = [*tombstones(ask.group_id, all_partitions(turn, ask.group_id)), *end_records(turn, ask.group_id)]
        if turn.state.fits(records):
            turn.write(records)
            forget(turn, ask.group_id, "deleted")
        else:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
    turn.out.answer(token, DeletableGroupResult(group_id=ask.group_id, error_code=error))


def _refuse_delete(turn: Turn, group_id: str) -> ErrorCode:
    group = turn.state.groups.get(group_id)
    if turn.state.epoch_group(group_id) is None and (group is None or group.state is DEAD):
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if is_empty(turn, group_id) else ErrorCode.NON_EMPTY_GROUP


def is_empty(turn: Turn, group_id: str) -> bool:
    """Whether the group, of whatever protocol, has no members."""
    epochs = turn.state.epoch_group(group_id)
    group = turn.state.groups.get(group_id)
    return not epochs.members if epochs is not None else group is not None and group.state is EMPTY


def end_records(turn: Turn, group_id: str) -> list[Record]:
    """Return the tombstones of an empty group of whatever protocol, without those of its offsets."""
    group = turn.state.epoch_group(group_id)
    if group is None:
        return [group_tombstone(group_id)]
    return group_tombstones(group) if isinstance(group, ConsumerGroup) else streams_log.group_tombstones(group_id)


def forget(turn: Turn, group_id: str, why: str) -> None:
    """Drop the soft state of a group whose tombstones are written. `why` is for the note."""
    turn.state.forget_timers(group_id)
    group = turn.state.groups.get(group_id)
    if group is not None:
        turn.state.forget(group)
    turn.out.note(GroupDeleted(group_id, why, turn.now.wall_ms))


def all_partitions(turn: Turn, group_id: str) -> list[TopicPartition]:
    """Return the partitions with an offset, committed ones first, then those only pending."""
    committed = turn.state.hard.offsets.get(group_id, {})
    return [*committed, *(p for p in turn.state.hard.pending_partitions(group_id) if p not in committed)]


def tombstones(group_id: str, partitions: list[TopicPartition]) -> list[Record]:
    """Return the tombstones of these partitions' offsets."""
    return [Record(log_records.offset_key(group_id, topic, number), None) for topic, number in partitions]


def delete_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Delete offsets of topics that the group does not subscribe to."""
    wire = request.message
    assert isinstance(wire, OffsetDeleteRequest)
    group: Group | ConsumerGroup | StreamsGroup | None = turn.state.epoch_group(wire.group_id)
    group = group or turn.state.groups.get(wire.group_id)
    error = _refuse_offsets(group)
    if group is None or error:
        turn.out.answer(token, OffsetDeleteResponse(error_code=error))
        return
    known = set(all_partitions(turn, wire.group_id))
    gone: dict[TopicPartition, None] = {}
    topics = [_delete_topic(group, topic, known, gone) for topic in wire.topics]
    records = tombstones(wire.group_id, list(gone))
    if turn.state.fits(records):
        turn.write(records)
        turn.out.answer(token, OffsetDeleteResponse(topics=topics))
    else:
        turn.out.answer(token, OffsetDeleteResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


def _refuse_offsets(group: Group | ConsumerGroup | StreamsGroup | None) -> ErrorCode:
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not isinstance(group, Group):
        return ErrorCode.NONE
    if group.state is DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    uses_other_type = group.protocol_type is not None and group.protocol_type != CONSUMER
    return ErrorCode.NON_EMPTY_GROUP if group.state is not EMPTY and uses_other_type else ErrorCode.NONE


def _delete_topic(
    group: Group | ConsumerGroup | StreamsGroup,
    topic: OffsetDeleteRequestTopic,
    known: set[TopicPartition],
    gone: dict[TopicPartition, None],
) -> OffsetDeleteResponseTopic:
    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed(group, topic.name) else ErrorCode.NONE
    numbers = [partition.partition_index for partition in topic.partitions]
    if not error:
        gone.update(dict.fromkeys((topic.name, number) for number in numbers if (topic.name, number) in known))
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[OffsetDeleteResponsePartition(partition_index=number, error_code=error) for number in numbers],
    )


def is_subscribed(group: Group | ConsumerGroup | StreamsGroup, topic: str) -> bool:
    """Whether the group uses the topic; true for a classic consumer group with an unreadable subscription."""
    if not isinstance(group, Group):
        return consumer_groups.is_subscribed(group, topic)
    if group.protocol_type != CONSUMER:
        return False
    topics = group.subscribed_topics()
    return topics is None or topic in topics
