"""Streams groups (KIP-1071): topology, members with their tasks, and the partitions that these read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partita.admin.asking import ask_about_group, coordinator_of
from partita.admin.results import (
    GroupDescription,
    MemberDescription,
    SubtopologyDescription,
    TasksDescription,
)
from partita.net.cluster import Cluster
from partita.protocol.messages.streams_group_describe import (
    StreamsDescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsMember,
    StreamsTaskIds,
)
from partita.protocol.metadata_view import TopicView

STREAMS = "streams"
"""The type of a streams group."""


async def describe(cluster: Cluster, group_id: str) -> GroupDescription | None:
    """Describe a streams group; None if there is none of this name, or the brokers serve none."""
    group: StreamsDescribedGroup | None = await ask_about_group(
        cluster, group_id, StreamsGroupDescribeRequest(group_ids=[group_id])
    )
    if group is None:
        return None
    topology = topology_of(group)
    topics = await cluster.topics({topic for sub in topology for topic in sub.source_topics})
    members = sorted(group.members, key=lambda member: (member.client_id, member.member_id))
    return GroupDescription(
        group.group_id,
        group.group_state,
        STREAMS,
        "",
        await coordinator_of(cluster, group_id),
        [_member(member, topology, topics) for member in members],
        type=STREAMS,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology_epoch=None if group.topology is None else group.topology.epoch,
        topology=topology,
    )


def _member(
    member: StreamsMember, topology: Sequence[SubtopologyDescription], topics: Mapping[str, TopicView]
) -> MemberDescription:
    tasks = tasks_of(member)
    target = _by_subtopology(member.target_assignment.active_tasks)
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        read_by(tasks.active, topology, topics),
        type=STREAMS,
        epoch=member.member_epoch,
        target=read_by(target, topology, topics),
        tasks=tasks,
    )


def topology_of(group: StreamsDescribedGroup) -> list[SubtopologyDescription]:
    """The subtopologies in order; none of a group that was never sent a topology."""
    subs = () if group.topology is None else group.topology.subtopologies or ()
    return [
        SubtopologyDescription(
            sub.subtopology_id,
            [*sub.source_topics, *(topic.name for topic in sub.repartition_source_topics)],
            list(sub.repartition_sink_topics),
            [topic.name for topic in sub.state_changelog_topics],
        )
        for sub in subs
    ]


def tasks_of(member: StreamsMember) -> TasksDescription:
    """The tasks that a member has."""
    end, held = member.user_endpoint, member.assignment
    return TasksDescription(
        member.process_id,
        None if end is None else f"{end.host}:{end.port}",
        *map(_by_subtopology, (held.active_tasks, held.standby_tasks, held.warmup_tasks)),
    )


def _by_subtopology(tasks: Sequence[StreamsTaskIds]) -> dict[str, list[int]]:
    found = {each.subtopology_id: sorted(each.partitions) for each in tasks}
    return dict(sorted(found.items()))


def read_by(
    active: Mapping[str, Sequence[int]], topology: Sequence[SubtopologyDescription], topics: Mapping[str, TopicView]
) -> dict[str, list[int]]:
    """The partitions that active tasks read: those of their number, in each source topic that has so many."""
    found = {
        topic: [number for number in active.get(sub.subtopology_id, ()) if number < len(topics[topic].partitions)]
        for sub in topology
        for topic in sub.source_topics
        if topic in topics
    }
    return {topic: numbers for topic, numbers in sorted(found.items()) if numbers}
