"""Decode a record of `__consumer_offsets`: its type, versions and fields. Pure.

Offsets and classic groups (key versions 0 to 2) are read in full. Of consumer, share and streams groups the type and
the key are read; their values are given as base64. (Kafka: CoordinatorRecordType.)
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.cli.records.formats import iso_time
from partita.group.records.log_records import (
    GROUP_KEY,
    LEGACY_OFFSET_KEY,
    OFFSET_KEY,
    kind_of,
    read_group_value,
    read_offset_key,
    read_offset_value,
)
from partita.protocol.primitives import Buffer, MalformedRequest, Reader
from partita.wording import printable

if TYPE_CHECKING:
    from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
    from partita.records.batch import Record

TYPES = {
    LEGACY_OFFSET_KEY: ("LegacyOffsetCommit", ("group_id",)),
    OFFSET_KEY: ("OffsetCommit", ("group_id",)),
    GROUP_KEY: ("GroupMetadata", ("group_id",)),
    3: ("ConsumerGroupMetadata", ("group_id",)),
    4: ("ConsumerGroupPartitionMetadata", ("group_id",)),
    5: ("ConsumerGroupMemberMetadata", ("group_id", "member_id")),
    6: ("ConsumerGroupTargetAssignmentMetadata", ("group_id",)),
    7: ("ConsumerGroupTargetAssignmentMember", ("group_id", "member_id")),
    8: ("ConsumerGroupCurrentMemberAssignment", ("group_id", "member_id")),
    10: ("ShareGroupMemberMetadata", ("group_id", "member_id")),
    11: ("ShareGroupMetadata", ("group_id",)),
    12: ("ShareGroupTargetAssignmentMetadata", ("group_id",)),
    13: ("ShareGroupTargetAssignmentMember", ("group_id", "member_id")),
    14: ("ShareGroupCurrentMemberAssignment", ("group_id", "member_id")),
    15: ("ShareGroupStatePartitionMetadata", ("group_id",)),
    16: ("ConsumerGroupRegularExpression", ("group_id", "regular_expression")),
    17: ("StreamsGroupMetadata", ("group_id",)),
    19: ("StreamsGroupMemberMetadata", ("group_id", "member_id")),
    20: ("StreamsGroupTargetAssignmentMetadata", ("group_id",)),
    21: ("StreamsGroupTargetAssignmentMember", ("group_id", "member_id")),
    22: ("StreamsGroupCurrentMemberAssignment", ("group_id", "member_id")),
    23: ("StreamsGroupTopology", ("group_id",)),
}
"""Key version -> the name of the record's type and the texts its key consists of."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record. `value_version` and `value` are None for a tombstone; `fault` is the reason it could not be read."""

    partition: int
    offset: int
    timestamp: int
    type: str
    group_id: str
    key_version: int
    value_version: int | None
    key: dict[str, Any]
    value: dict[str, Any] | None
    fault: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "is_tombstone": self.value is None and not self.fault}

    def line(self) -> str:
        """The record in one line, whatever names clients have chosen."""
        version = "tombstone" if self.value_version is None else f"v{self.value_version}"
        at = f"{self.partition}@{self.offset}  {iso_time(self.timestamp)}"
        head = f"{at}  {self.type}  key v{self.key_version}, {version}"
        if self.fault:
            return f"{head}  unreadable: {self.fault}"
        return printable(f"{head}  {self.group_id}  {self._fields()}".rstrip())

    def _fields(self) -> str:
        where = f"{self.key['topic']}-{self.key['partition']}" if "topic" in self.key else ""
        more = " ".join(str(value) for name, value in self.key.items() if name in ("member_id", "regular_expression"))
        if self.value is None:
            return where or more
        if where:
            commit = f"{where} -> {self.value['offset']}"
            epoch, note = self.value["leader_epoch"], self.value["metadata"]
            return commit + (f", leader epoch {epoch}" if epoch >= 0 else "") + (f", metadata {note!r}" if note else "")
        if self.key_version == GROUP_KEY:
            return _group_line(self.value)
        return more


def read_entry(record: Record) -> Entry:
    """Decode a record. A record that cannot be read gives an entry with a `fault`; nothing is raised."""
    key, value = record.key, record.value
    version, name, fields = -1, "Unknown", {}
    value_version = None if not isinstance(value, bytes) or len(value) < 2 else int.from_bytes(value[:2], "big")
    read: dict[str, Any] | None = None
    fault = ""
    try:
        if not isinstance(key, bytes):
            raise MalformedRequest("the record has no key")
        version = kind_of(key)
        if version not in TYPES:
            raise MalformedRequest(f"key version {version} is not known")
        name, texts = TYPES[version]
        fields = _key(version, key, texts)
        read = None if value is None else _value(version, value)  # type: ignore[arg-type]  # read without deserializers
    except (MalformedRequest, UnicodeDecodeError) as error:
        fault = str(error)
    return Entry(
        record.partition, record.offset, record.timestamp, name, str(fields.get("group_id", "")), version,
        value_version, fields, read, fault,
    )  # fmt: skip


def _key(version: int, key: bytes, texts: tuple[str, ...]) -> dict[str, Any]:
    if version <= OFFSET_KEY:
        group_id, topic, partition = read_offset_key(key)
        return {"group_id": group_id, "topic": topic, "partition": partition}
    reader = Reader(key, 2)
    return {name: reader.string() for name in texts}


def _value(version: int, value: bytes) -> dict[str, Any]:
    if version <= OFFSET_KEY:
        found = read_offset_value(value)
        return {
            "offset": found.offset, "leader_epoch": found.leader_epoch, "metadata": found.metadata,
            "commit_timestamp": found.commit_ms, "expire_timestamp": found.expire_ms, "topic_id": found.topic_id.hex(),
        }  # fmt: skip
    if version == GROUP_KEY:
        return _group(read_group_value(value))
    return {"value_base64": base64.b64encode(value[2:]).decode()}


def _group(value: GroupMetadataValue) -> dict[str, Any]:
    return {
        "protocol_type": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "current_state_timestamp": value.current_state_timestamp,
        "members": [_member(member, value.protocol_type) for member in value.members],
    }


def _member(member: GroupMetadataValueMember, protocol_type: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: getattr(member, name)
        for name in (
            "member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout",
        )
    }  # fmt: skip
    if protocol_type == "consumer":
        try:
            partitions, _ = decode_assignment(member.assignment)
            fields["topics"] = sorted(decode_subscription(member.subscription).topics)
            fields["assignment"] = [f"{topic}-{partition}" for topic, partition in sorted(partitions)]
        except MalformedRequest:
            pass  # another client's own format: only its bytes can be shown
        else:
            return fields
    return fields | {
        "subscription_base64": _base64(member.subscription),
        "assignment_base64": _base64(member.assignment),
    }


def _base64(content: Buffer) -> str:
    return base64.b64encode(content).decode()


def _group_line(value: dict[str, Any]) -> str:
    shown = [
        f"{member['group_instance_id'] or member['client_id'] or member['member_id']}"
        + ("*" if member["member_id"] == value["leader"] else "")
        + (f" [{' '.join(member['assignment'])}]" if "assignment" in member else "")
        for member in value["members"]
    ]
    protocol = f", {value['protocol']}" if value["protocol"] else ""
    return f"generation {value['generation']}{protocol}: {', '.join(shown) or 'no members'}"
