"""One request for many things: groups of one coordinator, offsets of one leader, options of many topics.

Each call asks one node and raises KafkaError if that node cannot answer; what the node refuses for single groups or
partitions is part of the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from partita.assignors.payloads import decode_assignment
from partita.errors import KafkaError
from partita.net.cluster import Cluster
from partita.net.errors import Disconnected
from partita.observe.seen import GroupSeen, MemberSeen, TopicPartition, TransactionSeen
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedConsumerGroup,
)
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from partita.protocol.messages.describe_transactions import DescribeTransactionsRequest
from partita.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.list_transactions import ListTransactionsRequest
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from partita.protocol.primitives import MalformedRequest, Message, Request

ANSWER_WITHIN_S = 5.0
GROUPS_PER_REQUEST = 500
PARTITIONS_PER_REQUEST = 5_000
MANY_GROUPS_FROM, NAMES_UP_TO = 8, 9
"""OffsetFetch takes several groups from version 8 on, and names of topics up to version 9."""
LATEST, OLDEST = -1, 0
"""Timestamps of ListOffsets: the log's end, and any time at all, which finds the oldest record with its time."""
METADATA_SHOWN = 200
_TOPIC = 2
T = TypeVar("T")
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed offset as the coordinator reports it."""

    topic: str
    partition: int
    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class Position:
    """One answer of ListOffsets; `error` is Kafka's name of the error."""

    offset: int
    timestamp: int
    error: str | None = None


def error_name(code: int) -> str:
    """Kafka's name of an error code."""
    return ErrorCode(code).name


async def ask(cluster: Cluster, node: int, request: Request[R], max_version: int | None = None) -> R:
    """One attempt at one node. Raises KafkaError, also when the answer takes too long."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return await cluster.request(node, request, max_version=max_version)
    except TimeoutError:
        raise Disconnected(f"node {node} did not answer within {ANSWER_WITHIN_S:g} s") from None


def chunks(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The things in order, at most `size` at a time."""
    return (things[start : start + size] for start in range(0, len(things), size))


async def groups_of(cluster: Cluster, node: int) -> list[ListedGroup]:
    """The groups that a node coordinates."""
    answer = await ask(cluster, node, ListGroupsRequest())
    if answer.error_code:
        raise KafkaError(f"node {node} cannot list its groups: {error_name(answer.error_code)}")
    return answer.groups


async def describe_classic(cluster: Cluster, node: int, group_ids: Sequence[str]) -> dict[str, GroupSeen]:
    """Classic groups of one coordinator, without their commits."""
    found = {}
    for some in chunks(group_ids, GROUPS_PER_REQUEST):
        answer = await ask(cluster, node, DescribeGroupsRequest(groups=list(some)))
        found.update({group.group_id: _classic(node, group) for group in answer.groups})
    return found


def _classic(node: int, group: DescribedGroup) -> GroupSeen:
    return GroupSeen(
        group.group_id,
        group.group_state,
        "classic",
        group.protocol_type,
        group.protocol_data,
        node,
        tuple(sorted(map(_member, group.members), key=lambda m: (m.client_id, m.member_id))),
        error=error_name(group.error_code) if group.error_code else None,
    )


def _member(member: DescribedGroupMember) -> MemberSeen:
    try:
        partitions, _ = decode_assignment(member.member_assignment)
    except MalformedRequest:
        partitions = []
    held = tuple(sorted((str(topic), int(partition)) for topic, partition in partitions))
    return MemberSeen(member.member_id, member.client_id, member.client_host, member.group_instance_id, held)


async def describe_consumer(cluster: Cluster, node: int, group_ids: Sequence[str]) -> dict[str, GroupSeen]:
    """Groups of the consumer protocol (KIP-848) of one coordinator, without their commits."""
    found = {}
    for some in chunks(group_ids, GROUPS_PER_REQUEST):
        answer = await ask(cluster, node, ConsumerGroupDescribeRequest(group_ids=list(some)))
        found.update({group.group_id: _consumer(node, group) for group in answer.groups})
    return found


def _consumer(node: int, group: DescribedConsumerGroup) -> GroupSeen:
    members = tuple(
        MemberSeen(
            member.member_id,
            member.client_id,
            member.client_host,
            member.instance_id,
            tuple(sorted((t.topic_name, p) for t in member.assignment.topic_partitions for p in t.partitions)),
            member.member_epoch,
        )
        for member in sorted(group.members, key=lambda m: (m.client_id, m.member_id))
    )
    error = error_name(group.error_code) if group.error_code else None
    return GroupSeen(
        group.group_id, group.group_state, "consumer", "consumer", group.assignor_name, node, members,
        epoch=group.group_epoch, error=error,
    )  # fmt: skip


