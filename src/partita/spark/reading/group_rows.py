"""The records of groups in `__consumer_offsets` as rows: groups, members, assignments, rebalances.

Only classic groups (key kind 2) are understood. A value of a newer version than 4, or a
damaged one, is never an error: its row keeps the raw bytes. Rows are plain dicts with the columns' names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.group.records.log_records import GROUP_KEY, kind_of, read_group_key, read_group_value
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.protocol.primitives import MalformedRequest

Row: TypeAlias = dict[str, Any]


class LogRecord(NamedTuple):
    """One record of the log and where it stands. `timestamp` is passed through as it came."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: Any

    def place(self) -> Row:
        """The columns that say where in the log a row comes from."""
        return {"logPartition": self.partition, "logOffset": self.offset, "logTimestamp": self.timestamp}


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One record of a classic group. `value` is None for a tombstone and for what cannot be read."""

    group: str
    value: GroupMetadataValue | None
    unknown: bytes | None
    place: Mapping[str, Any]


def group_records(records: Iterable[LogRecord]) -> Iterator[GroupRecord]:
    """The records of classic groups among these, in their order."""
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


def group_rows(record: GroupRecord) -> Iterator[Row]:
    """One row per record: what the group had become."""
    value = record.value
    yield {
        "group": record.group,
        "protocolType": None if value is None else value.protocol_type,
        "protocol": None if value is None else value.protocol,
        "generation": None if value is None else value.generation,
        "leader": None if value is None else value.leader,
        "memberCount": None if value is None else len(value.members),
        "stateTimeMs": _state_time(value),
        "isTombstone": value is None and record.unknown is None,
        "unknownValue": record.unknown,
        **record.place,
    }


def member_rows(record: GroupRecord) -> Iterator[Row]:
    """One row per member of the generation that the record holds."""
    value = record.value
    for member in value.members if value is not None else ():
        topics, user_data = _subscription(member)
        yield {
            "group": record.group,
            "generation": value.generation if value is not None else None,
            "memberId": member.member_id,
            "groupInstanceId": member.group_instance_id,
            "clientId": member.client_id,
            "clientHost": member.client_host,
            "isLeader": value is not None and member.member_id == value.leader,
            "sessionTimeoutMs": member.session_timeout,
            "rebalanceTimeoutMs": member.rebalance_timeout,
            "topics": topics,
            "partitionCount": len(held_by(member)),
            "userDataBytes": user_data,
            **record.place,
        }


def assignment_rows(record: GroupRecord) -> Iterator[Row]:
    """One row per partition that a member holds in the generation that the record holds."""
    value = record.value
    for member in value.members if value is not None else ():
        for topic, partition in held_by(member):
            yield {
                "group": record.group,
                "generation": value.generation if value is not None else None,
                "topic": topic,
                "partition": partition,
                "memberId": member.member_id,
                "groupInstanceId": member.group_instance_id,
                "clientId": member.client_id,
                **record.place,
            }


@dataclass(slots=True)
class Rebalances:
    """Compares each record of a group with the one before it; one row per record that follows another.

    Records that compaction removed are not seen: `generation` minus `previousGeneration` says how many rebalances a row
    covers.
    """

    _before: dict[str, GroupMetadataValue] = field(default_factory=dict)

    def rows(self, record: GroupRecord) -> Iterator[Row]:
        """The row of this record, if its group had one before."""
        before, now = self._before.get(record.group), record.value
        if now is None:
            self._before.pop(record.group, None)
            return
        self._before[record.group] = now
        if before is None:
            return
        owners, owners_before = owners_of(now), owners_of(before)
        names, names_before = _names(now), _names(before)
        moved = [key for key, owner in owners.items() if owners_before.get(key, owner) != owner]
        time, time_before = _state_time(now), _state_time(before)
        yield {
            "group": record.group,
            "generation": now.generation,
            "previousGeneration": before.generation,
            "stateTimeMs": time,
            "sincePreviousMs": None if time is None or time_before is None else time - time_before,
            "memberCount": len(now.members),
            "added": sorted(names - names_before),
            "removed": sorted(names_before - names),
            "moved": [f"{topic}-{partition}" for topic, partition in sorted(moved)],
            "unassigned": [f"{topic}-{partition}" for topic, partition in sorted(owners_before.keys() - owners.keys())],
            **record.place,
        }


def name_of(member: GroupMetadataValueMember) -> str:
    """What a person calls the member: its static id, else its member id, which begins with its client id."""
    return member.group_instance_id or member.member_id


def owners_of(value: GroupMetadataValue) -> dict[tuple[str, int], str]:
    """Who holds each partition in this generation."""
    return {key: name_of(member) for member in value.members for key in held_by(member)}


def held_by(member: GroupMetadataValueMember) -> list[tuple[str, int]]:
    """The partitions of a member; empty for an assignment in another client's own format."""
    try:
        return sorted(decode_assignment(member.assignment)[0]) if len(member.assignment) else []
    except (MalformedRequest, UnicodeDecodeError):
        return []


def _names(value: GroupMetadataValue) -> set[str]:
    return {name_of(member) for member in value.members}


def _state_time(value: GroupMetadataValue | None) -> int | None:
    """Milliseconds; None where the version of the record has none."""
    return None if value is None or value.current_state_timestamp < 0 else value.current_state_timestamp


def _subscription(member: GroupMetadataValueMember) -> tuple[list[str] | None, int | None]:
    """Topics asked for and the size of the user data; None for another client's own format."""
    try:
        found = decode_subscription(member.subscription)
    except (MalformedRequest, UnicodeDecodeError):
        return None, None
    return sorted(found.topics), len(found.user_data or b"")
