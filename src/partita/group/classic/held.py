"""Describes the members of a classic group for the note at the end of a rebalance."""

from __future__ import annotations

from itertools import islice

from partita.assignors.payloads import decode_assignment
from partita.group.notes import MEMBERS_TOLD_MAX, MemberHeld
from partita.group.state.model import Group, Member, topics_in
from partita.protocol.primitives import MalformedRequest


def held_by(group: Group) -> tuple[MemberHeld, ...]:
    """Return the first `MEMBERS_TOLD_MAX` members with their partitions. Decodes one assignment per member."""
    return tuple(_held(group, member) for member in islice(group.members.values(), MEMBERS_TOLD_MAX))


def _held(group: Group, member: Member) -> MemberHeld:
    is_consumer = group.protocol_type == "consumer"
    topics = topics_in(member.metadata(group.protocol_name)) if is_consumer else None
    return MemberHeld(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=None if topics is None else tuple(sorted(topics)),
        partitions=_partitions(member.assignment) if is_consumer else {},
        joined_ms=member.joined_ms,
        synced_ms=member.synced_ms,
    )


def _partitions(assignment: bytes) -> dict[str, list[int]]:
    """Decode the partitions by topic; empty for an assignment in a format of the client's own."""
    found: dict[str, list[int]] = {}
    try:
        for topic, number in sorted(decode_assignment(assignment)[0]):
            found.setdefault(topic, []).append(number)
    except (MalformedRequest, UnicodeDecodeError):
        return {}
    return found
