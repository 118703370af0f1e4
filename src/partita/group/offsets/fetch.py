"""OffsetFetch: what was committed, whoever asks.

(Kafka: OffsetMetadataManager.fetchOffsets, specification section 13.)
"""

from __future__ import annotations

from partita.group import answers
from partita.group.contract import GroupRequest, Token
from partita.group.offsets.consumer_groups import fetch_error
from partita.group.records.hard_state import HardState, TopicPartition
from partita.group.requests import FetchOffsets
from partita.group.state.model import DEAD
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def fetch_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Offsets of one group in any state; members and epochs mean something to KIP-848 groups only."""
    ask = request.message
    assert isinstance(ask, FetchOffsets)
    wire = ask.group
    consumers = turn.state.consumer_group(wire.group_id)
    if consumers is not None:
        error = fetch_error(consumers, wire.member_id, wire.member_epoch)
        if error:
            turn.out.answer(token, answers.group_offsets_error(wire.group_id, error))
            return
    group = turn.state.groups.get(wire.group_id)
    is_gone = consumers is None and (group is None or group.state is DEAD)
    hard = HardState() if is_gone else turn.state.hard
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
    turn.out.answer(token, OffsetFetchResponseGroup(group_id=wire.group_id, topics=topics))


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
        partition_index=partition[1], committed_offset=answers.NO_OFFSET, metadata="", error_code=ErrorCode.NONE
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
