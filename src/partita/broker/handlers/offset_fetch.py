"""OffsetFetch: one group (up to version 7) or many; topics by name, from version 10 by id. (Kafka: KafkaApis.)

Every group is asked of its own shard and answered on its own; so are rights on topics looked at, entry by entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING

from partita.broker.api.context import AT_ONCE, RequestContext, Steps
from partita.broker.api.needs import LEFT_OUT_OF_ALL, REFUSED_WITH, Checked, InHandler, NeedsEach, Verdict, refused
from partita.broker.api.served import ALONE_MAX, PARTITIONS_MAX, Errors, Served
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
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    OffsetFetchRequest,
    rights=(
        Checked("DESCRIBE on each GROUP", "GROUP_AUTHORIZATION_FAILED for it"),
        InHandler("DESCRIBE on each TOPIC", LEFT_OUT_OF_ALL),
    ),
    elements_max=PARTITIONS_MAX,
    alone_max=ALONE_MAX,
    errors=Errors(fields={"committed_offset": -1, "metadata": ""}),
)

MANY_GROUPS_FROM, BY_ID_FROM, TOP_LEVEL_ERROR_FROM = 8, 10, 2


def handle(ctx: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    """Answer the one group of versions up to 7, or the list of groups of later ones.

    Many groups, or many partitions of one, are answered in slices; each group as it was at one instant. A name that is
    repeated is answered once, so that a small request makes no huge answer in memory.
    """
    if ctx.version >= MANY_GROUPS_FROM:
        groups = []
        wanted = yield from _once(request.groups)
        for asked in wanted:
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
    (once,) = yield from _once([group])
    found = yield from _fetch(ctx, once, request.require_stable)
    return (yield from _single(ctx, request, found))


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
            for index in topic.partition_indexes:
                indexes[index] = None
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
    """Return the answer about one group, limited to topics that the client may describe."""
    refused: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        yield from _take_out(ctx, group, group.topics, refused)
    ask = FetchOffsets(group, require_stable=require_stable, at_once_max=AT_ONCE)
    found = ctx.groups.ask(ctx, ask, group.group_id)
    if isinstance(found, asyncio.Future):
        found = yield found
    if isinstance(found, OffsetsFound):
        found = yield from told(group, found)
    assert isinstance(found, OffsetFetchResponseGroup), "that is the answer to a FetchOffsets"
    if found.error_code:
        return found
    if group.topics is None:
        yield from _leave_out(ctx, found)
    if ctx.version >= BY_ID_FROM:
        _give_ids(ctx, found)
    found.topics = found.topics + refused
    return found


def _take_out(
    ctx: RequestContext,
    group: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopics],
    refused: list[OffsetFetchResponseTopics],
) -> Generator[None, None, None]:
    """Give the topics their names, and move those that have none or may not be described to `refused`."""
    asking, group.topics = ctx.asking, []
    for asked in topics:
        topic = ctx.catalogue.by_id.get(asked.topic_id) if ctx.version >= BY_ID_FROM else None
        name = asked.name if ctx.version < BY_ID_FROM else None if topic is None else topic.name
        if name is not None and _may_describe(asking, name):
            asked.name = name
            group.topics.append(asked)
            yield
            continue
        code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        parts: list[OffsetFetchResponsePartitions] = []
        refused.append(OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=parts))
        for index in asked.partition_indexes:
            parts.append(
                OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=code)
            )
            yield


def _leave_out(ctx: RequestContext, group: OffsetFetchResponseGroup) -> Generator[None, None, None]:
    """Leave out the topics that may not be described, where all were asked for."""
    asking, shown = ctx.asking, []
    for topic in group.topics:
        if _may_describe(asking, topic.name):
            shown.append(topic)
        yield
    group.topics = shown


def _may_describe(asking: Asking | None, name: str) -> bool:
    return asking is None or asking.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _give_ids(ctx: RequestContext, group: OffsetFetchResponseGroup) -> None:
    """Topics by id; one that is gone from the catalogue has none and is left out."""
    found = []
    for shown in group.topics:
        topic = ctx.catalogue.get(shown.name)
        if topic is not None:
            shown.topic_id = topic.topic_id
            found.append(shown)
    group.topics = found


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


def check_rights(asking: Asking, request: OffsetFetchRequest) -> Verdict | None:
    """DESCRIBE on each group. Its topics are looked at by the handler: one group may be asked about in many ways."""
    if asking.version >= MANY_GROUPS_FROM:
        return _OFFSET_GROUPS(asking, request)
    is_allowed = asking.may(Operation.DESCRIBE, ResourceType.GROUP, request.group_id)
    return None if is_allowed else refused(asking, request, REFUSED_WITH[ResourceType.GROUP])


_OFFSET_GROUPS = NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "groups", "groups", "group_id")
