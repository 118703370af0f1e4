"""StreamsGroupHeartbeat: checks in order, then join (epoch 0), go on (above 0), leave (-1) or leave for a while (-2).

(Kafka: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid, GroupMetadataManager.streamsGroupHeartbeat
and streamsGroupLeave, release 4.4.0.)

Deviation: Partita refuses a request under an instance id that another member has without a trace, where Kafka 4.4.0
refuses it and forgets that member's tasks until the next assignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from partita.group.consumer_group import errors
from partita.group.consumer_group.errors import Refused, invalid
from partita.group.contract import GroupRequest, Token
from partita.group.offsets import expiration
from partita.group.records.consumer_group import LEFT, LEFT_STATIC
from partita.group.records.streams_group import StreamsGroup, StreamsMember, Task, Tasks
from partita.group.requests import StreamsBeat
from partita.group.state.model import EMPTY
from partita.group.state.topology import InvalidTopology
from partita.group.state.turn import Turn
from partita.group.streams import leaving
from partita.group.streams.answering import absent
from partita.group.streams.change import StreamsChange, apply
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsTaskIds,
)
from partita.wording import What

_JOIN = 0


def heartbeat(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer a StreamsGroupHeartbeat at once, with the internal topics that the broker has to create."""
    wire = request.message
    assert isinstance(wire, StreamsGroupHeartbeatRequest)
    answer: Refused | StreamsBeat | None = problem(wire)
    if answer is None:
        try:
            answer = _leave(turn, wire) if wire.member_epoch < _JOIN else _beat(turn, request, wire)
        except InvalidTopology as error:
            answer = Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, str(error))
    if turn.state.streams_group(wire.group_id) is None:
        turn.state.streams.forget(wire.group_id)  # of a group that did not come to be
    if isinstance(answer, Refused):
        response = StreamsGroupHeartbeatResponse(error_code=answer.error, error_message=answer.text)
        answer = StreamsBeat(response)
    turn.out.answer(token, answer)


def problem(wire: StreamsGroupHeartbeatRequest) -> Refused | None:
    """Return the refusal of a request that can be refused without any state, the first in Kafka's order."""
    if wire.topology is not None and any(sub.source_topic_regex for sub in wire.topology.subtopologies):
        return invalid("Regular expressions for source topics are not supported yet.")
    texts = (
        ("MemberId", wire.member_id),
        ("GroupId", wire.group_id),
        ("InstanceId", wire.instance_id),
        ("RackId", wire.rack_id),
    )
    for name, text in texts:
        if text is not None and not text.strip():
            return invalid(f"{name} can't be empty.")
    refused = _incomplete_join(wire) if wire.member_epoch == _JOIN else _wrong_epoch(wire)
    if refused is not None:
        return refused
    roles = (wire.active_tasks, wire.standby_tasks, wire.warmup_tasks)
    if any(tasks is None for tasks in roles) and any(tasks is not None for tasks in roles):
        return invalid("If one task-type is non-null, all must be non-null.")
    if wire.member_epoch != _JOIN and wire.topology is not None:
        return invalid("Topology can only be provided when (re-)joining.")
    return None


def _incomplete_join(wire: StreamsGroupHeartbeatRequest) -> Refused | None:
    if wire.rebalance_timeout_ms == -1:
        return invalid("RebalanceTimeoutMs must be provided in first request.")
    roles = (("Active", wire.active_tasks), ("Standby", wire.standby_tasks), ("Warmup", wire.warmup_tasks))
    for name, tasks in roles:
        if tasks is None or tasks:
            return invalid(f"{name}Tasks must be empty when (re-)joining.")
    if wire.topology is None:
        return invalid("Topology must be non-null when (re-)joining.")
    for sub in wire.topology.subtopologies:
        for info in sub.state_changelog_topics:
            if info.partitions:
                text = (
                    f"Changelog topic {info.name} must have an undefined partition count, but it is set to "
                    f"{info.partitions}."
                )
                return Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    return None


def _wrong_epoch(wire: StreamsGroupHeartbeatRequest) -> Refused | None:
    if wire.member_epoch == LEFT_STATIC and wire.instance_id is None:
        return invalid("InstanceId can't be null.")
    if wire.member_epoch < LEFT_STATIC:
        return invalid(f"MemberEpoch is {wire.member_epoch}, but must be greater than or equal to -2.")
    return None


def _beat(turn: Turn, request: GroupRequest, wire: StreamsGroupHeartbeatRequest) -> Refused | StreamsBeat:
    group = _found(turn, wire)
    if isinstance(group, Refused):
        return group
    change = _change(turn, group, request, wire)
    if isinstance(change, Refused):
        return change
    return apply(turn, change)


