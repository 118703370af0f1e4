"""Consumer groups: list, describe, lag, delete; their offsets: read, write, delete.

Names travel, not topic ids, so that groups of any broker can be worked on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from partita.admin.offsets import TopicPartition, list_offsets, timestamp_of
from partita.admin.results import (
    CommittedOffset,
    GroupDescription,
    GroupListing,
    MemberDescription,
    NodeDescription,
    PartitionLag,
    raise_failures,
)
from partita.assignors.payloads import decode_assignment
from partita.errors import KafkaError, UnknownTopicOrPartitionError, UnsupportedVersionError, error_for
from partita.net.cluster import COORDINATOR_MOVED, Cluster
from partita.net.errors import Disconnected
from partita.offsets.topic_partition import OffsetAndMetadata
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
)
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from partita.protocol.primitives import MalformedRequest, Message, Request

NAMES_UP_TO = 9
"""OffsetCommit and OffsetFetch name topics up to this version, later ones by id only."""
MANY_GROUPS_FROM = 8
PROTOCOL_TYPE = "consumer"
CLASSIC_MEMBER = 0
"""The type of a member that speaks the classic protocol, in the answer to ConsumerGroupDescribe."""
INACTIVE_STATES = frozenset({"Empty", "Dead"})
R = TypeVar("R", bound=Message)
T = TypeVar("T")


class _Partition(Protocol):
    partition_index: int
    error_code: int


P_co = TypeVar("P_co", bound=_Partition, covariant=True)


class _Topic(Protocol[P_co]):
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[P_co]: ...


class _ByPartition(Protocol[P_co]):
    """An answer with an error code for each partition (OffsetCommit, OffsetDelete)."""

    @property
    def topics(self) -> Sequence[_Topic[P_co]]: ...


async def list_groups(cluster: Cluster, states: Iterable[str], types: Iterable[str]) -> list[GroupListing]:
    """Ask every node for the groups it coordinates."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    await cluster.refresh([])

    async def of_node(node: int) -> list[GroupListing]:
        async def once() -> ListGroupsResponse:
            answer = await cluster.request(node, request)
            if answer.error_code:
                raise error_for(answer.error_code, f"node {node} cannot list its groups")
            return answer

        answer = await cluster.retry(once)
        return [
            GroupListing(g.group_id, g.group_state, g.group_type or "classic", g.protocol_type) for g in answer.groups
        ]

    found = await asyncio.gather(*map(of_node, cluster.view.nodes))
    return sorted((group for groups in found for group in groups), key=lambda group: group.group_id)


async def of_several(group_ids: Iterable[str], ask: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """Return the result of `ask` for each group, all asked at once. Raises SomeFailed when some fail."""
    ids = list(dict.fromkeys(group_ids))
    answers = await asyncio.gather(*map(ask, ids), return_exceptions=True)
    found: dict[str, T] = {}
    failures: dict[str, KafkaError] = {}
    for group_id, answer in zip(ids, answers, strict=True):
        if isinstance(answer, KafkaError):
            failures[group_id] = answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found[group_id] = answer
    raise_failures(failures, len(ids))
    return found


async def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """A group of either protocol. Raises GroupIdNotFoundError for a group that does not exist."""
    request = DescribeGroupsRequest(groups=[group_id])
    answer = await ask_coordinator(cluster, group_id, request, lambda a: [g.error_code for g in a.groups])
    (group,) = answer.groups
    # Versions before 6 answer Dead for a group that does not exist, or is not classic.
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not group.error_code and group.group_state == "Dead"):
        return await _describe_consumer_group(cluster, group_id)
    _check(group)
    return GroupDescription(
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        await _coordinator(cluster, group_id),
        sorted(map(_member, group.members), key=_by_client),
    )


