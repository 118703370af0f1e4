"""DescribeShareGroupOffsets: where share partitions of groups stand, and how far behind the end of their logs.

(Kafka: GroupCoordinatorService.describeShareGroupOffsets, release 4.4.0.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from partita.broker.api.context import Answer, RequestContext, Steps, settled
from partita.broker.api.error_answers import error_answer
from partita.broker.api.features import serves_share_groups
from partita.broker.api.needs import InHandler, NeedsEach
from partita.broker.api.served import Served
from partita.broker.topics.catalogue import Topic
from partita.group.requests import FindSharedTopics, SharedTopicsFound
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_share_group_offsets import (
    DescribedShareOffsetsGroup,
    DescribedShareOffsetsPartition,
    DescribedShareOffsetsTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareOffsetsGroup,
)
from partita.security.rights.operations import Operation, ResourceType
from partita.share.coordinator.model import ShareKey
from partita.share.coordinator.requests import Outcome, Summarize

API = Served(
    DescribeShareGroupOffsetsRequest,
    rights=(
        NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "groups", "groups", "group_id"),
        InHandler("DESCRIBE on each TOPIC", "named: TOPIC_AUTHORIZATION_FAILED; all: left out"),
    ),
)

_UNKNOWN = -1


def handle(ctx: RequestContext, request: DescribeShareGroupOffsetsRequest) -> Answer | Steps[Answer]:
    """Answer each group by itself; null topics are all that have state.

    Deviation: Partita answers the error of a state that cannot be read, where Kafka's answer looks as if nothing had
    been read. A partition that does not exist is answered at once, where Kafka's answer takes half a minute.
    """
    if not serves_share_groups(ctx.config):
        return error_answer(ctx.api_key, ctx.version, request, int(ErrorCode.UNSUPPORTED_VERSION))
    return _answered(ctx, request)


def _answered(ctx: RequestContext, request: DescribeShareGroupOffsetsRequest) -> Steps[Answer]:
    groups = []
    for group in request.groups:
        yield None
        found: SharedTopicsFound = yield from settled(
            ctx.groups.ask(ctx, FindSharedTopics(group.group_id), group.group_id)
        )
        if found.error_code:
            groups.append(DescribedShareOffsetsGroup(group_id=group.group_id, error_code=found.error_code))
        else:
            groups.append((yield from _group(ctx, group, found)))
    return DescribeShareGroupOffsetsResponse(groups=groups)


def _group(
    ctx: RequestContext, group: DescribeShareOffsetsGroup, found: SharedTopicsFound
) -> Steps[DescribedShareOffsetsGroup]:
    known = {topic.name: topic for topic_id in found.topics if (topic := ctx.catalogue.by_id.get(topic_id)) is not None}
    asked: list[tuple[str, Iterable[int]]]
    if group.topics is None:
        asked = [(name, sorted(found.topics[topic.topic_id])) for name, topic in sorted(known.items())]
    else:
        asked = [(topic.topic_name, topic.partitions) for topic in group.topics]
    allowed = _allowed(ctx, [name for name, _ in asked])
    topics = []
    for name, numbers in asked:
        yield None
        if name not in allowed:
            if group.topics is not None:
                topics.append(_refused(name, numbers))
        else:
            topics.append((yield from _topic(ctx, group.group_id, name, numbers, known.get(name), found)))
    return DescribedShareOffsetsGroup(group_id=group.group_id, topics=topics)


def _allowed(ctx: RequestContext, names: list[str]) -> Iterable[str]:
    asking = ctx.asking
    return names if asking is None else asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, names)


def _topic(
    ctx: RequestContext, group_id: str, name: str, numbers: Iterable[int], topic: Topic | None, found: SharedTopicsFound
) -> Steps[DescribedShareOffsetsTopic]:
    rows = []
    named = topic or ctx.catalogue.get(name)
    for number in numbers:
        yield None
        row = DescribedShareOffsetsPartition(partition_index=number, start_offset=_UNKNOWN)
        rows.append(row)
        if topic is not None and number in found.topics[topic.topic_id]:
            summary = ctx.share_states.ask(Summarize(ShareKey(group_id, topic.topic_id, number)))
            _fill(row, (yield from settled(summary)), topic)
    answer = DescribedShareOffsetsTopic(topic_name=name, partitions=rows)
    if named is not None:
        answer.topic_id = named.topic_id
    return answer


def _fill(row: DescribedShareOffsetsPartition, outcome: Outcome, topic: Topic) -> None:
    """The lag counts what is neither acknowledged nor given up; it is unknown before the first record is."""
    state = outcome.state
    if outcome.code or state is None:
        row.error_code, row.error_message = int(outcome.code), outcome.message
        return
    row.start_offset, row.leader_epoch = state.start_offset, state.leader_epoch
    partition = topic.partition(row.partition_index)
    if partition is not None and state.start_offset >= 0 and state.completed >= 0:
        end = 0 if partition.is_untouched else partition.log.high_watermark
        row.lag = max(0, end - state.start_offset - state.completed)


def _refused(name: str, numbers: Iterable[int]) -> DescribedShareOffsetsTopic:
    code: Any = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = [
        DescribedShareOffsetsPartition(
            partition_index=number, start_offset=_UNKNOWN, error_code=code, error_message=code.meaning
        )
        for number in numbers
    ]
    return DescribedShareOffsetsTopic(topic_name=name, partitions=rows)
