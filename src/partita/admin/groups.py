"""Consumer groups: list, describe, lag, delete; their offsets: read, write, delete.

Names travel, not topic ids, so that groups of any broker can be worked on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from partita.admin import share_groups, streams_groups
from partita.admin.asking import Connected, ask_about_group, ask_coordinator, check_group, coordinator_of
from partita.admin.missing_rights import needs
from partita.admin.offsets import TopicPartition, list_offsets
from partita.admin.results import (
    CommittedOffset,
    GroupDescription,
    GroupListing,
    MemberDescription,
    PartitionLag,
    raise_failures,
)
from partita.admin.topics import names_of
from partita.assignors.payloads import decode_assignment
from partita.errors import KafkaError, UnknownTopicOrPartitionError, error_for
from partita.net.cluster import Cluster
from partita.offsets import committable
from partita.offsets.topic_partition import OffsetAndMetadata
from partita.options import one_of
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
)
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
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
from partita.protocol.primitives import MalformedRequest

NAMES_UP_TO = 9
"""OffsetCommit and OffsetFetch name topics up to this version, later ones by id only."""
MANY_GROUPS_FROM = 8
PROTOCOL_TYPE = "consumer"
CLASSIC_MEMBER = 0
"""The type of a member that speaks the classic protocol, in the answer to ConsumerGroupDescribe."""
STATES = (
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady", "Dead",
    "Unknown",
)  # fmt: skip
"""The states of all types of groups. (Kafka: GroupState)"""
TYPES = ("classic", "consumer", "share", "streams")
INACTIVE_STATES = frozenset({"Empty", "Dead"})
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


async def list_groups(self: Connected, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
    """All groups of the cluster, or those in certain states ("Stable") or of certain types ("classic").

    Raises ValueError for a state or a type that no group has.
    """
    cluster = self.cluster
    request = ListGroupsRequest(
        states_filter=[one_of(STATES, state, "a state of groups") for state in names_of(states)],
        types_filter=[one_of(TYPES, kind, "a type of groups") for kind in names_of(types)],
    )
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


async def _of_several(group_ids: Iterable[str], ask: Callable[[str], Awaitable[T]]) -> dict[str, T]:
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


@needs(group="DESCRIBE")
async def describe_group(self: Connected, group_id: str) -> GroupDescription:
    """State, assignor, coordinator, and members with their partitions. Raises GroupIdNotFoundError."""
    cluster = self.cluster
    request = DescribeGroupsRequest(groups=[group_id])
    answer = await ask_coordinator(cluster, group_id, request, lambda a: [g.error_code for g in a.groups])
    (group,) = answer.groups
    # Versions before 6 answer Dead for a group that does not exist, or is not classic.
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not group.error_code and group.group_state == "Dead"):
        for describe in (_describe_consumer_group, share_groups.describe, streams_groups.describe):
            if (found := await describe(cluster, group_id)) is not None:
                return found
        raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    check_group(group_id, group.error_code, group.error_message)
    return GroupDescription(
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        await coordinator_of(cluster, group_id),
        sorted(map(_member, group.members), key=_by_client),
    )


@needs(group="DESCRIBE")
async def describe_consumer_groups(self: Connected, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
    """As `describe_group`, of several groups at once. Raises SomeFailed for those that do not exist."""
    return await _of_several(group_ids, lambda group_id: describe_group(self, group_id))


async def _describe_consumer_group(cluster: Cluster, group_id: str) -> GroupDescription | None:
    """Describe a group of the consumer protocol (KIP-848); None if there is none of this name."""
    group: DescribedConsumerGroup | None = await ask_about_group(
        cluster, group_id, ConsumerGroupDescribeRequest(group_ids=[group_id])
    )
    if group is None:
        return None
    return GroupDescription(
        group.group_id,
        group.group_state,
        PROTOCOL_TYPE,
        group.assignor_name,
        await coordinator_of(cluster, group_id),
        sorted(map(_member_by_epoch, group.members), key=_by_client),
        type="consumer",
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


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


@needs(group="DELETE")
async def delete_groups(self: Connected, group_ids: str | Iterable[str]) -> None:
    """Delete groups with all their offsets. Raises NonEmptyGroupError while they have members."""
    wanted = names_of(group_ids)
    failures: dict[str, KafkaError] = {}
    for group_id in wanted:
        request = DeleteGroupsRequest(groups_names=[group_id])
        answer = await ask_coordinator(self.cluster, group_id, request, lambda a: [r.error_code for r in a.results])
        for result in answer.results:
            if result.error_code:
                code = ErrorCode(result.error_code)
                failures[group_id] = error_for(code, f"group {group_id!r}: {code.meaning}")
    raise_failures(failures, len(wanted))


@needs(group="READ")
async def remove_members_from_consumer_group(
    self: Connected,
    group_id: str,
    *,
    instance_ids: Iterable[str] = (),
    member_ids: Iterable[str] = (),
    everyone: bool = False,
    reason: str = "removed by an administrator",
) -> None:
    """Have members leave, named by instance or member id, or `everyone`; those that still run join again.

    Raises UnknownMemberIdError, or SomeFailed, for members that the group does not have.
    """
    if everyone:
        # A static member is removed by its instance id: its member id changes when it restarts.
        present = (await describe_group(self, group_id)).members
        instance_ids = [member.group_instance_id for member in present if member.group_instance_id]
        member_ids = [member.member_id for member in present if not member.group_instance_id]
    members = [MemberIdentity(group_instance_id=name, reason=reason) for name in names_of(instance_ids)]
    members += [MemberIdentity(member_id=name, reason=reason) for name in names_of(member_ids)]
    if not members:
        return
    request = LeaveGroupRequest(group_id=group_id, members=members)
    answer = await ask_coordinator(self.cluster, group_id, request, lambda a: [a.error_code])
    check_group(group_id, answer.error_code)
    failures: dict[str, KafkaError] = {}
    for member in answer.members:
        if member.error_code:
            name = member.group_instance_id or member.member_id
            failures[name] = error_for(member.error_code, f"group {group_id!r} has no member {name!r}")
    raise_failures(failures, len(members))


@needs(group="DESCRIBE")
async def group_offsets(self: Connected, group_id: str) -> list[CommittedOffset]:
    """Return the group's committed offsets; empty for a group that does not exist."""
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], group_id=group_id, topics=None
    )
    answer = await ask_coordinator(
        # Version 8 and later answer by group, earlier ones at the top: the request fills both.
        self.cluster,
        group_id,
        request,
        lambda a: [a.error_code, *(g.error_code for g in a.groups)],
        NAMES_UP_TO,
    )
    code = ErrorCode(answer.groups[0].error_code if answer.groups else answer.error_code)
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return []
    check_group(group_id, code)
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


