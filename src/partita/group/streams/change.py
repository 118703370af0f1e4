"""Applies a member's join or heartbeat: topology, group epoch, target, the member's part of it, and the answer.

Records are written in Kafka's order: a static member's successor, member, topology, group epoch, targets, current
assignment. (Kafka: GroupMetadataManager.streamsGroupHeartbeat, release 4.4.0.)
"""

from __future__ import annotations

from typing import NamedTuple

from partita.group.consumer_group import conversion
from partita.group.consumer_group.errors import Refused, invalid, too_large
from partita.group.consumer_group.subscriptions import metadata_hash
from partita.group.contract import Record
from partita.group.notes import Cause, GroupEpochBumped
from partita.group.records import streams_log
from partita.group.records.streams_group import NO_EPOCH, NO_TASKS, GroupEpoch, StreamsGroup, StreamsMember, Tasks
from partita.group.requests import StreamsBeat
from partita.group.state.model import NO_DEADLINE
from partita.group.state.settings import in_force
from partita.group.state.topology import Fit, fit, required_topics
from partita.group.state.turn import Turn
from partita.group.streams import answering, timers
from partita.group.streams.reconcile import Reconciling, reconcile
from partita.group.streams.target import (
    COMPUTING,
    ComputeTasks,
    computation,
    start,
    target_records,
    why_not_yet,
    write_target,
)
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsTaskIds,
    StreamsTopology,
)
from partita.protocol.messages.streams_group_heartbeat import StreamsTopicInfo as AskedTopicInfo
from partita.protocol.messages.streams_group_log import (
    StreamsCopartitionGroup,
    StreamsGroupTopologyValue,
    StreamsSubtopology,
    StreamsTopicConfig,
    StreamsTopicInfo,
)
from partita.wording import What


class StreamsChange(NamedTuple):
    """One member of a group, before and after; epochs and tasks are those of `before`."""

    group: StreamsGroup
    before: StreamsMember
    after: StreamsMember
    wire: StreamsGroupHeartbeatRequest
    version: int
    owned: Tasks | None
    """The tasks that the member reports; None: as before."""
    replaces: StreamsMember | None = None
    """The static member whose place it takes."""

    @property
    def is_new(self) -> bool:
        """Whether the group does not have the member yet."""
        return self.after.member_id not in self.group.members


class _Looked(NamedTuple):
    """The topology as the group will have it, and how it fits the topics."""

    topology: StreamsGroupTopologyValue
    fit: Fit
    metadata_hash: int
    records: list[Record]


class _Aim(NamedTuple):
    """The target that the member follows, and its records if it is a new one. `delay` says why there is none."""

    epoch: int
    target: Tasks
    records: list[Record]
    delay: str | None = None
    work: ComputeTasks | None = None
    """To be done outside the event loop; until then the old target holds."""


class _Decided(NamedTuple):
    """The decided state of a group, before it is written. `why` is the reason for a new epoch."""

    looked: _Looked
    epoch: GroupEpoch
    why: What | None
    aim: _Aim
    member: StreamsMember
    records: list[Record]


def apply(turn: Turn, change: StreamsChange) -> StreamsBeat | Refused:
    """Decide, write, and answer. Raises InvalidTopology before anything is changed."""
    looked = _look(turn, change)
    if isinstance(looked, Refused):
        return looked
    soft = turn.state.streams[change.group.group_id]
    offsets = timers.offsets_with(soft, change.wire)
    refused = _tasks_unknown(change.wire, looked.fit)
    if refused is not None:
        return refused
    if isinstance(offsets, Refused):
        return offsets
    soft.offsets[change.after.member_id] = offsets
    decided = _decide(turn, change, looked)
    if isinstance(decided, Refused):
        if change.after.member_id not in change.group.members:
            soft.forget(change.after.member_id)
        return decided
    is_new = turn.state.streams_group(change.group.group_id) is None
    if decided.why is not None:
        member, epoch = decided.member, decided.epoch.epoch
        cause = Cause(decided.why, member.member_id, member.instance_id, member.client_id)
        turn.out.note(GroupEpochBumped(change.group.group_id, epoch, cause, turn.now.wall_ms, "streams"))
    if decided.aim.records:
        write_target(turn, change.group, decided.records)
    else:
        turn.write(decided.records)
    conversion.end_classic(turn, change.group.group_id)
    return _answered(turn, change, decided, is_new=is_new)


