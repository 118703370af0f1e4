"""Answers of streams groups: to a heartbeat, and to StreamsGroupDescribe.

Deviation: Partita answers a member that has an endpoint while source topics are missing or uneven with that status,
where Kafka 4.4.0 answers UNKNOWN_SERVER_ERROR.

Deviation: Partita sends a member its tasks again if it reports that it lacks some, where Kafka 4.4.0 sends them once:
if that answer is lost, they run nowhere until the next rebalance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from partita.group.consumer_group import errors
from partita.group.consumer_group.errors import Refused
from partita.group.contract import GroupRequest, Token
from partita.group.records.consumer_group import by_topic as by_subtopology
from partita.group.records.streams_group import NO_TASKS, StreamsGroup, StreamsMember, Task, Tasks
from partita.group.requests import DescribeStreamsGroup, InternalTopic, StreamsBeat
from partita.group.state.settings import in_force
from partita.group.state.topics import TopicImage
from partita.group.state.topology import Configured, Status
from partita.group.state.turn import Turn
from partita.group.streams import timers
from partita.group.streams.assignor import NAME
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import streams_group_describe as described
from partita.protocol.messages import streams_group_heartbeat as wire
from partita.protocol.messages.streams_group_log import StreamsTopicInfo

_JOIN = 0
_KNOWS_TAGS = 1


class Answer(NamedTuple):
    """One heartbeat to be answered: the member before and after it."""

    before: StreamsMember
    after: StreamsMember
    request: wire.StreamsGroupHeartbeatRequest
    version: int
    owned: Tasks | None
    """The tasks that the member reports."""
    delay: str | None
    """Why there is no new target yet."""


def beat(turn: Turn, group: StreamsGroup, asked: Answer) -> StreamsBeat:
    """Return the answer: tasks if they are new, endpoints if the member knows old ones, and what is amiss."""
    soft, member, group_id = turn.state.streams[group.group_id], asked.after, group.group_id
    is_join = asked.request.member_epoch == _JOIN
    has_changed = asked.before.held != member.held
    if asked.before.endpoint != member.endpoint or (has_changed and member.endpoint is not None):
        soft.endpoint_epoch += 1
    response = wire.StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=in_force(turn, group_id, "streams.heartbeat.interval.ms"),
        task_offset_interval_ms=in_force(turn, group_id, "streams.task.offset.interval.ms"),
        acceptable_recovery_lag=in_force(turn, group_id, "streams.acceptable.recovery.lag"),
        endpoint_information_epoch=soft.endpoint_epoch,
        status=list(_statuses(turn, group, asked)),
    )
    if is_join or has_changed or _is_missing_some(member, asked.owned):
        response.active_tasks, response.standby_tasks, response.warmup_tasks = (
            [wire.StreamsTaskIds(subtopology_id=sub, partitions=found) for sub, found in by_subtopology(tasks).items()]
            for tasks in member.held.tasks
        )
    fit = soft.fit
    assert fit is not None, "the topology was compared with the topics"
    if soft.endpoint_epoch != asked.request.endpoint_information_epoch:
        others = (each for each in group.members.values() if each.member_id != member.member_id)
        subs = fit.subtopologies or {}
        response.partitions_by_user_endpoint = [
            found for each in (*others, member) if (found := _endpoint(each, subs, turn.state.topics)) is not None
        ]
    return StreamsBeat(response, fit.missing)


def _is_missing_some(member: StreamsMember, owned: Tasks | None) -> bool:
    """Whether the member reports that it does not have all its tasks: an answer may have been lost."""
    return owned is not None and any(held - role for held, role in zip(member.held.tasks, owned, strict=True))


def _statuses(turn: Turn, group: StreamsGroup, asked: Answer) -> Iterator[wire.StreamsStatus]:
    soft, member = turn.state.streams[group.group_id], asked.after
    if member.topology_epoch < group.topology_epoch:
        text = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
            f"{group.topology_epoch}."
        )
        yield wire.StreamsStatus(status_code=Status.STALE_TOPOLOGY, status_detail=text)
    if asked.delay is not None:
        yield wire.StreamsStatus(status_code=Status.ASSIGNMENT_DELAYED, status_detail=asked.delay)
    if soft.fit is not None and soft.fit.status is not None:
        yield wire.StreamsStatus(status_code=soft.fit.status, status_detail=soft.fit.text)
    if soft.shutdown_by is not None:
        text = (
            f"Streams group member {soft.shutdown_by} encountered a fatal error and requested a shutdown for the "
            "entire application."
        )
        yield wire.StreamsStatus(status_code=Status.SHUTDOWN_APPLICATION, status_detail=text)
    tags = dict(timers.assignment_configs(turn, group.group_id)).get(timers.TAGS, "")
    missing = [tag for tag in tags.split(",") if tag and tag not in dict(member.tags)]
    if missing and asked.version >= _KNOWS_TAGS:
        text = (
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them "
            "via 'client.tag.<tagKey>' in your Streams config."
        )
        yield wire.StreamsStatus(status_code=Status.MISSING_CLIENT_TAGS, status_detail=text)


def _endpoint(
    member: StreamsMember, subs: Mapping[str, Configured], image: TopicImage
) -> wire.StreamsEndpointToPartitions | None:
    if member.endpoint is None:
        return None
    host, port = member.endpoint
    return wire.StreamsEndpointToPartitions(
        user_endpoint=wire.StreamsEndpoint(host=host, port=port),
        active_partitions=_read_by(member.held.active, subs, image),
        standby_partitions=_read_by(member.held.standby | member.held.warmup, subs, image),
    )


def _read_by(
    tasks: Iterable[Task], subs: Mapping[str, Configured], image: TopicImage
) -> list[wire.StreamsTopicPartition]:
    """Return the partitions that these tasks read."""
    found: list[wire.StreamsTopicPartition] = []
    for sub_id, numbers in by_subtopology(tasks).items():
        sub = subs.get(sub_id)
        for name in () if sub is None else (*sub.source_topics, *sub.repartition_sources):
            topic = image.get(name)
            read = [number for number in numbers if topic is not None and number < topic.partitions]
            if read:
                found.append(wire.StreamsTopicPartition(topic=name, partitions=read))
    return found


def absent(turn: Turn, group_id: str, what: str) -> Refused:
    """There is no streams group with this id; `what` is missing if there is no other group either."""
    is_other = turn.state.has_other_type(group_id) or group_id in turn.state.groups
    return errors.wrong_type("streams", group_id) if is_other else errors.group_not_found(group_id, what)


def describe_streams_group(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Describe the group; one that is absent or of another type is an error."""
    ask = request.message
    assert isinstance(ask, DescribeStreamsGroup)
    group = turn.state.streams_group(ask.group_id)
    if not ask.group_id:
        answer = described.StreamsDescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
    elif group is not None:
        answer = _described(turn, group)
    else:
        refused = absent(turn, ask.group_id, "Group")
        answer = described.StreamsDescribedGroup(
            group_id=ask.group_id, error_code=refused.error, error_message=refused.text
        )
    turn.out.answer(token, answer)


