"""OffsetFetch: returns committed offsets, for any client of a classic group.

(Kafka: OffsetMetadataManager.fetchOffsets, specification section 13.)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from partita.group.contract import GroupRequest, Token
from partita.group.offsets.consumer_groups import fetch_error
from partita.group.records.hard_state import HardState, TopicPartition
from partita.group.records.log_records import read_offset_value
from partita.group.requests import FetchOffsets, OffsetsFound
from partita.group.state import answers
from partita.group.state.model import DEAD
from partita.group.state.turn import Turn
from partita.group.steps import finished
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def fetch_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer with the offsets of one group in any state; only KIP-848 and streams groups check members and epochs."""
    ask = request.message
    assert isinstance(ask, FetchOffsets)
    wire = ask.group
    epochs = turn.state.epoch_group(wire.group_id)
    if epochs is not None:
        error = fetch_error(epochs, wire.member_id, wire.member_epoch)
        if error:
            turn.out.answer(token, answers.group_offsets_error(wire.group_id, error))
            return
    group = turn.state.groups.get(wire.group_id)
    is_gone = epochs is None and (group is None or group.state is DEAD)
    hard = HardState() if is_gone else turn.state.hard
    offsets = hard.offsets.get(wire.group_id, {})
    unstable = frozenset(hard.pending_partitions(wire.group_id)) if ask.require_stable else frozenset()
    if _count(ask, offsets) > ask.at_once_max:
        turn.out.answer(token, OffsetsFound(dict(offsets), unstable))
    else:
        turn.out.answer(token, finished(told(wire, OffsetsFound(offsets, unstable))))


def _count(ask: FetchOffsets, offsets: Mapping[TopicPartition, bytes]) -> int:
    topics = ask.group.topics
    return len(offsets) if topics is None else sum(len(topic.partition_indexes) for topic in topics)


def told(asked: OffsetFetchRequestGroup, found: OffsetsFound) -> Generator[None, None, OffsetFetchResponseGroup]:
    """Build the answer: topics in the order of the request, or of first appearance. Yields after each partition."""
    topics: list[OffsetFetchResponseTopics] = []
    if asked.topics is None:
        by_name: dict[str, OffsetFetchResponseTopics] = {}
        for name, number in found.offsets:
            topic = by_name.get(name)
            if topic is None:
                topic = by_name[name] = OffsetFetchResponseTopics(name=name)
            topic.partitions.append(_entry(found, (name, number)))
            yield
        topics += by_name.values()
    else:
        for wanted in asked.topics:
            parts: list[OffsetFetchResponsePartitions] = []
            topics.append(OffsetFetchResponseTopics(topic_id=wanted.topic_id, name=wanted.name, partitions=parts))
            for number in wanted.partition_indexes:
                parts.append(_entry(found, (wanted.name, number)))
                yield
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _entry(found: OffsetsFound, partition: TopicPartition) -> OffsetFetchResponsePartitions:
    if partition in found.unstable:
        return OffsetFetchResponsePartitions(
            partition_index=partition[1], committed_offset=answers.NO_OFFSET, metadata="",
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
        )  # fmt: skip
    value = found.offsets.get(partition)
    if value is None:
        return OffsetFetchResponsePartitions(
            partition_index=partition[1], committed_offset=answers.NO_OFFSET, metadata=""
        )
    committed = read_offset_value(value)
    return OffsetFetchResponsePartitions(
        partition_index=partition[1], committed_offset=committed.offset, committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )  # fmt: skip