async def _describe_consumer_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Describe a group that is not classic: one of the consumer protocol (KIP-848), or one that does not exist."""
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    try:
        answer = await ask_coordinator(cluster, group_id, request, lambda a: [g.error_code for g in a.groups])
    except UnsupportedVersionError:
        raise _no_such(group_id) from None
    (group,) = answer.groups
    if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        raise _no_such(group_id)
    _check(group)
    return GroupDescription(
        group.group_id,
        group.group_state,
        PROTOCOL_TYPE,
        group.assignor_name,
        await _coordinator(cluster, group_id),
        sorted(map(_member_by_epoch, group.members), key=_by_client),
        type="consumer",
        epoch=group.group_epoch,
    )


async def _coordinator(cluster: Cluster, group_id: str) -> NodeDescription:
    node = await cluster.coordinator_for(group_id)
    return NodeDescription(node.id, node.host, node.port, node.rack)


def _no_such(group_id: str) -> KafkaError:
    return error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")


def _check(group: DescribedGroup | DescribedConsumerGroup) -> None:
    code = ErrorCode(group.error_code)
    if code != ErrorCode.NONE:
        raise error_for(code, f"group {group.group_id!r}: {group.error_message or code.meaning}")


def _by_client(member: MemberDescription) -> tuple[str, str]:
    return member.client_id, member.member_id


def _member_by_epoch(member: DescribedConsumerGroupMember) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        type="classic" if member.member_type == CLASSIC_MEMBER else "consumer",
        epoch=member.member_epoch,
        target=_partitions(member.target_assignment),
    )


def _partitions(assignment: DescribedAssignment) -> dict[str, list[int]]:
    topics = sorted(assignment.topic_partitions, key=lambda topic: topic.topic_name)
    return {topic.topic_name: sorted(topic.partitions) for topic in topics}


def _member(member: DescribedGroupMember) -> MemberDescription:
    assignment: dict[str, list[int]] = {}
    try:
        partitions, _ = decode_assignment(member.member_assignment)
    # A protocol type other than "consumer" puts bytes of its own there.
    except MalformedRequest:
        partitions = []
    for topic, partition in sorted(partitions):
        assignment.setdefault(topic, []).append(partition)
    return MemberDescription(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment
    )


async def delete_groups(cluster: Cluster, group_ids: Sequence[str]) -> None:
    """Delete each group with its offsets. Raises SomeFailed when only some could be deleted."""
    failures: dict[str, KafkaError] = {}
    for group_id in group_ids:
        request = DeleteGroupsRequest(groups_names=[group_id])
        answer = await ask_coordinator(cluster, group_id, request, lambda a: [r.error_code for r in a.results])
        for result in answer.results:
            if result.error_code:
                code = ErrorCode(result.error_code)
                failures[group_id] = error_for(code, f"group {group_id!r}: {code.meaning}")
    raise_failures(failures, len(group_ids))


async def remove_members(
    cluster: Cluster, group_id: str, instance_ids: Iterable[str], member_ids: Iterable[str], reason: str
) -> None:
    """Have members leave. Raises KafkaError, or SomeFailed, for those that are not in the group."""
    members = [MemberIdentity(group_instance_id=name, reason=reason) for name in dict.fromkeys(instance_ids)]
    members += [MemberIdentity(member_id=name, reason=reason) for name in dict.fromkeys(member_ids)]
    if not members:
        return
    request = LeaveGroupRequest(group_id=group_id, members=members)
    answer = await ask_coordinator(cluster, group_id, request, lambda a: [a.error_code])
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise error_for(code, f"group {group_id!r}: {code.meaning}")
    failures: dict[str, KafkaError] = {}
    for member in answer.members:
        if member.error_code:
            name = member.group_instance_id or member.member_id
            failures[name] = error_for(member.error_code, f"group {group_id!r} has no member {name!r}")
    raise_failures(failures, len(members))


async def remove_all_members(cluster: Cluster, group_id: str, reason: str) -> None:
    """Have every present member of the group leave."""
    members = (await describe_group(cluster, group_id)).members
    # A static member is removed by its instance id: its member id changes when it restarts.
    instances = [member.group_instance_id for member in members if member.group_instance_id]
    others = [member.member_id for member in members if not member.group_instance_id]
    await remove_members(cluster, group_id, instances, others, reason)


async def committed_offsets(cluster: Cluster, group_id: str) -> list[CommittedOffset]:
    """Return all committed offsets of the group; none for a group that does not exist."""
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], group_id=group_id, topics=None
    )
    answer = await ask_coordinator(
        # Version 8 and later answer by group, earlier ones at the top: the request fills both.
        cluster,
        group_id,
        request,
        lambda a: [a.error_code, *(g.error_code for g in a.groups)],
        NAMES_UP_TO,
    )
    code = ErrorCode(answer.groups[0].error_code if answer.groups else answer.error_code)
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return []
    if code != ErrorCode.NONE:
        raise error_for(code, f"group {group_id!r}: {code.meaning}")
    parts: list[tuple[str, OffsetFetchResponsePartitions | OffsetFetchResponsePartition]] = (
        [(topic.name, part) for topic in answer.groups[0].topics for part in topic.partitions]
        if answer.groups
        else [(topic.name, part) for topic in answer.topics for part in topic.partitions]
    )
    return [
        CommittedOffset(name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata or "")
        for name, p in sorted(parts, key=lambda pair: (pair[0], pair[1].partition_index))
        if p.committed_offset >= 0 and not p.error_code
    ]


async def write_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> None:
    """Commit offsets, some of them with leader epoch and metadata, for a group that has no members."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, partition), given in sorted(offsets.items(), key=lambda item: item[0]):
        new = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        part = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=new.offset,
            committed_leader_epoch=new.leader_epoch,
            committed_metadata=new.metadata,
        )
        topics.setdefault(topic, OffsetCommitRequestTopic(name=topic)).partitions.append(part)
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=list(topics.values())
    )
    answer = await ask_coordinator(cluster, group_id, request, _partition_codes, NAMES_UP_TO)
    _raise_partition_failures(group_id, answer, len(offsets))


