"""The records of classic groups in `__consumer_offsets` as rows: groups, members, assignments, rebalances.

A value of a newer version than 4, or a damaged one, is never an error: its row keeps the raw bytes. Rows are
plain dicts with the columns' names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partita.group.records.read_back import (
    GroupRecord,
    Row,
    held_by,
    name_of,
    owners_of,
    subscription_of,
)
from partita.protocol.messages.group_log import GroupMetadataValue


def group_rows(record: GroupRecord) -> Iterator[Row]:
    """Return one row per record: the group's new state."""
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
        topics, user_data = subscription_of(member)
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

    Records that compaction removed are not seen: `generation` minus `previousGeneration` is the number of rebalances a
    row covers.
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


def _names(value: GroupMetadataValue) -> set[str]:
    return {name_of(member) for member in value.members}


def _state_time(value: GroupMetadataValue | None) -> int | None:
    """Milliseconds; None where the version of the record has none."""
    return None if value is None or value.current_state_timestamp < 0 else value.current_state_timestamp
