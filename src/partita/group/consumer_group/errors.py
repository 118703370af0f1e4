"""Refusals of requests to groups with epochs: error codes with Kafka's messages.

`kind` is the type of group that the request is for: consumer, share or streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from partita.group.records.share_group import ShareMember
    from partita.group.records.streams_group import StreamsGroup, StreamsMember


class Refused(NamedTuple):
    """An error code and its message."""

    error: ErrorCode
    text: str


def invalid(text: str) -> Refused:
    """The request is invalid for any group."""
    return Refused(ErrorCode.INVALID_REQUEST, text)


def group_not_found(group_id: str, kind: str = "Group") -> Refused:
    """There is no such group."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")


def wrong_type(kind: str, group_id: str) -> Refused:
    """The group with this id is of another type."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind} group.")


def group_is_full(kind: str, size: int) -> Refused:
    """The group has as many members as it may."""
    text = f"The {kind} group has reached its maximum capacity of {size} members."
    return Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, text)


def broker_is_full(groups_max: int) -> Refused:
    """The broker has as many groups as it may (`partita.groups.max`)."""
    return Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The broker has reached its maximum of {groups_max} groups.")


def unknown_member(group_id: str, member_id: str) -> Refused:
    """No member has this member id."""
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def unknown_instance(instance_id: str) -> Refused:
    """No member has this group instance id."""
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")


def instance_in_use(group: ConsumerGroup, member_id: str, instance_id: str) -> Refused:
    """The previous process has not left; under this protocol it keeps the instance id."""
    holder = group.static[instance_id]
    text = (
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
        f"owned by member {holder}."
    )
    return Refused(ErrorCode.UNRELEASED_INSTANCE_ID, text)


def fenced_instance(group: ConsumerGroup | StreamsGroup, member_id: str, instance_id: str) -> Refused:
    """Another member id has the group instance id."""
    text = f"Static member {member_id} with instance id {instance_id} was fenced by member {group.static[instance_id]}."
    return Refused(ErrorCode.FENCED_INSTANCE_ID, text)


def fenced_epoch(kind: str, member: ConsumerMember | ShareMember | StreamsMember, epoch: int) -> Refused:
    """The member's epoch is ahead of the coordinator's, or behind and its report does not fit."""
    which = "greater" if epoch > member.epoch else "smaller"
    text = (
        f"The {kind} group member has a {which} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    return Refused(ErrorCode.FENCED_MEMBER_EPOCH, text)


def unknown_state(member: ConsumerMember) -> Refused:
    """The log holds a member state of a newer release."""
    text = f"Member {member.member_id} is in a state unknown here. It must abandon all its partitions and rejoin."
    return Refused(ErrorCode.FENCED_MEMBER_EPOCH, text)


def too_large() -> Refused:
    """The records would not fit into one batch."""
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "What follows from the request does not fit into the group log.")