def _decide(turn: Turn, change: StreamsChange, looked: _Looked) -> _Decided | Refused:
    group, after = change.group, change.after
    epoch, why = group.hard, _why_bumped(turn, change, looked)
    records = [*conversion.classic_tombstone(turn, group.group_id), *_member_records(change), *looked.records]
    if why is not None:
        epoch = epoch._replace(
            epoch=group.epoch + 1,
            metadata_hash=looked.metadata_hash,
            validated_topology_epoch=NO_EPOCH if looked.fit.status is not None else looked.topology.epoch,
            configs=timers.assignment_configs(turn, group.group_id),
        )
        records.append(streams_log.epoch_record(group.group_id, epoch))
    if not group.members:
        delay_ms = in_force(turn, group.group_id, "streams.initial.rebalance.delay.ms")
        timers.delay(turn, turn.state.streams[group.group_id], delay_ms)
    aim = _aim(turn, change, looked.fit, epoch.epoch)
    member = reconcile(Reconciling(group, after, aim.epoch, aim.target, change.owned))
    if member is None:
        text = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        return Refused(ErrorCode.FENCED_MEMBER_EPOCH, text)
    records += aim.records
    if member != after:
        records.append(streams_log.assignment_record(group.group_id, member))
    return _Decided(looked, epoch, why, aim, member, records) if turn.state.fits(records) else too_large()


def _answered(turn: Turn, change: StreamsChange, decided: _Decided, *, is_new: bool) -> StreamsBeat:
    """Keep what no record holds, start the member's deadlines, and answer."""
    group, member = change.group, decided.member
    soft = turn.state.streams[group.group_id]
    soft.fit, soft.seen_version = decided.looked.fit, turn.state.topics.version
    if change.replaces is not None:
        soft.forget(change.replaces.member_id)
    timers.start_session(turn, group.group_id, member)
    timers.follow_state(turn, group.group_id, member)
    if decided.aim.work is not None:
        start(turn, decided.aim.work)
    if change.wire.shutdown_application and soft.shutdown_by is None:
        soft.shutdown_by = member.member_id
    answer = answering.Answer(change.before, member, change.wire, change.version, change.owned, decided.aim.delay)
    beat = answering.beat(turn, turn.state.hard.streams_groups[group.group_id], answer)
    if change.replaces is not None and len(group.members) == 1:
        soft.shutdown_by = None  # the group was empty between the two
    if is_new:
        # In Kafka a new group begins to count its endpoints after the first answer.
        soft.endpoint_epoch = beat.response.endpoint_information_epoch = 0
    return beat


def _member_records(change: StreamsChange) -> list[Record]:
    group_id, records = change.group.group_id, []
    if change.replaces is not None:
        old, before = change.replaces.member_id, change.before
        target = change.group.targets.get(old, NO_TASKS)
        records += streams_log.member_tombstones(group_id, old)
        records.append(streams_log.member_record(group_id, before))
        records.append(streams_log.target_record(group_id, before.member_id, target))
        records.append(streams_log.assignment_record(group_id, before))
    if change.after != change.before or (change.is_new and change.replaces is None):
        records.append(streams_log.member_record(group_id, change.after))
    return records


def _look(turn: Turn, change: StreamsChange) -> _Looked | Refused:
    """Take over the first topology, and compare it with the topics if these are others than at the last look."""
    group, asked, image = change.group, change.wire.topology, turn.state.topics
    soft = turn.state.streams[group.group_id]
    records: list[Record] = []
    topology = group.topology
    if topology is None:
        if asked is None:
            return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The topology is null and the group topology is also null.")
        topology = _stored(asked)
        records.append(streams_log.topology_record(group.group_id, topology))
    elif asked is not None and asked.epoch >= topology.epoch and _by_id(_stored(asked)) != _by_id(topology):
        return invalid("Topology updates are not supported yet.")
    if group.topology is not None and soft.fit is not None and soft.seen_version == image.version:
        return _Looked(topology, soft.fit, group.hard.metadata_hash, records)
    found = metadata_hash(image, sorted(required_topics(topology)))
    if soft.fit is not None and found == group.hard.metadata_hash and group.topology is not None:
        return _Looked(topology, soft.fit, found, records)
    return _Looked(topology, fit(topology, image), found, records)


