"""Builds responses of the group APIs, in the shape that each version requires.

`refusal` is the only place that knows the error response of each request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from partita.group.contract import GroupRequest
from partita.group.requests import (
    CommitOffsets,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    DescribeShareGroup,
    DescribeStreamsGroup,
    EndTransaction,
    FetchOffsets,
    FindSharedTopics,
    ListShardGroups,
    OffsetsRefused,
    SharedTopicsFound,
    StreamsBeat,
    TransactionEnded,
)
from partita.group.state.model import Group, Member
from partita.lazy import Lazy, later
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
    txn_offset_commit,
)
from partita.protocol.primitives import Structure

if TYPE_CHECKING:
    from partita.protocol.messages import (
        alter_share_group_offsets,
        delete_share_group_offsets,
        share_group_describe,
        share_group_heartbeat,
        streams_group_describe,
        streams_group_heartbeat,
    )
else:
    alter_share_group_offsets = later("partita.protocol.messages.alter_share_group_offsets")
    delete_share_group_offsets = later("partita.protocol.messages.delete_share_group_offsets")
    share_group_describe = later("partita.protocol.messages.share_group_describe")
    share_group_heartbeat = later("partita.protocol.messages.share_group_heartbeat")
    streams_group_describe = later("partita.protocol.messages.streams_group_describe")
    streams_group_heartbeat = later("partita.protocol.messages.streams_group_heartbeat")

NO_OFFSET = -1
_NULLABLE_PROTOCOL_NAME = 7
_SKIPS_ASSIGNMENT = 9


def join_error(error: ErrorCode, member_id: str = "", *, version: int) -> join_group.JoinGroupResponse:
    """Return a refused join; `member_id` only where the version and the error give one."""
    return join_group.JoinGroupResponse(
        error_code=error,
        generation_id=-1,
        protocol_name=None if version >= _NULLABLE_PROTOCOL_NAME else "",
        member_id=member_id,
    )


def joined(
    group: Group,
    member_id: str,
    version: int,
    members: list[join_group.JoinGroupResponseMember] | None,
    *,
    leader_id: str | None = None,
    skip_assignment: bool = False,
) -> join_group.JoinGroupResponse:
    """Return the answer of a successful join; `members` only for the group leader."""
    name = group.protocol_name
    return join_group.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=name if version >= _NULLABLE_PROTOCOL_NAME else name or "",
        leader=(group.leader_id if leader_id is None else leader_id) or "",
        skip_assignment=skip_assignment and version >= _SKIPS_ASSIGNMENT,
        member_id=member_id,
        members=members or [],
    )


def members_of(group: Group) -> list[join_group.JoinGroupResponseMember]:
    """Return every member with its metadata for the selected protocol."""
    name = group.protocol_name
    return [
        join_group.JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(name)
        )
        for member in group.members.values()
    ]


def sync_error(error: ErrorCode) -> sync_group.SyncGroupResponse:
    """Return the answer that refuses a sync with `error`."""
    return sync_group.SyncGroupResponse(error_code=error)


def synced(group: Group, member: Member) -> sync_group.SyncGroupResponse:
    """Return the member's assignment and the protocol that produced it."""
    return sync_group.SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def offset_commit_error(
    request: offset_commit.OffsetCommitRequest, error: ErrorCode
) -> offset_commit.OffsetCommitResponse:
    """Return a commit response with the error on every partition."""
    return offset_commit.OffsetCommitResponse(
        topics=[
            offset_commit.OffsetCommitResponseTopic(
                topic_id=topic.topic_id,
                name=topic.name,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_offset_commit_error(
    request: txn_offset_commit.TxnOffsetCommitRequest, error: ErrorCode
) -> txn_offset_commit.TxnOffsetCommitResponse:
    """Return a transactional commit response with the error on every partition."""
    return txn_offset_commit.TxnOffsetCommitResponse(
        topics=[
            txn_offset_commit.TxnOffsetCommitResponseTopic(
                topic_id=topic.topic_id,
                name=topic.name,
                partitions=[
                    txn_offset_commit.TxnOffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=error
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def group_offsets_error(group_id: str, error: ErrorCode) -> offset_fetch.OffsetFetchResponseGroup:
    """Return the refusal of one group's part of an OffsetFetch."""
    return offset_fetch.OffsetFetchResponseGroup(group_id=group_id, error_code=error)


def refusal(request: GroupRequest, error: ErrorCode) -> Structure:
    """Return the response that refuses the whole request with `error`."""
    message = request.message
    if isinstance(message, join_group.JoinGroupRequest):
        return join_error(error, message.member_id, version=request.version)
    refuse = _REFUSALS.get(type(message)) or _LATE_REFUSALS()[type(message)]
    return refuse(message, error)


_Refusals: TypeAlias = dict[type, Callable[[Any, ErrorCode], Structure]]
_REFUSALS: _Refusals = {
    sync_group.SyncGroupRequest: lambda _, error: sync_error(error),
    heartbeat.HeartbeatRequest: lambda _, error: heartbeat.HeartbeatResponse(error_code=error),
    leave_group.LeaveGroupRequest: lambda _, error: leave_group.LeaveGroupResponse(error_code=error),
    offset_commit.OffsetCommitRequest: offset_commit_error,
    CommitOffsets: lambda _, error: OffsetsRefused(error),
    txn_offset_commit.TxnOffsetCommitRequest: txn_offset_commit_error,
    offset_delete.OffsetDeleteRequest: lambda _, error: offset_delete.OffsetDeleteResponse(error_code=error),
    FetchOffsets: lambda ask, error: group_offsets_error(ask.group.group_id, error),
    DescribeGroup: lambda ask, error: describe_groups.DescribedGroup(error_code=error, group_id=ask.group_id),
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest: lambda _, error: (
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=error)
    ),
    DescribeConsumerGroup: lambda ask, error: consumer_group_describe.DescribedConsumerGroup(
        error_code=error, group_id=ask.group_id
    ),
    DeleteGroup: lambda ask, error: delete_groups.DeletableGroupResult(group_id=ask.group_id, error_code=error),
    ListShardGroups: lambda _, error: list_groups.ListGroupsResponse(error_code=error),
    EndTransaction: lambda _, error: TransactionEnded(error),
}


def _of_share_and_streams() -> _Refusals:
    return {
        share_group_heartbeat.ShareGroupHeartbeatRequest: lambda _, error: (
            share_group_heartbeat.ShareGroupHeartbeatResponse(error_code=error)
        ),
        streams_group_heartbeat.StreamsGroupHeartbeatRequest: lambda _, error: StreamsBeat(
            streams_group_heartbeat.StreamsGroupHeartbeatResponse(error_code=error)
        ),
        DescribeStreamsGroup: lambda ask, error: streams_group_describe.StreamsDescribedGroup(
            error_code=error, group_id=ask.group_id
        ),
        DescribeShareGroup: lambda ask, error: share_group_describe.DescribedShareGroup(
            error_code=error, group_id=ask.group_id
        ),
        alter_share_group_offsets.AlterShareGroupOffsetsRequest: lambda _, error: (
            alter_share_group_offsets.AlterShareGroupOffsetsResponse(error_code=error)
        ),
        delete_share_group_offsets.DeleteShareGroupOffsetsRequest: lambda _, error: (
            delete_share_group_offsets.DeleteShareGroupOffsetsResponse(error_code=error)
        ),
        FindSharedTopics: lambda _, error: SharedTopicsFound(error_code=error),
    }


_LATE_REFUSALS = Lazy(_of_share_and_streams)
"""Those of share and streams groups, whose messages most brokers never need."""
