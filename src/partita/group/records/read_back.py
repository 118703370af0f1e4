"""Decodes records of classic groups in `__consumer_offsets`: members, their subscriptions and assignments.

A value of a version above 4, or a damaged one, is not an error: it is passed on as raw bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.group.records.log_records import GROUP_KEY, kind_of, read_group_key, read_group_value
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.protocol.primitives import MalformedRequest

Row: TypeAlias = dict[str, Any]


class LogRecord(NamedTuple):
    """One record of the log and its position. `timestamp` is passed through unchanged."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: Any
    leader_epoch: int = -1
    """Leader epoch of its batch; -1 unknown."""

    def place(self) -> Row:
        """Return the columns that locate a row in the log."""
        return {"logPartition": self.partition, "logOffset": self.offset, "logTimestamp": self.timestamp}


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One record of a classic group. `value` is None for a tombstone and for an unreadable value."""

    group: str
    value: GroupMetadataValue | None
    unknown: bytes | None
    place: Mapping[str, Any]


def group_records(records: Iterable[LogRecord]) -> Iterator[GroupRecord]:
    """Yield the records of classic groups among these, in order."""
    for record in records:
        if record.key is None or len(record.key) < 2 or kind_of(record.key) != GROUP_KEY:
            continue
        try:
            group = read_group_key(record.key)
        except (MalformedRequest, UnicodeDecodeError):
            continue
        value, unknown = None, None
        if record.value is not None:
            try:
                value = read_group_value(record.value)
            except (MalformedRequest, UnicodeDecodeError):
                unknown = record.value
        yield GroupRecord(group, value, unknown, record.place())


def name_of(member: GroupMetadataValueMember) -> str:
    """Return a readable name: the group instance id, else the member id, which begins with the client id."""
    return member.group_instance_id or member.member_id


def owners_of(value: GroupMetadataValue) -> dict[tuple[str, int], str]:
    """Return the owner of each partition in this generation."""
    return {key: name_of(member) for member in value.members for key in held_by(member)}


def held_by(member: GroupMetadataValueMember) -> list[tuple[str, int]]:
    """Return the partitions of a member; empty for an assignment in a format of the client's own."""
    try:
        return sorted(decode_assignment(member.assignment)[0]) if len(member.assignment) else []
    except (MalformedRequest, UnicodeDecodeError):
        return []


def subscription_of(member: GroupMetadataValueMember) -> tuple[list[str] | None, int | None]:
    """Return the subscribed topics and the size of the user data; None for a format of the client's own."""
    try:
        found = decode_subscription(member.subscription)
    except (MalformedRequest, UnicodeDecodeError):
        return None, None
    return sorted(found.topics), len(found.user_data or b"")