def _found(turn: Turn, wire: StreamsGroupHeartbeatRequest) -> StreamsGroup | Refused:
    """The group; a join makes one, also of an empty classic group, unless the broker has as many as it may."""
    group_id = wire.group_id
    group = turn.state.streams_group(group_id)
    if group is None:
        if wire.member_epoch != _JOIN:
            return absent(turn, group_id, "Streams group")
        classic = turn.state.groups.get(group_id)
        if turn.state.has_other_type(group_id) or (classic is not None and classic.state is not EMPTY):
            return errors.wrong_type("streams", group_id)
        if classic is None and turn.state.is_full and not expiration.make_room(turn, group_id):
            return errors.broker_is_full(turn.state.config.partita_groups_max)
        group = StreamsGroup(group_id)
    size = turn.state.config.group_streams_max_size
    is_known = wire.member_id in group.members or wire.instance_id in group.static
    if wire.member_epoch == _JOIN and len(group.members) >= size and not is_known:
        return errors.group_is_full("streams", size)
    return group


def _change(
    turn: Turn, group: StreamsGroup, request: GroupRequest, wire: StreamsGroupHeartbeatRequest
) -> StreamsChange | Refused:
    is_join, replaces = wire.member_epoch == _JOIN, None
    known = group.members.get(wire.member_id)
    if wire.instance_id is not None:
        holder = group.static.get(wire.instance_id)
        known = None if holder is None else group.members[holder]
        if is_join and known is not None:
            if known.epoch != LEFT_STATIC:
                text = (
                    f"Static member {wire.member_id} with instance id {wire.instance_id} cannot join the group because "
                    f"the instance id is owned by {known.member_id} member."
                )
                return Refused(ErrorCode.UNRELEASED_INSTANCE_ID, text)
            replaces, known = known, replace(known, member_id=wire.member_id, epoch=0, previous_epoch=0)
        elif not is_join:
            refused = _static_stranger(group, known, wire)
            if refused is not None:
                return refused
        elif known is None:
            known = group.members.get(wire.member_id)
    if known is None:
        if not is_join:
            return errors.unknown_member(group.group_id, wire.member_id)
        known = StreamsMember(wire.member_id)
    owned = _owned(wire)
    if not is_join and not _epoch_is_right(known, wire.member_epoch, owned):
        return errors.fenced_epoch("streams", known, wire.member_epoch)
    after = _updated(known, request, wire)
    return StreamsChange(group, known, after, wire, request.version, owned, replaces)


def _static_stranger(
    group: StreamsGroup, known: StreamsMember | None, wire: StreamsGroupHeartbeatRequest
) -> Refused | None:
    assert wire.instance_id is not None, "a static member has an instance id"
    if known is None:
        return errors.unknown_instance(wire.instance_id)
    is_rival = known.member_id != wire.member_id
    return errors.fenced_instance(group, wire.member_id, wire.instance_id) if is_rival else None


def _epoch_is_right(member: StreamsMember, epoch: int, owned: Tasks | None) -> bool:
    """The member's epoch, or the one before if it reports no task beyond its own: the last answer was lost."""
    if epoch >= member.epoch:
        return epoch == member.epoch
    held = member.held.tasks
    is_subset = owned is not None and all(role <= kept for role, kept in zip(owned, held, strict=True))
    return epoch == member.previous_epoch and is_subset


def _owned(wire: StreamsGroupHeartbeatRequest) -> Tasks | None:
    roles = (wire.active_tasks, wire.standby_tasks, wire.warmup_tasks)
    listed = [_tasks(tasks) for tasks in roles if tasks is not None]
    return Tasks(*listed) if len(listed) == len(roles) else None


def _tasks(listed: Iterable[StreamsTaskIds]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, number) for each in listed for number in each.partitions)


def _updated(before: StreamsMember, request: GroupRequest, wire: StreamsGroupHeartbeatRequest) -> StreamsMember:
    """The member with what the request says; null leaves what is known, but for the endpoint of a join."""
    endpoint = None if wire.user_endpoint is None else (wire.user_endpoint.host, wire.user_endpoint.port)
    tags = wire.client_tags
    return replace(
        before,
        instance_id=before.instance_id if wire.instance_id is None else wire.instance_id,
        rack_id=before.rack_id if wire.rack_id is None else wire.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms
        if wire.rebalance_timeout_ms == -1
        else wire.rebalance_timeout_ms,
        topology_epoch=before.topology_epoch if wire.topology is None else wire.topology.epoch,
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=before.process_id if wire.process_id is None else wire.process_id,
        endpoint=endpoint if wire.member_epoch == _JOIN or endpoint is not None else before.endpoint,
        tags=before.tags if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
    )


def _leave(turn: Turn, wire: StreamsGroupHeartbeatRequest) -> Refused | StreamsBeat:
    group = turn.state.streams_group(wire.group_id)
    if group is None:
        return absent(turn, wire.group_id, "Group")
    if wire.shutdown_application:
        leaving.ask_for_shutdown(turn, group, wire.member_id)
    member = group.members.get(wire.member_id)
    if wire.instance_id is not None:
        member = group.members.get(group.static.get(wire.instance_id, ""))
        refused = _static_stranger(group, member, wire)
        if refused is not None:
            return refused
    if member is None:
        return errors.unknown_member(group.group_id, wire.member_id)
    if wire.member_epoch == LEFT:
        leaving.remove(turn, group, [member], What.LEFT)
    else:
        leaving.set_aside(turn, group, member)
    response = StreamsGroupHeartbeatResponse(member_id=wire.member_id, member_epoch=wire.member_epoch, status=[])
    return StreamsBeat(response)