@needs(group="DESCRIBE")
async def list_consumer_group_offsets(self: Connected, group_ids: Iterable[str]) -> dict[str, list[CommittedOffset]]:
    """As `group_offsets`, of several groups at once."""
    return await _of_several(group_ids, lambda group_id: group_offsets(self, group_id))


@needs(group="READ", topic="READ")
async def alter_group_offsets(
    self: Connected, group_id: str, new: Mapping[TopicPartition, int | OffsetAndMetadata]
) -> None:
    """Commit offsets (the next ones to read) on behalf of a group without members, alone or with metadata.

    Raises UnknownMemberIdError while it has some.
    """
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, partition), at in sorted((committable.offsets(new) or {}).items(), key=lambda item: item[0]):
        part = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=at.offset,
            committed_leader_epoch=at.leader_epoch,
            committed_metadata=at.metadata,
        )
        topics.setdefault(topic, OffsetCommitRequestTopic(name=topic)).partitions.append(part)
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=list(topics.values())
    )
    answer = await ask_coordinator(self.cluster, group_id, request, _partition_codes, NAMES_UP_TO)
    _raise_partition_failures(group_id, answer, len(new))


@needs(group="DELETE", topic="READ")
async def delete_group_offsets(self: Connected, group_id: str, partitions: Iterable[TopicPartition]) -> None:
    """Delete committed offsets. Raises GroupSubscribedToTopicError for topics that the group is subscribed to."""
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    asked = sorted(set(partitions))
    for topic, partition in asked:
        part = OffsetDeleteRequestPartition(partition_index=partition)
        topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic)).partitions.append(part)
    request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
    answer = await ask_coordinator(self.cluster, group_id, request, lambda a: [a.error_code, *_partition_codes(a)])
    check_group(group_id, answer.error_code)
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


@needs(group="DESCRIBE", topic="DESCRIBE")
async def group_lag(self: Connected, group_id: str) -> list[PartitionLag]:
    """Lag of the group and owner, partition by partition.

    Lag is the high watermark minus the committed offset; None where nothing is committed.
    """
    committed = {(c.topic, c.partition): c.offset for c in await group_offsets(self, group_id)}
    try:
        group = await describe_group(self, group_id)
        members = group.members
        if group.type == share_groups.SHARE:
            return await _share_lag(self, group_id)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND or not committed:
            raise
        members = []
    owners = {(t, p): member for member in members for t, ps in member.assignment.items() for p in ps}
    partitions = sorted({*committed, *owners})
    ends = await _log_ends(self, partitions)
    return [_lag(key, committed.get(key), ends.get(key), owners.get(key)) for key in partitions]


async def _share_lag(admin: Connected, group_id: str) -> list[PartitionLag]:
    """Return start offsets and lag as the coordinator knows them; a partition may be with several members."""
    found = await share_groups.offsets(admin.cluster, group_id)
    ends = await _log_ends(admin, found)
    return [
        PartitionLag(*key, each.start, ends.get(key), each.lag, None, None, None, None) for key, each in found.items()
    ]


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


async def _log_ends(admin: Connected, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """High watermarks; topics deleted meanwhile are left out."""
    ends: dict[TopicPartition, int] = {}
    by_topic: dict[str, list[TopicPartition]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append((topic, partition))
    # One question for each topic, so that a deleted one does not fail the others.
    for parts in by_topic.values():
        try:
            found = await list_offsets(admin, dict.fromkeys(parts, "latest"))
        except UnknownTopicOrPartitionError:
            continue
        ends.update({key: answer.offset for key, answer in found.items()})
    return ends