async def delete_offsets(cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]) -> None:
    """Forget committed offsets; the group must not be subscribed to the topics."""
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    asked = sorted(set(partitions))
    for topic, partition in asked:
        part = OffsetDeleteRequestPartition(partition_index=partition)
        topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic)).partitions.append(part)
    request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
    answer = await ask_coordinator(cluster, group_id, request, lambda a: [a.error_code, *_partition_codes(a)])
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise error_for(code, f"group {group_id!r}: {code.meaning}")
    _raise_partition_failures(group_id, answer, len(asked))


def _partition_codes(answer: _ByPartition[_Partition]) -> list[int]:
    return [part.error_code for topic in answer.topics for part in topic.partitions]


def _raise_partition_failures(group_id: str, answer: _ByPartition[_Partition], asked: int) -> None:
    failures = {
        f"{topic.name}-{p.partition_index}": error_for(
            p.error_code,
            f"group {group_id!r}, {topic.name}-{p.partition_index}: {_hint(ErrorCode(p.error_code))}",
        )
        for topic in answer.topics
        for p in topic.partitions
        if p.error_code
    }
    raise_failures(failures, asked)


def _hint(code: ErrorCode) -> str:
    if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS):
        return "the group has members; stop them first"
    return code.meaning


async def group_lag(cluster: Cluster, group_id: str) -> list[PartitionLag]:
    """Return committed offsets, log ends and owners of all partitions that are committed or assigned."""
    committed = {(c.topic, c.partition): c.offset for c in await committed_offsets(cluster, group_id)}
    try:
        members = (await describe_group(cluster, group_id)).members
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND or not committed:
            raise
        members = []
    owners = {(t, p): member for member in members for t, ps in member.assignment.items() for p in ps}
    partitions = sorted({*committed, *owners})
    ends = await _log_ends(cluster, partitions)
    return [_lag(key, committed.get(key), ends.get(key), owners.get(key)) for key in partitions]


def _lag(key: TopicPartition, committed: int | None, end: int | None, owner: MemberDescription | None) -> PartitionLag:
    return PartitionLag(
        *key,
        committed,
        end,
        None if committed is None or end is None else end - committed,
        None if owner is None else owner.member_id,
        None if owner is None else owner.group_instance_id,
        None if owner is None else owner.client_id,
        None if owner is None else owner.client_host,
    )


async def _log_ends(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """High watermarks; topics deleted meanwhile are left out."""
    latest = timestamp_of("latest")
    ends: dict[TopicPartition, int] = {}
    by_topic: dict[str, list[TopicPartition]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append((topic, partition))
    # One question for each topic, so that a deleted one does not fail the others.
    for parts in by_topic.values():
        try:
            found = await list_offsets(cluster, dict.fromkeys(parts, latest))
        except UnknownTopicOrPartitionError:
            continue
        ends.update({key: answer.offset for key, answer in found.items()})
    return ends


async def ask_coordinator(
    cluster: Cluster,
    group_id: str,
    message: Request[R],
    codes: Callable[[R], Iterable[int]],
    max_version: int | None = None,
) -> R:
    """Send to the group's coordinator; look it up again, or wait, while the answer's codes say so."""

    async def once() -> R:
        node = await cluster.coordinator_for(group_id)
        try:
            connection = await cluster.pool.connect(node.id, node.host, node.port)
            answer = await connection.send(message, max_version=max_version)
        except Disconnected:
            cluster.forget_coordinator(group_id)
            raise
        found = {ErrorCode(code) for code in codes(answer)}
        if found & COORDINATOR_MOVED:
            cluster.forget_coordinator(group_id)
        for code in found & {*COORDINATOR_MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}:
            raise error_for(code, f"coordinator of group {group_id!r}")
        return answer

    return await cluster.retry(once)
