"""OffsetCommit: check that topics and partitions exist, give the shard both names and ids of them, merge.

(Kafka: KafkaApis.handleOffsetCommitRequest, OffsetCommitResponse.Builder.)
"""

from __future__ import annotations

from partita.broker.groups.across_shards import when_all
from partita.broker.handlers._partitions import merged, take_out_missing
from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

BY_ID_FROM = 10


def handle(ctx: RequestContext, request: OffsetCommitRequest) -> Answer:
    """What is refused here stands first in the answer; without anything left the shard is not asked."""
    refused: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}
    known: list[OffsetCommitRequestTopic] = []
    for asked in request.topics:
        checked = _check(ctx, asked, refused)
        if checked.partitions:
            known.append(checked)
    response = OffsetCommitResponse(topics=list(refused.values()))
    if not known and request.topics:
        return response
    request.topics = known
    ctx.services.traffic.offset_commits += sum(len(topic.partitions) for topic in known)
    return when_all([ctx.groups.ask(ctx, request, request.group_id)], lambda parts: _merge(refused, parts[0]))


def _check(
    ctx: RequestContext, asked: OffsetCommitRequestTopic, refused: dict[tuple[str, bytes], OffsetCommitResponseTopic]
) -> OffsetCommitRequestTopic:
    """The topic with name, id, and those of its partitions that exist; the others go to `refused`."""
    by_id = ctx.version >= BY_ID_FROM
    topic = ctx.catalogue.by_id.get(asked.topic_id) if by_id else ctx.catalogue.get(asked.name)
    code = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is not None:
        asked.name, asked.topic_id = topic.name, topic.topic_id
    missing = take_out_missing(topic, asked)
    if missing or not asked.partitions:
        entry = refused.setdefault(
            (asked.name, asked.topic_id), OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
        )
        entry.partitions += [OffsetCommitResponsePartition(partition_index=i, error_code=code) for i in missing]
    return asked


def _merge(
    refused: dict[tuple[str, bytes], OffsetCommitResponseTopic], response: OffsetCommitResponse
) -> OffsetCommitResponse:
    if refused:
        response.topics = merged(refused, response.topics, lambda topic: (topic.name, topic.topic_id))
    return response