def _described(turn: Turn, group: StreamsGroup) -> described.StreamsDescribedGroup:
    return described.StreamsDescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        topology=described.StreamsTopology(epoch=group.topology_epoch, subtopologies=list(_subtopologies(turn, group))),
        members=[_member(turn, group, member) for member in group.members.values()],
    )


def _subtopologies(turn: Turn, group: StreamsGroup) -> Iterator[described.StreamsSubtopology]:
    """Yield the subtopologies with the partitions of their internal topics, where these are known."""
    fit = turn.state.streams[group.group_id].fit
    known = {} if fit is None or fit.status is not None or fit.subtopologies is None else fit.subtopologies
    subs = () if group.topology is None else group.topology.subtopologies
    for sub in sorted(subs, key=lambda sub: sub.subtopology_id):
        configured = known.get(sub.subtopology_id)
        counts = {} if configured is None else {**configured.repartition_sources, **configured.changelogs}
        yield described.StreamsSubtopology(
            subtopology_id=sub.subtopology_id,
            source_topics=sorted(sub.source_topics),
            repartition_sink_topics=sorted(sub.repartition_sink_topics),
            repartition_source_topics=_infos(sub.repartition_source_topics, counts),
            state_changelog_topics=_infos(sub.state_changelog_topics, counts),
        )


def _infos(infos: Iterable[StreamsTopicInfo], counts: Mapping[str, InternalTopic]) -> list[described.StreamsTopicInfo]:
    return [
        described.StreamsTopicInfo(
            name=info.name,
            partitions=counts[info.name].partitions if info.name in counts else info.partitions,
            replication_factor=info.replication_factor,
            topic_configs=[described.StreamsKeyValue(key=each.key, value=each.value) for each in info.topic_configs],
        )
        for info in sorted(infos, key=lambda info: info.name)
    ]


def _member(turn: Turn, group: StreamsGroup, member: StreamsMember) -> described.StreamsMember:
    offsets = turn.state.streams[group.group_id].offsets.get(member.member_id, timers.NO_OFFSETS)
    endpoint = member.endpoint
    return described.StreamsMember(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else described.StreamsEndpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[described.StreamsKeyValue(key=key, value=text) for key, text in member.tags],
        task_offsets=_offsets(offsets.now),
        task_end_offsets=_offsets(offsets.end),
        assignment=_assignment(member.held.tasks),
        target_assignment=_assignment(group.targets.get(member.member_id, NO_TASKS)),
    )


def _offsets(offsets: Mapping[Task, int]) -> list[described.StreamsTaskOffset]:
    return [
        described.StreamsTaskOffset(subtopology_id=sub, partition=number, offset=offset)
        for (sub, number), offset in sorted(offsets.items())
    ]


def _assignment(tasks: Tasks) -> described.StreamsAssignment:
    active, standby, warmup = (
        [described.StreamsTaskIds(subtopology_id=sub, partitions=found) for sub, found in by_subtopology(role).items()]
        for role in tasks
    )
    return described.StreamsAssignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
