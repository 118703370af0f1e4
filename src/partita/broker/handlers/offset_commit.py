"""OffsetCommit: check that topics and partitions exist, give the shard both names and ids of them, merge.

(Kafka: KafkaApis.handleOffsetCommitRequest, OffsetCommitResponse.Builder.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, TypeAlias

from partita.broker.api.context import AT_ONCE, Answer, RequestContext, Steps, when_all
from partita.broker.api.needs import READ_GROUP, NeedsEach
from partita.broker.api.served import ALONE_MAX, PARTITIONS_MAX, Served
from partita.broker.handlers._partitions import merged
from partita.group.offsets.commit import stored_offsets
from partita.group.requests import CommitOffsets, OffsetsRefused
from partita.group.steps import finished
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    OffsetCommitRequest,
    rights=(
        READ_GROUP,
        NeedsEach(Operation.READ, ResourceType.TOPIC, "topics", "topics", "name", ids_from=10),
    ),
    elements_max=PARTITIONS_MAX,
    alone_max=ALONE_MAX,
)

BY_ID_FROM = 10
Refused: TypeAlias = dict[tuple[str, bytes], OffsetCommitResponseTopic]
"""The answers to partitions that do not exist, by name and id of their topics."""


def handle(ctx: RequestContext, request: OffsetCommitRequest) -> Answer | Steps[Answer]:
    """Commit. Partitions refused here stand first in the answer; without any left the shard is not asked.

    A commit of more than a few hundred partitions is checked and worked out in slices, and written in one piece.
    """
    if sum(1 + len(topic.partitions) for topic in request.topics) > AT_ONCE:
        return _in_slices(ctx, request)
    refused = finished(_checked(ctx, request))
    if refused and not request.topics:
        return _merge(refused, OffsetCommitResponse())
    _count(ctx, request)
    return when_all([ctx.groups.ask(ctx, request, request.group_id)], lambda parts: _merge(refused, parts[0]))


def _in_slices(ctx: RequestContext, request: OffsetCommitRequest) -> Steps[OffsetCommitResponse]:
    refused = yield from _checked(ctx, request)
    if not request.topics:
        return _merge(refused, OffsetCommitResponse())
    _count(ctx, request)
    work = stored_offsets(request, ctx.version, ctx.now().wall_ms, ctx.groups.settings)
    stored = yield from work
    if any(_is_gone(ctx, topic) for topic in request.topics):  # nothing would forget its offsets once they are stored
        answer: Any = OffsetsRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        answer = ctx.groups.ask(ctx, CommitOffsets(request, stored), request.group_id)
    if isinstance(answer, asyncio.Future):
        answer = yield answer
    if isinstance(answer, OffsetsRefused):
        answer = yield from _with_error(stored.response, answer.error_code)
    return _merge(refused, answer)


def _is_gone(ctx: RequestContext, asked: OffsetCommitRequestTopic) -> bool:
    """Whether a topic that was there has been deleted meanwhile."""
    topic = ctx.catalogue.get(asked.name)
    return topic is None or topic.topic_id != asked.topic_id


def _with_error(response: OffsetCommitResponse, error_code: int) -> Generator[None, None, OffsetCommitResponse]:
    for topic in response.topics:
        for part in topic.partitions:
            part.error_code = error_code
            yield
    return response


def _count(ctx: RequestContext, request: OffsetCommitRequest) -> None:
    ctx.traffic.offset_commits += sum(len(topic.partitions) for topic in request.topics)


def _checked(ctx: RequestContext, request: OffsetCommitRequest) -> Generator[None, None, Refused]:
    """Keep existing topics in the request, with name and id; return the answers to all other partitions."""
    refused: Refused = {}
    topics, request.topics = request.topics, []
    by_id = ctx.version >= BY_ID_FROM
    for asked in topics:
        yield
        topic = ctx.catalogue.by_id.get(asked.topic_id) if by_id else ctx.catalogue.get(asked.name)
        existing = 0
        if topic is not None:
            asked.name, asked.topic_id, existing = topic.name, topic.topic_id, len(topic.partitions)
        partitions, asked.partitions, missing = asked.partitions, [], []
        for part in partitions:
            if topic is not None and 0 <= part.partition_index < existing:
                asked.partitions.append(part)
                _ = topic.partitions[part.partition_index].is_untouched  # asks the disk, which the shard then need not
            else:
                code = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                missing.append(OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code))
            yield
        if missing or not asked.partitions:
            entry = OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
            refused.setdefault((asked.name, asked.topic_id), entry).partitions += missing
        if asked.partitions:
            request.topics.append(asked)
    return refused


def _merge(refused: Refused, response: OffsetCommitResponse) -> OffsetCommitResponse:
    if refused:
        response.topics = merged(refused, response.topics, lambda topic: (topic.name, topic.topic_id))
    return response