async def commits_of(cluster: Cluster, node: int, group_ids: Sequence[str]) -> dict[str, list[Committed] | str]:
    """Return the committed offsets of groups of one coordinator; for a refused group the error's name."""
    connection = await cluster.connection(node)
    many = connection.version_for(OffsetFetchRequest(), NAMES_UP_TO) >= MANY_GROUPS_FROM
    found: dict[str, list[Committed] | str] = {}
    for some in chunks(group_ids, GROUPS_PER_REQUEST if many else 1):
        wanted = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in some]
        request = OffsetFetchRequest(groups=wanted, group_id=some[0], topics=None)
        answer = await ask(cluster, node, request, NAMES_UP_TO)
        if many:
            for group in answer.groups:
                parts = [(topic.name, part) for topic in group.topics for part in topic.partitions]
                found[group.group_id] = _committed(group.error_code, parts)
        else:
            old = [(topic.name, part) for topic in answer.topics for part in topic.partitions]
            found[some[0]] = _committed(answer.error_code, old)
    return found


def _committed(
    code: int, parts: Iterable[tuple[str, OffsetFetchResponsePartitions | OffsetFetchResponsePartition]]
) -> list[Committed] | str:
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return []
    if code:
        return error_name(code)
    return [
        Committed(name, part.partition_index, part.committed_offset, (part.metadata or "")[:METADATA_SHOWN])
        for name, part in sorted(parts, key=lambda pair: (pair[0], pair[1].partition_index))
        if part.committed_offset >= 0 and not part.error_code
    ]


async def positions_at(
    cluster: Cluster, node: int, partitions: Sequence[TopicPartition], timestamp: int
) -> dict[TopicPartition, Position]:
    """The offsets of partitions that one node leads."""
    found = {}
    for some in chunks(partitions, PARTITIONS_PER_REQUEST):
        topics: dict[str, ListOffsetsTopic] = {}
        for topic, partition in some:
            part = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(part)
        request = ListOffsetsRequest(
            replica_id=-1, topics=list(topics.values()), timeout_ms=int(ANSWER_WITHIN_S * 1000)
        )
        answer = await ask(cluster, node, request)
        for told in answer.topics:
            for p in told.partitions:
                error = error_name(p.error_code) if p.error_code else None
                found[told.name, p.partition_index] = Position(p.offset, p.timestamp, error)
    return found


async def retention_of(cluster: Cluster, topics: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """`retention.ms` and `cleanup.policy` of topics; those that are refused are left out."""
    names = ["retention.ms", "cleanup.policy"]
    found: dict[str, dict[str, str | None]] = {}
    for some in chunks(topics, GROUPS_PER_REQUEST):
        resources = [
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=names) for name in some
        ]
        async with asyncio.timeout(ANSWER_WITHIN_S):
            answer = await cluster.request(None, DescribeConfigsRequest(resources=resources))
        for result in answer.results:
            if not result.error_code:
                found[result.resource_name] = {entry.name: entry.value for entry in result.configs}
    return found


async def transactions_of(cluster: Cluster, node: int) -> list[TransactionSeen]:
    """The transactional ids that a node coordinates. Raises VersionMismatch where brokers do not serve the question."""
    listed = await ask(cluster, node, ListTransactionsRequest())
    if listed.error_code:
        raise KafkaError(f"node {node} cannot list its transactions: {error_name(listed.error_code)}")
    found = []
    ids = [transaction.transactional_id for transaction in listed.transaction_states]
    for some in chunks(ids, GROUPS_PER_REQUEST):
        answer = await ask(cluster, node, DescribeTransactionsRequest(transactional_ids=list(some)))
        for told in answer.transaction_states:
            seen = TransactionSeen(
                told.transactional_id,
                node,
                told.transaction_state,
                told.producer_id,
                told.producer_epoch,
                told.transaction_timeout_ms,
                told.transaction_start_time_ms if told.transaction_start_time_ms >= 0 else None,
                tuple(sorted((topic.topic, part) for topic in told.topics for part in topic.partitions)),
            )
            found.append(replace(seen, error=error_name(told.error_code)) if told.error_code else seen)
    return found


async def each_node(nodes: Iterable[int], call: Callable[[int], Awaitable[T]]) -> dict[int, T | KafkaError]:
    """Ask all nodes at the same time; a node that fails gives its error."""
    numbers = list(nodes)
    answers = await asyncio.gather(*(call(node) for node in numbers), return_exceptions=True)
    found: dict[int, T | KafkaError] = {}
    for node, answer in zip(numbers, answers, strict=True):
        if isinstance(answer, BaseException) and not isinstance(answer, KafkaError):
            raise answer
        found[node] = answer
    return found
