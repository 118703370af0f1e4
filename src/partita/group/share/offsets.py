"""Administration of the stored offsets of a share group: alter them, delete them, delete the group.

Each writes what it is about to do, asks the share coordinator, and answers with what came of it; a group with members
is left alone. (Kafka: alterShareGroupOffsets, deleteShareGroupOffsets, deleteGroups of GroupCoordinatorService.)
"""

from __future__ import annotations

from typing import Any

from partita.group.consumer_group.errors import Refused
from partita.group.contract import GroupRequest, Token
from partita.group.notes import GroupDeleted
from partita.group.records import share_log
from partita.group.records.share_group import SharedTopic, ShareGroup
from partita.group.requests import DeleteGroup
from partita.group.share.asking import AskStates, answer, ask, codes_of, delete_request, park
from partita.group.share.heartbeat import absent, is_of_other_type
from partita.group.share.initializing import begin, first_error, record_outcome, with_added, without
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_share_group_offsets import (
    AlteredShareOffsetsPartition,
    AlteredShareOffsetsTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from partita.protocol.messages.delete_groups import DeletableGroupResult
from partita.protocol.messages.delete_share_group_offsets import (
    DeletedShareOffsetsTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from partita.protocol.primitives import ZERO_UUID

_TOPIC_UNKNOWN = "This server does not host this topic-partition."


def alter_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Begin the state of partitions anew at the given offsets; a group that does not exist comes into being."""
    wire = request.message
    assert isinstance(wire, AlterShareGroupOffsetsRequest)
    group = _empty_group(turn, wire.group_id, is_made=True)
    if isinstance(group, Refused):
        refused = AlterShareGroupOffsetsResponse(error_code=group.error, error_message=group.text)
        turn.out.answer(token, refused)
        return
    starts: dict[bytes, dict[int, int]] = {}
    topics: dict[bytes, SharedTopic] = {}
    rows = []
    for topic in wire.topics:
        facts = turn.state.topics.get(topic.topic_name)
        count, topic_id = (0, ZERO_UUID) if facts is None else (facts.partitions, facts.topic_id)
        known = {p.partition_index: p.start_offset for p in topic.partitions if 0 <= p.partition_index < count}
        if known:
            starts.setdefault(topic_id, {}).update(known)
            topics[topic_id] = SharedTopic(topic.topic_name, frozenset(starts[topic_id]))
        parts = [
            AlteredShareOffsetsPartition(partition_index=p.partition_index)
            if p.partition_index in known
            else AlteredShareOffsetsPartition(
                partition_index=p.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=_TOPIC_UNKNOWN,
            )
            for p in topic.partitions
        ]
        rows.append(AlteredShareOffsetsTopic(topic_name=topic.topic_name, topic_id=topic_id, partitions=parts))
    if not starts:
        turn.out.answer(token, AlterShareGroupOffsetsResponse(responses=rows))
        return
    if turn.state.share_group(wire.group_id) is None:
        turn.write([share_log.epoch_record(group.group_id, group.epoch, 0)])
        group = turn.state.hard.share_groups[wire.group_id]
        turn.state.shares[wire.group_id]  # made, so that the group counts

    def altered(turn: Turn, asked: AskStates, response: Any) -> None:
        codes = codes_of(response)
        now = turn.state.share_group(asked.group_id)
        if now is not None:
            record_outcome(turn, now, asked, response)
        for row in rows:
            for part in row.partitions:
                if part.error_code == 0:
                    found = codes.get((row.topic_id, part.partition_index), ErrorCode.COORDINATOR_NOT_AVAILABLE)
                    part.error_code = int(found)
        answer(turn, asked, AlterShareGroupOffsetsResponse(responses=rows))

    question = AskStates(group.group_id, wire, altered, park(turn, token, request))
    begin(turn, group, topics, starts, question)


def delete_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Forget the state of topics."""
    wire = request.message
    assert isinstance(wire, DeleteShareGroupOffsetsRequest)
    group = _empty_group(turn, wire.group_id, is_made=False)
    if isinstance(group, Refused):
        refused = DeleteShareGroupOffsetsResponse(error_code=group.error, error_message=group.text)
        turn.out.answer(token, refused)
        return
    rows: list[DeletedShareOffsetsTopic] = []
    gone: dict[bytes, SharedTopic] = {}
    for name in dict.fromkeys(topic.topic_name for topic in wire.topics):
        facts = turn.state.topics.get(name)
        topic_id = ZERO_UUID if facts is None else facts.topic_id
        stored = with_added(_one(group.topics.initialized, topic_id), _one(group.topics.initializing, topic_id))
        row = DeletedShareOffsetsTopic(topic_name=name, topic_id=topic_id)
        if facts is None or (not stored and topic_id not in group.topics.deleting):
            row.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            row.error_message = _TOPIC_UNKNOWN if facts is None else "There is no offset information to delete."
        else:
            gone[topic_id] = stored.get(topic_id) or SharedTopic(name, frozenset(range(facts.partitions)))
        rows.append(row)
    if not gone:
        turn.out.answer(token, DeleteShareGroupOffsetsResponse(responses=rows))
        return
    _mark_deleting(turn, group, gone)

    def deleted(turn: Turn, asked: AskStates, response: Any) -> None:
        failed = _failed(asked, response)
        now = turn.state.share_group(asked.group_id)
        if now is not None:
            left = {t: name for t, name in now.topics.deleting.items() if t not in gone or t in failed}
            turn.write([share_log.topics_record(asked.group_id, now.topics._replace(deleting=left))])
        for row in rows:
            if row.error_code == 0 and row.topic_id in failed:
                row.error_code = int(failed[row.topic_id])
        answer(turn, asked, DeleteShareGroupOffsetsResponse(responses=rows))

    message = delete_request(group.group_id, {topic_id: topic.partitions for topic_id, topic in gone.items()})
    ask(turn, AskStates(group.group_id, message, deleted, park(turn, token, request)))


def delete_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Forget all state of a group without members, then the group; after an error it stays, to be asked again."""
    wire = request.message
    assert isinstance(wire, DeleteGroup)
    group = turn.state.hard.share_groups[wire.group_id]
    if group.members:
        result = DeletableGroupResult(group_id=wire.group_id, error_code=ErrorCode.NON_EMPTY_GROUP)
        turn.out.answer(token, result)
        return
    gone = with_added(group.topics.initialized, group.topics.initializing)
    for topic_id, name in group.topics.deleting.items():
        facts = turn.state.topics.get(name)
        if topic_id not in gone and facts is not None and facts.topic_id == topic_id:
            gone[topic_id] = SharedTopic(name, frozenset(range(facts.partitions)))
    if not gone:
        _end_group(turn, group)
        turn.out.answer(token, DeletableGroupResult(group_id=wire.group_id))
        return
    _mark_deleting(turn, group, gone)

    def deleted(turn: Turn, asked: AskStates, response: Any) -> None:
        code = first_error(_failed(asked, response))
        now = turn.state.share_group(asked.group_id)
        if now is not None and now.members:
            code = code or ErrorCode.NON_EMPTY_GROUP
        elif now is not None and not code:
            _end_group(turn, now)
        answer(turn, asked, DeletableGroupResult(group_id=asked.group_id, error_code=code))

    message = delete_request(group.group_id, {topic_id: topic.partitions for topic_id, topic in gone.items()})
    ask(turn, AskStates(group.group_id, message, deleted, park(turn, token, request)))


def _empty_group(turn: Turn, group_id: str, *, is_made: bool) -> ShareGroup | Refused:
    group = turn.state.share_group(group_id)
    if not group_id:
        return Refused(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    if group is not None:
        members = f"Group {group_id} has members; its offsets stay as they are."
        return Refused(ErrorCode.NON_EMPTY_GROUP, members) if group.members else group
    if is_made and not is_of_other_type(turn, group_id):
        return ShareGroup(group_id)
    return absent(turn, group_id)


def _mark_deleting(turn: Turn, group: ShareGroup, gone: dict[bytes, SharedTopic]) -> None:
    topics = group.topics
    marked = topics._replace(
        initializing=without(topics.initializing, gone),
        initialized=without(topics.initialized, gone),
        deleting={**topics.deleting, **{topic_id: topic.name for topic_id, topic in gone.items()}},
    )
    turn.write([share_log.topics_record(group.group_id, marked)])


def _end_group(turn: Turn, group: ShareGroup) -> None:
    turn.write(share_log.group_tombstones(group.group_id))
    turn.state.forget_timers(group.group_id)
    turn.out.note(GroupDeleted(group.group_id, "deleted", turn.now.wall_ms))


def _failed(asked: AskStates, response: Any) -> dict[Any, ErrorCode]:
    """The first error of each topic of the question; without a response that of all of them."""
    message: Any = asked.message
    if response is None:
        return {bytes(topic.topic_id): ErrorCode.COORDINATOR_NOT_AVAILABLE for topic in message.topics}
    found: dict[Any, ErrorCode] = {}
    for (topic_id, _), code in codes_of(response).items():
        if code:
            found.setdefault(topic_id, code)
    return found


def _one(topics: Any, topic_id: bytes) -> dict[bytes, SharedTopic]:
    return {topic_id: topics[topic_id]} if topic_id in topics else {}