def _why_bumped(turn: Turn, change: StreamsChange, looked: _Looked) -> What | None:
    group, before, after = change.group, change.before, change.after
    if change.is_new and change.replaces is None:
        return What.JOINED
    # A static member comes back with another address without a rebalance.
    is_static = change.wire.instance_id is not None
    if _assignment_facts(before) != _assignment_facts(after) or (before != after and not is_static):
        return What.STATIC_REPLACED if change.replaces is not None else What.SUBSCRIPTION_CHANGED
    validated = NO_EPOCH if looked.fit.status is not None else looked.topology.epoch
    if looked.metadata_hash != group.hard.metadata_hash or validated != group.hard.validated_topology_epoch:
        return What.TOPICS_CHANGED
    if timers.assignment_configs(turn, group.group_id) != group.hard.configs:
        return What.SETTINGS_CHANGED
    return None


def _assignment_facts(member: StreamsMember) -> tuple[object, ...]:
    return (member.topology_epoch, member.rack_id, member.tags, member.process_id)


def _tasks_unknown(wire: StreamsGroupHeartbeatRequest, found: Fit) -> Refused | None:
    """A member may report only tasks of the topology, once it fits."""
    if found.subtopologies is None or found.status is not None:
        return None
    listed: list[StreamsTaskIds] = []
    for tasks in (wire.active_tasks, wire.standby_tasks, wire.warmup_tasks):
        listed += tasks or ()
    for each in listed:
        sub = found.subtopologies.get(each.subtopology_id)
        if sub is None:
            return invalid(f"Subtopology {each.subtopology_id} does not exist in the topology.")
        for number in each.partitions:
            if not 0 <= number < sub.tasks:
                return invalid(
                    f"Task {number} for subtopology {each.subtopology_id} is invalid. Number of tasks for this "
                    f"subtopology: {sub.tasks}"
                )
    return None


def _aim(turn: Turn, change: StreamsChange, found: Fit, epoch: int) -> _Aim:
    """Return a new target if the group epoch is ahead of the old one, and the old one is old enough."""
    group, member_id = change.group, change.after.member_id
    if turn.state.streams[group.group_id].delayed_ms != NO_DEADLINE:
        text = "Assignment delayed due to the configured initial rebalance delay."
        return _Aim(group.assignment_epoch, NO_TASKS, [], text)
    previous = dict(group.targets)
    if change.replaces is not None:
        previous[member_id] = previous.pop(change.replaces.member_id, NO_TASKS)
    old = _Aim(group.assignment_epoch, previous.get(member_id, NO_TASKS), [])
    if epoch <= group.assignment_epoch:
        return old
    why = why_not_yet(turn, group)
    if why is not None:
        return old._replace(delay=why)
    gone = (member_id, change.replaces.member_id if change.replaces else member_id)
    members = [*(m for m in group.members.values() if m.member_id not in gone), change.after]
    work = computation(turn, group, members, found, epoch)
    if not work.is_small:
        return old._replace(delay=COMPUTING, work=work)
    targets = work.run()
    return _Aim(epoch, targets[member_id], target_records(turn, group, targets, previous, epoch))


def _stored(asked: StreamsTopology) -> StreamsGroupTopologyValue:
    """Return the topology in the form of its record."""
    return StreamsGroupTopologyValue(
        epoch=asked.epoch,
        subtopologies=[
            StreamsSubtopology(
                subtopology_id=sub.subtopology_id,
                source_topics=sub.source_topics,
                source_topic_regex=sub.source_topic_regex,
                state_changelog_topics=[_info(info) for info in sub.state_changelog_topics],
                repartition_sink_topics=sub.repartition_sink_topics,
                repartition_source_topics=[_info(info) for info in sub.repartition_source_topics],
                copartition_groups=[
                    StreamsCopartitionGroup(
                        source_topics=each.source_topics,
                        source_topic_regex=each.source_topic_regex,
                        repartition_source_topics=each.repartition_source_topics,
                    )
                    for each in sub.copartition_groups
                ],
            )
            for sub in asked.subtopologies
        ],
    )


def _info(asked: AskedTopicInfo) -> StreamsTopicInfo:
    settings = [StreamsTopicConfig(key=each.key, value=each.value) for each in asked.topic_configs]
    return StreamsTopicInfo(
        name=asked.name,
        partitions=asked.partitions,
        replication_factor=asked.replication_factor,
        topic_configs=settings,
    )


def _by_id(topology: StreamsGroupTopologyValue) -> dict[str, StreamsSubtopology]:
    return {sub.subtopology_id: sub for sub in topology.subtopologies}
