"""OffsetFetch: one group (up to version 7) or many; topics by name, from version 10 by id. (Kafka: KafkaApis.)

Every group is asked of its own shard and answered on its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import SLICE, Steps, answered, paced, sliced
from partita.group.offsets.fetch import told
from partita.group.requests import FetchOffsets, OffsetsFound
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
    """Answer the one group of versions up to 7, or the list of groups of later ones.

    Many groups, or many partitions of one, are answered in slices; each group as it was at one instant. What is named
    repeatedly is answered once, so that a small request makes no huge answer in memory.
    """
    return answered(ctx, _answer(ctx, request))


def _answer(ctx: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    if ctx.version >= MANY_GROUPS_FROM:
        groups = []
        wanted = yield from paced(ctx, _once(request.groups))
        for asked, others_turn in sliced(wanted, ctx.stopwatch):
            if others_turn:
                yield None
            groups.append((yield from _fetch(ctx, asked, request.require_stable)))
        return OffsetFetchResponse(groups=groups)
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics],
    )
    (once,) = yield from paced(ctx, _once([group]))
    found = yield from _fetch(ctx, once, request.require_stable)
    return (yield from paced(ctx, _single(ctx, request, found)))


def _once(groups: list[OffsetFetchRequestGroup]) -> Generator[None, None, list[OffsetFetchRequestGroup]]:
    """The groups asked about by the same member, their topics and partitions, each once."""
    found: dict[tuple[str, str | None, int, bool], OffsetFetchRequestGroup] = {}
    wanted: dict[tuple[str, str | None, int, bool], dict[tuple[str, bytes], dict[int, None]]] = {}
    for group in groups:
        key = (group.group_id, group.member_id, group.member_epoch, group.topics is None)
        found.setdefault(key, group)
        topics = wanted.setdefault(key, {})
        yield
        for topic in group.topics or ():
            indexes = topics.setdefault((topic.name, topic.topic_id), {})
            for start in range(0, len(topic.partition_indexes), SLICE):
                indexes.update(dict.fromkeys(topic.partition_indexes[start : start + SLICE]))
                yield
    for key, group in found.items():
        if group.topics is not None:
            group.topics = []
            for (name, topic_id), indexes in wanted[key].items():
                topic = OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(indexes))
                group.topics.append(topic)
                yield
    return list(found.values())


def _fetch(
    ctx: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    unknown: list[OffsetFetchResponseTopics] = []
    if ctx.version >= BY_ID_FROM and group.topics is not None:
        yield from paced(ctx, _name_topics(ctx, group, group.topics, unknown))
    ask = FetchOffsets(group, require_stable=require_stable, at_once_max=SLICE)
    found = ctx.groups.ask(ctx, ask, group.group_id)
    if isinstance(found, asyncio.Future):
        found = yield found
    if isinstance(found, OffsetsFound):
        found = yield from paced(ctx, told(group, found))
    assert isinstance(found, OffsetFetchResponseGroup), "that is the answer to a FetchOffsets"
    return found if ctx.version < BY_ID_FROM else _with_ids(ctx, found, unknown)


def _name_topics(
    ctx: RequestContext,
    group: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopics],
    unknown: list[OffsetFetchResponseTopics],
) -> Generator[None, None, None]:
    """Give the topics their names; those that have none are answered in `unknown`."""
    group.topics = []
    for asked in topics:
        topic = ctx.catalogue.by_id.get(asked.topic_id)
        if topic is not None:
            asked.name = topic.name
            group.topics.append(asked)
            continue
        parts: list[OffsetFetchResponsePartitions] = []
        unknown.append(OffsetFetchResponseTopics(topic_id=asked.topic_id, partitions=parts))
        for index in asked.partition_indexes:
            parts.append(
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
            )
            yield


def _with_ids(
    ctx: RequestContext, group: OffsetFetchResponseGroup, unknown: list[OffsetFetchResponseTopics]
) -> OffsetFetchResponseGroup:
    """Topics by id; one that is gone from the catalogue has none and is left out."""
    if group.error_code:
        return group
    found = []
    for told_topic in group.topics:
        topic = ctx.catalogue.get(told_topic.name)
        if topic is not None:
            told_topic.topic_id = topic.topic_id
            found.append(told_topic)
    group.topics = found + unknown
    return group


def _single(
    ctx: RequestContext, request: OffsetFetchRequest, group: OffsetFetchResponseGroup
) -> Generator[None, None, OffsetFetchResponse]:
    """The answer of the versions that ask for one group; version 1 has no place for an error but the partitions."""
    if group.error_code and ctx.version >= TOP_LEVEL_ERROR_FROM:
        return OffsetFetchResponse(error_code=group.error_code)
    response = OffsetFetchResponse()
    for asked in request.topics or () if group.error_code else ():
        refused: list[OffsetFetchResponsePartition] = []
        response.topics.append(OffsetFetchResponseTopic(name=asked.name, partitions=refused))
        for index in asked.partition_indexes:
            refused.append(
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=group.error_code
                )
            )
            yield
    for topic in group.topics:
        parts: list[OffsetFetchResponsePartition] = []
        response.topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=parts))
        for p in topic.partitions:
            parts.append(
                OffsetFetchResponsePartition(
                    partition_index=p.partition_index,
                    committed_offset=p.committed_offset,
                    committed_leader_epoch=p.committed_leader_epoch,
                    metadata=p.metadata,
                    error_code=p.error_code,
                )
            )
            yield
    return response
