"""ShareGroupHeartbeat: checks in order, then join (epoch 0), go on (above 0) or leave (-1). It is answered at once.

(Kafka: GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid, GroupMetadataManager.shareGroupHeartbeat,
release 4.4.0.)
"""

from __future__ import annotations

from dataclasses import replace

from partita.group.consumer_group import errors
from partita.group.consumer_group.errors import Refused, invalid
from partita.group.contract import GroupRequest, Token
from partita.group.offsets import expiration
from partita.group.records.consumer_group import LEFT, by_topic
from partita.group.records.share_group import ShareGroup, ShareMember
from partita.group.share import leaving
from partita.group.share.change import ShareChange, apply
from partita.group.state.settings import in_force
from partita.group.state.turn import Turn
from partita.protocol.messages.share_group_heartbeat import (
    ShareGroupAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupTopicPartitions,
)
from partita.wording import What

_JOIN = 0
_MEMBER_ID_MAX = 36


def heartbeat(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Answer a ShareGroupHeartbeat."""
    wire = request.message
    assert isinstance(wire, ShareGroupHeartbeatRequest)
    refused = member_id_problem(wire) or _problem(wire)
    answer = refused or (_leave(turn, wire) if wire.member_epoch == LEFT else _beat(turn, request, wire))
    if isinstance(answer, Refused):
        answer = ShareGroupHeartbeatResponse(error_code=answer.error, error_message=answer.text)
    turn.out.answer(token, answer)


def member_id_problem(wire: ShareGroupHeartbeatRequest) -> Refused | None:
    """Any text of 1 to 36 characters is a member id."""
    if not wire.member_id.strip():
        return invalid("MemberId can't be empty.")
    if len(wire.member_id) > _MEMBER_ID_MAX:
        return invalid(f"MemberId has {len(wire.member_id)} characters; at most {_MEMBER_ID_MAX} are allowed.")
    return None


def _problem(wire: ShareGroupHeartbeatRequest) -> Refused | None:
    for name, text in (("GroupId", wire.group_id), ("RackId", wire.rack_id)):
        if text is not None and not text.strip():
            return invalid(f"{name} can't be empty.")
    if wire.member_epoch == _JOIN and not wire.subscribed_topic_names:
        return invalid("SubscribedTopicNames must be set in first request.")
    if wire.member_epoch < LEFT:
        return invalid(f"MemberEpoch is {wire.member_epoch}, but must be greater than or equal to -1.")
    return None


def _beat(turn: Turn, request: GroupRequest, wire: ShareGroupHeartbeatRequest) -> Refused | ShareGroupHeartbeatResponse:
    group = _found(turn, wire)
    if isinstance(group, Refused):
        return group
    size = turn.state.config.group_share_max_size
    known = group.members.get(wire.member_id)
    if known is None and len(group.members) >= size:
        return errors.group_is_full("share", size)
    refused = _stranger_or_fenced(group, known, wire)
    if refused is not None:
        return refused
    before = known or ShareMember(wire.member_id)
    after = apply(turn, ShareChange(group, before, _updated(before, request, wire), known is None))
    if isinstance(after, Refused):
        return after
    is_told = wire.member_epoch == _JOIN or wire.subscribed_topic_names is not None or after.assigned != before.assigned
    return ShareGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=in_force(turn, group.group_id, "share.heartbeat.interval.ms"),
        assignment=_assignment(after) if is_told else None,
    )


def _found(turn: Turn, wire: ShareGroupHeartbeatRequest) -> ShareGroup | Refused:
    """The group; a join makes one that does not exist, unless the broker has as many as it may."""
    group = turn.state.share_group(wire.group_id)
    if group is not None:
        return group
    if is_of_other_type(turn, wire.group_id):
        return errors.wrong_type("share", wire.group_id)
    if wire.member_epoch != _JOIN:
        return errors.group_not_found(wire.group_id)
    if turn.state.is_full and not expiration.make_room(turn, wire.group_id):
        return errors.broker_is_full(turn.state.config.partita_groups_max)
    return ShareGroup(wire.group_id)


def _stranger_or_fenced(
    group: ShareGroup, member: ShareMember | None, wire: ShareGroupHeartbeatRequest
) -> Refused | None:
    epoch = wire.member_epoch
    if epoch == _JOIN:
        return None
    if member is None:
        return errors.unknown_member(group.group_id, wire.member_id)
    is_right = epoch in (member.epoch, member.previous_epoch)
    return None if is_right else errors.fenced_epoch("share", member, epoch)


def _updated(before: ShareMember, request: GroupRequest, wire: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member with what the request says; null leaves what is known."""
    names = wire.subscribed_topic_names
    return replace(
        before,
        rack_id=before.rack_id if wire.rack_id is None else wire.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=before.topics if names is None else tuple(sorted(set(names))),
    )


def _leave(turn: Turn, wire: ShareGroupHeartbeatRequest) -> Refused | ShareGroupHeartbeatResponse:
    group = turn.state.share_group(wire.group_id)
    if group is None:
        return absent(turn, wire.group_id)
    member = group.members.get(wire.member_id)
    if member is None:
        return errors.unknown_member(group.group_id, wire.member_id)
    leaving.remove(turn, group, [member], What.LEFT)
    return ShareGroupHeartbeatResponse(member_id=wire.member_id, member_epoch=LEFT)


def _assignment(member: ShareMember) -> ShareGroupAssignment:
    return ShareGroupAssignment(
        topic_partitions=[
            ShareGroupTopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_topic(member.assigned).items()
        ]
    )


def is_of_other_type(turn: Turn, group_id: str) -> bool:
    """Whether the id is that of a group of another type; an empty classic group is one, too."""
    return group_id in turn.state.groups or turn.state.epoch_group(group_id) is not None


def absent(turn: Turn, group_id: str) -> Refused:
    """There is no share group with this id."""
    is_other = is_of_other_type(turn, group_id)
    return errors.wrong_type("share", group_id) if is_other else errors.group_not_found(group_id)
