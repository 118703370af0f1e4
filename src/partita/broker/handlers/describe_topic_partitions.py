"""DescribeTopicPartitions: topics by name, a page of partitions at a time.

Upstream: DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.
"""

from __future__ import annotations

from functools import partial

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import LEFT_OUT_OF_ALL, InHandler
from partita.broker.api.served import Served
from partita.broker.handlers._operations import topic_operations
from partita.broker.handlers._partitions import described
from partita.broker.topics.catalogue import INTERNAL_TOPICS, Partition, Topic, name_problem
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_topic_partitions import (
    DescribedPartition,
    DescribedTopic,
    DescribedTopicsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(DescribeTopicPartitionsRequest, rights=(InHandler("DESCRIBE on each TOPIC", LEFT_OUT_OF_ALL),))

PAGE_MAX = 2000
"""Kafka's max.request.partition.size.limit."""


def handle(ctx: RequestContext, request: DescribeTopicPartitionsRequest) -> Steps[DescribeTopicPartitionsResponse]:
    """Topics go by name; no names ask for all. A cursor has to name one of the topics asked for.

    Named topics that may not be described are refused after those of the page, others are left out.
    """
    wanted = sorted({topic.name for topic in request.topics} or ctx.catalogue.by_name)
    first = request.cursor
    if first is not None:
        if first.partition_index < 0 or (request.topics and first.topic_name not in wanted):
            refused = [_missing(topic.name, ErrorCode.INVALID_REQUEST, 0) for topic in request.topics]
            return DescribeTopicPartitionsResponse(topics=refused)
        wanted = [name for name in wanted if name >= first.topic_name]
    hidden = yield from _hidden(ctx, wanted, are_named=bool(request.topics))
    response = yield from _page(ctx, request, [name for name in wanted if name not in hidden])
    if request.topics:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.topics += [DescribedTopic(error_code=code, name=name) for name in wanted if name in hidden]
    return response


def _hidden(ctx: RequestContext, names: list[str], *, are_named: bool) -> Steps[set[str]]:
    """Return the topics that the client may not describe."""
    asking = ctx.asking
    if asking is None:
        return set()
    describe, topic = Operation.DESCRIBE, ResourceType.TOPIC
    hidden = set()
    for name in names:
        yield None
        if not asking.may(describe, topic, name, is_logged=are_named):
            hidden.add(name)
    return hidden


def _page(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest, wanted: list[str]
) -> Steps[DescribeTopicPartitionsResponse]:
    first = request.cursor
    room = max(1, min(request.response_partition_limit, PAGE_MAX))
    response = DescribeTopicPartitionsResponse()
    for name in wanted:
        begin = first.partition_index if first is not None and first.topic_name == name else 0
        if room > 0:
            answer = yield from _topic(ctx, name, begin, begin + room)
            response.topics.append(answer)
            room -= len(answer.partitions)
            begin += len(answer.partitions)
            if begin >= _size(ctx, name):
                continue
        response.next_cursor = DescribedTopicsCursor(topic_name=name, partition_index=begin)
        break
    return response


def _size(ctx: RequestContext, name: str) -> int:
    topic = ctx.catalogue.get(name)
    return 0 if topic is None else len(topic.partitions)


def _topic(ctx: RequestContext, name: str, begin: int, end: int) -> Steps[DescribedTopic]:
    topic = ctx.catalogue.get(name)
    if topic is None:
        is_legal = name_problem(name) is None
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
        return _missing(name, code, topic_operations(ctx, name))
    return (yield from _described(ctx, topic, topic.partitions[begin:end]))


def _described(ctx: RequestContext, topic: Topic, partitions: list[Partition]) -> Steps[DescribedTopic]:
    kind = partial(DescribedPartition, eligible_leader_replicas=[], last_known_elr=[])
    return DescribedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=(yield from described(ctx, partitions, kind)),
        topic_authorized_operations=topic_operations(ctx, topic.name),
    )


def _missing(name: str, code: ErrorCode, operations: int) -> DescribedTopic:
    topic = DescribedTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)
    if operations:
        topic.topic_authorized_operations = operations
    return topic
