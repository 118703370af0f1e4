"""OffsetFetch: one group (up to version 7) or many; topics by name, from version 10 by id. (Kafka: KafkaApis.)

Every group is asked of its own shard and answered on its own.
"""

from __future__ import annotations

import asyncio

from partita.broker.groups.across_shards import when_all
from partita.broker.requests.context import Answer, RequestContext
from partita.group.requests import FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

MANY_GROUPS_FROM, BY_ID_FROM, TOP_LEVEL_ERROR_FROM = 8, 10, 2


def handle(ctx: RequestContext, request: OffsetFetchRequest) -> Answer:
    """Answer the one group of versions up to 7, or the list of groups of later ones."""
    if ctx.version >= MANY_GROUPS_FROM:
        parts = [_fetch(ctx, group, request.require_stable) for group in request.groups]
        return when_all(parts, lambda groups: OffsetFetchResponse(groups=groups))
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics],
    )
    part = _fetch(ctx, group, request.require_stable)
    return when_all([part], lambda groups: _single(ctx, request, groups[0]))


Part = OffsetFetchResponseGroup | asyncio.Future[OffsetFetchResponseGroup]


def _fetch(ctx: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool) -> Part:
    unknown: list[OffsetFetchResponseTopics] = []
    if ctx.version >= BY_ID_FROM and group.topics is not None:
        group.topics = [topic for topic in group.topics if _has_name(ctx, topic, unknown)]
    part: Part = ctx.groups.ask(ctx, FetchOffsets(group, require_stable=require_stable), group.group_id)
    if ctx.version < BY_ID_FROM:
        return part
    named = when_all([part], lambda groups: _with_ids(ctx, groups[0], unknown))
    return named if isinstance(named, OffsetFetchResponseGroup) else asyncio.ensure_future(named)


def _has_name(ctx: RequestContext, asked: OffsetFetchRequestTopics, unknown: list[OffsetFetchResponseTopics]) -> bool:
    topic = ctx.catalogue.by_id.get(asked.topic_id)
    if topic is not None:
        asked.name = topic.name
        return True
    unknown.append(
        OffsetFetchResponseTopics(
            topic_id=asked.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                for index in asked.partition_indexes
            ],
        )
    )
    return False


def _with_ids(
    ctx: RequestContext, group: OffsetFetchResponseGroup, unknown: list[OffsetFetchResponseTopics]
) -> OffsetFetchResponseGroup:
    """Topics by id; one that is gone from the catalogue has none and is left out."""
    if group.error_code:
        return group
    found = []
    for answered in group.topics:
        topic = ctx.catalogue.get(answered.name)
        if topic is not None:
            answered.topic_id = topic.topic_id
            found.append(answered)
    group.topics = found + unknown
    return group


def _single(ctx: RequestContext, request: OffsetFetchRequest, group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The answer of the versions that ask for one group; version 1 has no place for an error but the partitions."""
    if group.error_code and ctx.version >= TOP_LEVEL_ERROR_FROM:
        return OffsetFetchResponse(error_code=group.error_code)
    if group.error_code:
        topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=group.error_code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
        return OffsetFetchResponse(topics=topics)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=p.partition_index,
                        committed_offset=p.committed_offset,
                        committed_leader_epoch=p.committed_leader_epoch,
                        metadata=p.metadata,
                        error_code=p.error_code,
                    )
                    for p in topic.partitions
                ],
            )
            for topic in group.topics
        ]
    )
