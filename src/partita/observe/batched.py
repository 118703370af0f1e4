"""One request for many things: groups of one coordinator, offsets of one leader, options of many topics.

Each call asks one node and raises KafkaError if that node cannot answer; what the node refuses for single groups or
partitions is part of the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from partita.admin.share_groups import SHARE, offsets_in
from partita.admin.streams_groups import STREAMS, read_by, tasks_of, topology_of
from partita.assignors.payloads import decode_assignment
from partita.errors import KafkaError
from partita.net.cluster import Cluster
from partita.net.errors import Disconnected
from partita.observe.seen import GroupSeen, MemberSeen, TopicPartition, TransactionSeen
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
)
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from partita.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareOffsetsGroup,
)
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
from partita.protocol.messages.share_group_describe import (
    DescribedShareGroup,
    DescribedShareGroupMember,
    ShareGroupDescribeRequest,
)
from partita.protocol.messages.streams_group_describe import StreamsDescribedGroup, StreamsGroupDescribeRequest
from partita.protocol.metadata_view import TopicView
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
CLASSIC = "classic"
CONSUMER = "consumer"
"""The type of groups of KIP-848, and the protocol type of groups of consumers."""
T = TypeVar("T")
R = TypeVar("R", bound=Message)
Topics: TypeAlias = Mapping[str, TopicView]


class Silent(Disconnected):
    """A node that takes too long to answer."""


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed offset as the coordinator reports it."""

    topic: str
    partition: int
    offset: int
    metadata: str
    lag: int | None = None
    """As the coordinator of a share group reports it."""


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
        raise Silent(f"node {node} did not answer within {ANSWER_WITHIN_S:g} s") from None


def chunks(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The things in order, at most `size` at a time."""
    return (things[start : start + size] for start in range(0, len(things), size))


async def groups_of(cluster: Cluster, node: int) -> list[ListedGroup]:
    """The groups that a node coordinates."""
    answer = await ask(cluster, node, ListGroupsRequest())
    if answer.error_code:
        raise KafkaError(f"node {node} cannot list its groups: {error_name(answer.error_code)}")
    return answer.groups


async def describe(cluster: Cluster, node: int, kind: str, group_ids: Sequence[str]) -> dict[str, GroupSeen]:
    """Groups of one type and one coordinator, without their commits or start offsets."""
    request, seen = _DESCRIBED[kind]
    found = {}
    for some in chunks(group_ids, GROUPS_PER_REQUEST):
        answer = await ask(cluster, node, request(list(some)))
        found.update({group.group_id: seen(node, group, cluster.view.topics) for group in answer.groups})
    return found


def _classic(node: int, group: DescribedGroup, _: Topics) -> GroupSeen:
    members = tuple(sorted(map(_classic_member, group.members), key=_in_order))
    return GroupSeen(
        group.group_id, group.group_state, CLASSIC, group.protocol_type, group.protocol_data, node, members,
        error=_error_of(group),
    )  # fmt: skip


def _classic_member(member: DescribedGroupMember) -> MemberSeen:
    try:
        partitions, _ = decode_assignment(member.member_assignment)
    except MalformedRequest:
        partitions = []
    held = tuple(sorted((str(topic), int(partition)) for topic, partition in partitions))
    return MemberSeen(member.member_id, member.client_id, member.client_host, member.group_instance_id, held)


def _consumer(node: int, group: DescribedConsumerGroup, _: Topics) -> GroupSeen:
    members = [_member(member, member.instance_id, _assigned(member)) for member in group.members]
    return _by_epochs(node, group, CONSUMER, group.assignor_name, members)


def _share(node: int, group: DescribedShareGroup, _: Topics) -> GroupSeen:
    members = [_member(member, None, _assigned(member)) for member in group.members]
    return _by_epochs(node, group, SHARE, group.assignor_name, members)


def _streams(node: int, group: StreamsDescribedGroup, topics: Topics) -> GroupSeen:
    topology, members = topology_of(group), []
    for member in group.members:
        tasks = tasks_of(member)
        reads = read_by(tasks.active, topology, topics)
        partitions = tuple((topic, number) for topic, numbers in reads.items() for number in numbers)
        members.append(replace(_member(member, member.instance_id, partitions), tasks=tasks))
    return replace(_by_epochs(node, group, STREAMS, "", members), topology=tuple(topology))


def _by_epochs(node: int, group: Any, kind: str, assignor: str, members: list[MemberSeen]) -> GroupSeen:
    return GroupSeen(
        group.group_id, group.group_state, kind, kind, assignor, node, tuple(sorted(members, key=_in_order)),
        epoch=group.group_epoch, error=_error_of(group),
    )  # fmt: skip


def _member(member: Any, instance_id: str | None, partitions: tuple[TopicPartition, ...]) -> MemberSeen:
    who = (member.member_id, member.client_id, member.client_host, instance_id)
    return MemberSeen(*who, partitions, member.member_epoch)


def _assigned(member: DescribedConsumerGroupMember | DescribedShareGroupMember) -> tuple[TopicPartition, ...]:
    topics = member.assignment.topic_partitions
    return tuple(sorted((topic.topic_name, number) for topic in topics for number in topic.partitions))


def _in_order(member: MemberSeen) -> tuple[str, str]:
    return member.client_id, member.member_id


def _error_of(answer: Any) -> str | None:
    return error_name(answer.error_code) if answer.error_code else None


_DESCRIBED: Mapping[str, tuple[Callable[[list[str]], Request[Any]], Callable[[int, Any, Topics], GroupSeen]]] = {
    CLASSIC: (lambda ids: DescribeGroupsRequest(groups=ids), _classic),
    CONSUMER: (lambda ids: ConsumerGroupDescribeRequest(group_ids=ids), _consumer),
    STREAMS: (lambda ids: StreamsGroupDescribeRequest(group_ids=ids), _streams),
    SHARE: (lambda ids: ShareGroupDescribeRequest(group_ids=ids), _share),
}


async def starts_of(cluster: Cluster, node: int, group_ids: Sequence[str]) -> dict[str, list[Committed] | str]:
    """Return the start offsets of share groups of one coordinator; for a refused group the error's name."""
    found: dict[str, list[Committed] | str] = {}
    for some in chunks(group_ids, GROUPS_PER_REQUEST):
        wanted = [DescribeShareOffsetsGroup(group_id=group_id, topics=None) for group_id in some]
        answer = await ask(cluster, node, DescribeShareGroupOffsetsRequest(groups=wanted))
        for group in answer.groups:
            found[group.group_id] = (
                error_name(group.error_code)
                if group.error_code
                else [
                    Committed(*place, each.start, "", each.lag)
                    for place, each in offsets_in(group).items()
                    if each.start is not None
                ]
            )
    return found


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
                found[told.name, p.partition_index] = Position(p.offset, p.timestamp, _error_of(p))
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
                error=_error_of(told),
            )
            found.append(seen)
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
