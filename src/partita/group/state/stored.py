"""Conversion between classic groups and the records that restore them.

Of each member only the metadata for the selected protocol is kept, as in Kafka. (Kafka:
GroupCoordinatorRecordHelpers.newGroupMetadataRecord, newEmptyGroupMetadataRecord; GroupMetadataManager.replay)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.group.contract import Record
from partita.group.records import log_records
from partita.group.state.model import NO_DEADLINE, Group, Member
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember


def group_record(
    group: Group,
    members: Iterable[Member] | None = None,
    *,
    assignments: Mapping[str, bytes] | None = None,
    leader_id: str | None = None,
) -> Record:
    """Return the record of the group, with `members` and `assignments` in place of its own, where given.

    It names no group leader while the coordinator watches the topics; see `partita.group.classic.unled`.
    """
    is_led = group.watch_ms == NO_DEADLINE
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=(leader_id or group.leader_id) if is_led else None,
        current_state_timestamp=group.since_ms,
        members=[
            _stored(
                member,
                group.protocol_name,
                member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            for member in (group.members.values() if members is None else members)
        ],
    )
    return Record(log_records.group_key(group.group_id), log_records.group_value(value))


def _stored(member: Member, protocol_name: str | None, assignment: bytes) -> GroupMetadataValueMember:
    return GroupMetadataValueMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=assignment,
    )


def new_group_record(group: Group) -> Record:
    """Return the record of a new group, which has no protocol type and generation, even while a rebalance runs."""
    value = log_records.empty_group(None, 0, group.since_ms)
    return Record(log_records.group_key(group.group_id), log_records.group_value(value))


def empty_group_record(group: Group) -> Record:
    """Return the record of a group after its last member left."""
    value = log_records.empty_group(group.protocol_type, group.generation, group.since_ms)
    return Record(log_records.group_key(group.group_id), log_records.group_value(value))


def abandoned_record(group: Group, members: list[Member]) -> Record:
    """Return the record of a generation that these members know and that will never be assigned.

    It has neither a leader nor assignments, which marks a group that must rebalance once it is loaded.
    """
    value = log_records.empty_group(group.protocol_type, group.generation, group.since_ms)
    value.protocol = group.protocol_name
    value.members = [_stored(member, group.protocol_name, b"") for member in members]
    return Record(log_records.group_key(group.group_id), log_records.group_value(value))


def group_tombstone(group_id: str) -> Record:
    """Return the tombstone of a group."""
    return Record(log_records.group_key(group_id), None)


def stored_member(stored: GroupMetadataValueMember, protocol_name: str | None) -> Member:
    """Return the member restored from its group's record; it lists only the selected protocol."""
    member = Member(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols=((protocol_name or "", bytes(stored.subscription)),),
    )
    member.assignment = bytes(stored.assignment)
    member.was_loaded = True
    return member
