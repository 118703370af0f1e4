"""Hard state <-> records of `__consumer_offsets`, byte for byte as Kafka writes and reads them.

Keys 0 and 1 are offsets, key 2 classic groups; `partita.group.records.consumer_log` has those of KIP-848 groups.
Offsets are encoded by hand (they dominate the log), group values by the generated messages. (Kafka:
GroupCoordinatorRecordHelpers, GroupCoordinatorRecordSerde.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

from partita.group.contract import Record
from partita.group.records.consumer_group import EpochGroup
from partita.group.records.replay_batch import split_key
from partita.protocol.messages.group_log import GroupMetadataValue, OffsetCommitValue
from partita.protocol.primitives import ZERO_UUID, MalformedRequest, Message, Reader, Writer

LEGACY_OFFSET_KEY, OFFSET_KEY, GROUP_KEY = 0, 1, 2
NO_EXPIRY = -1

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_V1_HEAD = Struct(">hqh")
_V1_TAIL = Struct(">qq")
_V4_HEAD = Struct(">hqi")
_TOPIC_ID_TAG = b"\x01\x00\x10"
BATCH_HEADER_BYTES = 61


class CommittedOffset(NamedTuple):
    """Committed offset of one partition. `expire_ms` is -1 unless an old client set its own retention."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = NO_EXPIRY
    topic_id: bytes = ZERO_UUID


def log_record(key: Message, value: Message | None) -> Record:
    """Return a record of a group with epochs; None makes a tombstone. Its kind is the version of its key."""
    kind = key.MIN_VERSION
    encoded = None if value is None else b"\x00\x00" + value.encode(0)
    return Record(kind.to_bytes(2, "big") + key.encode(kind), encoded)


def tombstones(kinds: Iterable[int], *ids: str) -> list[Record]:
    """Return the tombstones of these kinds, in their order; `ids` are the fields of their keys."""
    encoded = [text.encode() for text in ids]
    key = b"".join(_INT16.pack(len(text)) + text for text in encoded)
    return [Record(_INT16.pack(kind) + key, None) for kind in kinds]


Group = TypeVar("Group", bound=EpochGroup[Any, Any])


class Kind(NamedTuple, Generic[Group]):
    """One kind of record. `name` below is what its key holds after the group id, mostly a member id; "" if nothing."""

    value: type[Message]
    put: Callable[[Group, str, Any], None]
    """Applies (group, name, decoded value)."""
    end: Callable[[Group, str], None]
    """Applies a tombstone: (group, name)."""
    is_named: bool = True


def put_target_epoch(group: EpochGroup[Any, Any], name: str, read: Any) -> None:
    """Apply a decoded record of the targets' epoch, which has the same fields for all types of groups."""
    group.replay_target_epoch(read.assignment_epoch, read.assignment_timestamp)


def ignored(group: EpochGroup[Any, Any], name: str) -> None:
    """Pass over a tombstone that others of its group follow."""


class EpochRecords(Generic[Group]):
    """The records of one type of group. `epoch_key` is the kind of the group's own record, the last tombstone."""

    def __init__(self, create: Callable[[str], Group], epoch_key: int, kinds: Mapping[int, Kind[Group]]) -> None:
        self._create = create
        self._epoch_key = epoch_key
        self._kinds = kinds

    def replay(self, groups: dict[str, Group], kind: int, key: bytes, value: bytes | None) -> None:
        """Apply one record of a kind of the table. Raises MalformedRequest when it cannot be read.

        A tombstone of a group that is not there is passed over: compaction may have removed what came before it.
        """
        row, ids = self._kinds[kind], Reader(key, 2)
        group_id = ids.string()
        name = ids.string() if row.is_named else ""
        group = groups.get(group_id)
        if value is not None:
            read = row.value.read(_body(kind, value), 0)
            if group is None:
                group = groups[group_id] = self._create(group_id)
            row.put(group, name, read)
        elif kind == self._epoch_key:
            groups.pop(group_id, None)
        elif group is not None:
            row.end(group, name)


