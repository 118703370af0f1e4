"""OffsetDelete: refuse unknown partitions, ask the shard about the rest (also when nothing is left), merge."""

from __future__ import annotations

from partita.broker.groups.across_shards import when_all
from partita.broker.handlers._partitions import merged, take_out_missing
from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(ctx: RequestContext, request: OffsetDeleteRequest) -> Answer:
    """Ask the group's shard about partitions that exist; refuse the others here."""
    refused: dict[str, OffsetDeleteResponseTopic] = {}
    request.topics = [topic for topic in request.topics if _keep_existing(ctx, topic, refused)]
    return when_all([ctx.groups.ask(ctx, request, request.group_id)], lambda parts: _merge(refused, parts[0]))


def _keep_existing(
    ctx: RequestContext, asked: OffsetDeleteRequestTopic, refused: dict[str, OffsetDeleteResponseTopic]
) -> bool:
    missing = take_out_missing(ctx.catalogue.get(asked.name), asked)
    if missing:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        entry = refused.setdefault(asked.name, OffsetDeleteResponseTopic(name=asked.name))
        entry.partitions += [OffsetDeleteResponsePartition(partition_index=i, error_code=code) for i in missing]
    return bool(asked.partitions)


def _merge(refused: dict[str, OffsetDeleteResponseTopic], response: OffsetDeleteResponse) -> OffsetDeleteResponse:
    """A top-level error stands alone."""
    if response.error_code:
        return response
    response.topics = merged(refused, response.topics, lambda topic: topic.name)
    return response
