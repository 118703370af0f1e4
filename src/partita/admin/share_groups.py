"""Share groups (KIP-932): members, start offsets with their lag, and new start offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from partita.admin.asking import ask_about_group, ask_coordinator, check_group, coordinator_of
from partita.admin.offsets import TopicPartition
from partita.admin.results import GroupDescription, MemberDescription, raise_failures
from partita.errors import error_for
from partita.net.cluster import Cluster
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareOffsetsPartition,
    AlterShareOffsetsTopic,
)
from partita.protocol.messages.describe_share_group_offsets import (
    DescribedShareOffsetsGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareOffsetsGroup,
)
from partita.protocol.messages.share_group_describe import (
    DescribedShareGroup,
    DescribedShareGroupMember,
    ShareGroupDescribeRequest,
)

SHARE = "share"
"""The type of a share group."""


class ShareOffset(NamedTuple):
    """Start offset of a share partition, and how many records from there are not done; None: not known (yet)."""

    start: int | None
    lag: int | None


async def describe(cluster: Cluster, group_id: str) -> GroupDescription | None:
    """Describe a share group; None if there is none of this name, or the brokers serve none."""
    group: DescribedShareGroup | None = await ask_about_group(
        cluster, group_id, ShareGroupDescribeRequest(group_ids=[group_id])
    )
    if group is None:
        return None
    return GroupDescription(
        group.group_id,
        group.group_state,
        SHARE,
        group.assignor_name,
        await coordinator_of(cluster, group_id),
        sorted(map(_member, group.members), key=lambda member: (member.client_id, member.member_id)),
        type=SHARE,
        epoch=group.group_epoch,
    )


def _member(member: DescribedShareGroupMember) -> MemberDescription:
    topics = sorted(member.assignment.topic_partitions, key=lambda topic: topic.topic_name)
    return MemberDescription(
        member.member_id,
        None,
        member.client_id,
        member.client_host,
        {topic.topic_name: sorted(topic.partitions) for topic in topics},
        type=SHARE,
        epoch=member.member_epoch,
    )


async def offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Return where each share partition of the group begins, in order."""
    request = DescribeShareGroupOffsetsRequest(groups=[DescribeShareOffsetsGroup(group_id=group_id, topics=None)])
    answer = await ask_coordinator(cluster, group_id, request, lambda a: [g.error_code for g in a.groups])
    (group,) = answer.groups
    check_group(group_id, group.error_code, group.error_message)
    return offsets_in(group)


def offsets_in(group: DescribedShareOffsetsGroup) -> dict[TopicPartition, ShareOffset]:
    """Return where each share partition of an answer begins; nothing is known of those with an error."""
    found = {
        (topic.topic_name, part.partition_index): ShareOffset(
            *(_known(number) if not part.error_code else None for number in (part.start_offset, part.lag))
        )
        for topic in group.topics
        for part in topic.partitions
    }
    return dict(sorted(found.items()))


def _known(number: int) -> int | None:
    return number if number >= 0 else None


async def alter(cluster: Cluster, group_id: str, new: Mapping[TopicPartition, int]) -> None:
    """Begin share partitions anew at these offsets: what was delivered or done there is forgotten.

    Raises NonEmptyGroupError while the group has members.
    """
    topics: dict[str, AlterShareOffsetsTopic] = {}
    for (topic, partition), offset in sorted(new.items()):
        part = AlterShareOffsetsPartition(partition_index=partition, start_offset=offset)
        topics.setdefault(topic, AlterShareOffsetsTopic(topic_name=topic)).partitions.append(part)
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=list(topics.values()))
    answer = await ask_coordinator(cluster, group_id, request, lambda a: [a.error_code])
    check_group(group_id, answer.error_code, answer.error_message)
    failures = {
        f"{topic.topic_name}-{part.partition_index}": error_for(
            part.error_code,
            f"group {group_id!r}, {topic.topic_name}-{part.partition_index}: "
            f"{part.error_message or ErrorCode(part.error_code).meaning}",
        )
        for topic in answer.responses
        for part in topic.partitions
        if part.error_code
    }
    raise_failures(failures, len(new))