def _body(kind: int, value: bytes) -> Reader:
    body = Reader(value)
    if (version := body.int16()) != 0:
        raise MalformedRequest(f"group record of kind {kind}: value of version {version}; 0 is known")
    return body


def kind_of(key: bytes) -> int:
    """Return the number that starts a key. Raises MalformedRequest for a shorter key."""
    if len(key) < 2:
        raise MalformedRequest(f"a group record's key has at least 2 bytes, not {len(key)}")
    return key[0] << 8 | key[1]


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key of a partition's committed offset."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((b"\x00\x01", _INT16.pack(len(group)), group, _INT16.pack(len(name)), name, _INT32.pack(partition)))


def offset_value(committed: CommittedOffset) -> bytes:
    """Encode in version 4, or 1 when the offset has an expiry of its own."""
    offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id = committed
    text = metadata.encode()
    if expire_ms != NO_EXPIRY:
        return _V1_HEAD.pack(1, offset, len(text)) + text + _V1_TAIL.pack(commit_ms, expire_ms)
    size = Writer()
    size.uvarint(len(text) + 1)
    tags = b"\x00" if topic_id == ZERO_UUID else _TOPIC_ID_TAG + topic_id
    head = _V4_HEAD.pack(4, offset, leader_epoch)
    return b"".join((head, size.buf, text, _INT64.pack(commit_ms), tags))


def read_offset_key(key: bytes) -> tuple[str, str, int]:
    """Return (group id, topic, partition) of a key of either version."""
    group_id, (topic, partition) = split_key(key)
    return group_id, topic, partition


def read_offset_value(value: bytes) -> CommittedOffset:
    """Decode any of the versions 0 to 4; unknown tagged fields are ignored."""
    version = _version(value, OffsetCommitValue.MAX_VERSION)
    read = OffsetCommitValue.read(Reader(value, 2), version)
    return CommittedOffset(
        read.offset, read.leader_epoch, read.metadata, read.commit_timestamp, read.expire_timestamp, read.topic_id
    )


def _version(value: bytes, newest: int) -> int:
    if len(value) < 2:
        raise MalformedRequest(f"a group record's value has at least 2 bytes, not {len(value)}")
    version = value[0] << 8 | value[1]
    if version > newest:
        raise MalformedRequest(f"group record value of version {version}; 0 to {newest} are known")
    return version


def group_key(group_id: str) -> bytes:
    """Return the key of a classic group."""
    group = group_id.encode()
    return b"\x00\x02" + _INT16.pack(len(group)) + group


def read_group_key(key: bytes) -> str:
    """Return the group id, with which the keys of all kinds start."""
    return Reader(key, 2).string()


def group_value(value: GroupMetadataValue) -> bytes:
    """Encode the value of a classic group in version 3."""
    return b"\x00\x03" + value.encode(3)


def read_group_value(value: bytes) -> GroupMetadataValue:
    """Decode versions 0 to 4; a member without a rebalance timeout gets its session timeout."""
    group = GroupMetadataValue.read(Reader(value, 2), _version(value, GroupMetadataValue.MAX_VERSION))
    for member in group.members:
        if member.rebalance_timeout == -1:
            member.rebalance_timeout = member.session_timeout
    return group


def empty_group(protocol_type: str | None, generation: int, since_ms: int) -> GroupMetadataValue:
    """Return the value of a group without members, new or after its last one left."""
    return GroupMetadataValue(
        protocol_type=protocol_type or "",
        generation=generation,
        protocol=None,
        leader=None,
        current_state_timestamp=since_ms,
    )


def batch_bytes(records: list[Record]) -> int:
    """Return the size of one uncompressed batch of `records`."""
    return BATCH_HEADER_BYTES + sum(record_bytes(delta, record) for delta, record in enumerate(records))


def record_bytes(delta: int, record: Record) -> int:
    """Return the size of one record at this position in a batch."""
    key, value = record
    body = 3 + _varint_bytes(delta) + _varint_bytes(len(key)) + len(key)
    body += 1 if value is None else _varint_bytes(len(value)) + len(value)
    return body + _varint_bytes(body)


def _varint_bytes(value: int) -> int:
    return max(1, (2 * value).bit_length() + 6) // 7 if value else 1
