"""Records of streams groups, keys 17 and 19 to 23, as Kafka 4.4.0 writes and reads them.

Tasks are written in order of subtopology and partition. (Kafka: StreamsCoordinatorRecordHelpers and the replay methods
of GroupMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.group.contract import Record
from partita.group.records.consumer_group import by_topic as by_subtopology
from partita.group.records.consumer_group import with_epochs
from partita.group.records.log_records import EpochRecords, Kind, ignored, log_record, put_target_epoch, tombstones
from partita.group.records.streams_group import (
    GroupEpoch,
    Held,
    StreamsGroup,
    StreamsMember,
    StreamsMemberState,
    Task,
    Tasks,
)
from partita.protocol.messages import streams_group_log as log

EPOCH_KEY, MEMBER_KEY, TARGET_EPOCH_KEY, TARGET_KEY, ASSIGNMENT_KEY, TOPOLOGY_KEY = 17, 19, 20, 21, 22, 23


def member_record(group_id: str, member: StreamsMember) -> Record:
    """Return the record of what a member says of itself."""
    endpoint = (
        None if member.endpoint is None else log.StreamsEndpoint(host=member.endpoint[0], port=member.endpoint[1])
    )
    value = log.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[log.StreamsKeyValue(key=key, value=text) for key, text in member.tags],
    )
    return log_record(log.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def epoch_record(group_id: str, epoch: GroupEpoch) -> Record:
    """Return the record of the group's epoch."""
    value = log.StreamsGroupMetadataValue(
        epoch=epoch.epoch,
        metadata_hash=epoch.metadata_hash,
        validated_topology_epoch=epoch.validated_topology_epoch,
        last_assignment_configs=[log.StreamsLastAssignmentConfig(key=key, value=text) for key, text in epoch.configs],
        stored_description_topology_epoch=epoch.stored_description,
        failed_description_topology_epoch=epoch.failed_description,
    )
    return log_record(log.StreamsGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> Record:
    """Return the record of a member's target."""
    active, standby, warmup = (
        [
            log.StreamsTargetTaskIds(subtopology_id=sub, partitions=numbers)
            for sub, numbers in by_subtopology(tasks).items()
        ]
        for tasks in target
    )
    value = log.StreamsGroupTargetAssignmentMemberValue(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
    return log_record(log.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, assigned_ms: int) -> Record:
    """Return the record of the targets' epoch and the time they were computed."""
    value = log.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
    return log_record(log.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def assignment_record(group_id: str, member: StreamsMember) -> Record:
    """Return the record of a member's epochs, state and tasks."""
    held, revoking = member.held, member.revoking
    value = log.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_with_epochs(held.active),
        standby_tasks=_without_epochs(held.standby),
        warmup_tasks=_without_epochs(held.warmup),
        active_tasks_pending_revocation=_with_epochs(revoking.active),
        standby_tasks_pending_revocation=_without_epochs(revoking.standby),
        warmup_tasks_pending_revocation=_without_epochs(revoking.warmup),
    )
    return log_record(log.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def topology_record(group_id: str, topology: log.StreamsGroupTopologyValue) -> Record:
    """Return the record of the group's topology."""
    return log_record(log.StreamsGroupTopologyKey(group_id=group_id), topology)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of a member, in Kafka's order."""
    return tombstones((ASSIGNMENT_KEY, TARGET_KEY, MEMBER_KEY), group_id, member_id)


def group_tombstones(group_id: str) -> list[Record]:
    """Return the tombstones of a group without members, in Kafka's order."""
    return tombstones((TARGET_EPOCH_KEY, EPOCH_KEY, TOPOLOGY_KEY), group_id)


def _without_epochs(tasks: Iterable[Task]) -> list[log.StreamsCurrentTaskIds]:
    return [
        log.StreamsCurrentTaskIds(subtopology_id=sub, partitions=found) for sub, found in by_subtopology(tasks).items()
    ]


def _with_epochs(tasks: Mapping[Task, int]) -> list[log.StreamsCurrentTaskIds]:
    return [
        log.StreamsCurrentTaskIds(
            subtopology_id=sub, partitions=found, assignment_epochs=[tasks[sub, number] for number in found]
        )
        for sub, found in by_subtopology(tasks).items()
    ]


def _member(group: StreamsGroup, member_id: str, read: log.StreamsGroupMemberMetadataValue) -> None:
    endpoint = read.user_endpoint
    member = StreamsMember(
        member_id,
        read.instance_id,
        read.rack_id,
        read.client_id,
        read.client_host,
        read.rebalance_timeout_ms,
        read.topology_epoch,
        read.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        tuple(sorted((tag.key, tag.value) for tag in read.client_tags)),
    )
    group.replay_member(member)


def _epoch(group: StreamsGroup, _: str, read: log.StreamsGroupMetadataValue) -> None:
    configs = tuple(sorted((each.key, each.value) for each in read.last_assignment_configs or ()))
    stored, failed = read.stored_description_topology_epoch, read.failed_description_topology_epoch
    known = GroupEpoch(read.epoch, read.metadata_hash, read.validated_topology_epoch, configs, stored, failed)
    group.replay_epoch(known)


def _target(group: StreamsGroup, member_id: str, read: log.StreamsGroupTargetAssignmentMemberValue) -> None:
    roles = (read.active_tasks, read.standby_tasks, read.warmup_tasks)
    group.replay_target(member_id, Tasks(*map(_tasks, roles)))


def _assignment(group: StreamsGroup, member_id: str, read: log.StreamsGroupCurrentMemberAssignmentValue) -> None:
    epoch = read.member_epoch
    known = read.state in StreamsMemberState._value2member_map_
    revoking = (read.standby_tasks_pending_revocation, read.warmup_tasks_pending_revocation)
    member = StreamsMember(
        member_id,
        epoch=epoch,
        previous_epoch=read.previous_member_epoch,
        state=StreamsMemberState(read.state) if known else StreamsMemberState.UNKNOWN,
        held=Held(_epochs(read.active_tasks, epoch), _tasks(read.standby_tasks), _tasks(read.warmup_tasks)),
        revoking=Held(_epochs(read.active_tasks_pending_revocation, epoch), *map(_tasks, revoking)),
    )
    group.replay_assignment(member)


def _topology(group: StreamsGroup, _: str, read: log.StreamsGroupTopologyValue) -> None:
    group.replay_topology(read)


def _tasks(listed: Iterable[log.StreamsTargetTaskIds | log.StreamsCurrentTaskIds]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, number) for each in listed for number in each.partitions)


def _epochs(listed: Iterable[log.StreamsCurrentTaskIds], otherwise: int) -> dict[Task, int]:
    return with_epochs(((each.subtopology_id, each.partitions, each.assignment_epochs) for each in listed), otherwise)


_KINDS: dict[int, Kind[StreamsGroup]] = {
    EPOCH_KEY: Kind(log.StreamsGroupMetadataValue, _epoch, ignored, is_named=False),
    MEMBER_KEY: Kind(log.StreamsGroupMemberMetadataValue, _member, StreamsGroup.replay_no_member),
    TARGET_EPOCH_KEY: Kind(log.StreamsGroupTargetAssignmentMetadataValue, put_target_epoch, ignored, is_named=False),
    TARGET_KEY: Kind(log.StreamsGroupTargetAssignmentMemberValue, _target, StreamsGroup.replay_no_target),
    ASSIGNMENT_KEY: Kind(log.StreamsGroupCurrentMemberAssignmentValue, _assignment, StreamsGroup.replay_no_assignment),
    TOPOLOGY_KEY: Kind(
        log.StreamsGroupTopologyValue, _topology, lambda group, _: group.replay_topology(None), is_named=False
    ),
}
KINDS = frozenset(_KINDS)
replay = EpochRecords(StreamsGroup, EPOCH_KEY, _KINDS).replay
