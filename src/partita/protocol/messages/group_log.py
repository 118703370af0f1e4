"""Group log. Generated from schema/group_log.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Buffer, Message, Reader, Structure, Writer

_fixed_ii = Struct(">ii")
_fixed_qi = Struct(">qi")


class LegacyOffsetCommitKey(Message):
    """LegacyOffsetCommitKey, a record_key: version 0."""

    __slots__ = ("group", "topic", "partition")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group: str = group
        self.topic: str = topic
        self.partition: int = partition

    def write(self, w: Writer, version: int) -> None:
        _write_LegacyOffsetCommitKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> LegacyOffsetCommitKey:
        return _read_LegacyOffsetCommitKey(r, version)


def _read_LegacyOffsetCommitKey(r: Reader, v: int) -> LegacyOffsetCommitKey:
    m = LegacyOffsetCommitKey.__new__(LegacyOffsetCommitKey)
    m.group = r.string()
    m.topic = r.string()
    m.partition = r.int32()
    return m


def _write_LegacyOffsetCommitKey(w: Writer, m: LegacyOffsetCommitKey, v: int) -> None:
    w.string(m.group)
    w.string(m.topic)
    w.int32(m.partition)


class OffsetCommitKey(Message):
    """OffsetCommitKey, a record_key: version 1."""

    __slots__ = ("group", "topic", "partition")
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group: str = group
        self.topic: str = topic
        self.partition: int = partition

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetCommitKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetCommitKey:
        return _read_OffsetCommitKey(r, version)


def _read_OffsetCommitKey(r: Reader, v: int) -> OffsetCommitKey:
    m = OffsetCommitKey.__new__(OffsetCommitKey)
    m.group = r.string()
    m.topic = r.string()
    m.partition = r.int32()
    return m


def _write_OffsetCommitKey(w: Writer, m: OffsetCommitKey, v: int) -> None:
    w.string(m.group)
    w.string(m.topic)
    w.int32(m.partition)


class OffsetCommitValue(Message):
    """OffsetCommitValue, a record_value: versions 0 to 4, flexible from 4."""

    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "topic_id", "expire_timestamp")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        topic_id: bytes = ZERO_UUID,
        expire_timestamp: int = -1,
    ) -> None:
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch
        self.metadata: str = metadata
        self.commit_timestamp: int = commit_timestamp
        self.topic_id: bytes = topic_id
        self.expire_timestamp: int = expire_timestamp

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetCommitValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetCommitValue:
        return _read_OffsetCommitValue(r, version)


def _read_OffsetCommitValue(r: Reader, v: int) -> OffsetCommitValue:
    m = OffsetCommitValue.__new__(OffsetCommitValue)
    if v >= 4:
        m.offset, m.leader_epoch = r.fixed(_fixed_qi)
        m.metadata = r.compact_string()
        m.commit_timestamp = r.int64()
        m.topic_id = ZERO_UUID
        m.expire_timestamp = -1
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0:
                m.topic_id = r.uuid()
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.offset = r.int64()
        m.leader_epoch = r.int32() if v == 3 else -1
        m.metadata = r.string()
        m.commit_timestamp = r.int64()
        m.expire_timestamp = r.int64() if v == 1 else -1
        m.topic_id = ZERO_UUID
    return m


def _write_OffsetCommitValue(w: Writer, m: OffsetCommitValue, v: int) -> None:
    if v >= 4:
        w.buf += _fixed_qi.pack(m.offset, m.leader_epoch)
        w.compact_string(m.metadata)
        w.int64(m.commit_timestamp)
        tags: list[tuple[int, Writer]] = []
        if m.topic_id != ZERO_UUID:
            t = Writer()
            t.uuid(m.topic_id)
            tags.append((0, t))
        w.tags(tags)
    else:
        w.int64(m.offset)
        if v == 3:
            w.int32(m.leader_epoch)
        w.string(m.metadata)
        w.int64(m.commit_timestamp)
        if v == 1:
            w.int64(m.expire_timestamp)


class GroupMetadataKey(Message):
    """GroupMetadataKey, a record_key: version 2."""

    __slots__ = ("group",)
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group: str = "") -> None:
        self.group: str = group

    def write(self, w: Writer, version: int) -> None:
        _write_GroupMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> GroupMetadataKey:
        return _read_GroupMetadataKey(r, version)


def _read_GroupMetadataKey(r: Reader, v: int) -> GroupMetadataKey:
    m = GroupMetadataKey.__new__(GroupMetadataKey)
    m.group = r.string()
    return m


def _write_GroupMetadataKey(w: Writer, m: GroupMetadataKey, v: int) -> None:
    w.string(m.group)


class GroupMetadataValueMember(Structure):
    """One element of members in GroupMetadataValue."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
        "assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: Buffer = b"",
        assignment: Buffer = b"",
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.rebalance_timeout: int = rebalance_timeout
        self.session_timeout: int = session_timeout
        self.subscription: Buffer = subscription
        self.assignment: Buffer = assignment


def _read_GroupMetadataValueMember(r: Reader, v: int) -> GroupMetadataValueMember:
    m = GroupMetadataValueMember.__new__(GroupMetadataValueMember)
    if v >= 4:
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.client_id = r.compact_string()
        m.client_host = r.compact_string()
        m.rebalance_timeout, m.session_timeout = r.fixed(_fixed_ii)
        m.subscription = r.compact_bytes()
        m.assignment = r.compact_bytes()
        r.skip_tags()
    else:
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 3 else None
        m.client_id = r.string()
        m.client_host = r.string()
        m.rebalance_timeout = r.int32() if v >= 1 else -1
        m.session_timeout = r.int32()
        m.subscription = r.bytes()
        m.assignment = r.bytes()
    return m


def _write_GroupMetadataValueMember(w: Writer, m: GroupMetadataValueMember, v: int) -> None:
    if v >= 4:
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.compact_string(m.client_id)
        w.compact_string(m.client_host)
        w.buf += _fixed_ii.pack(m.rebalance_timeout, m.session_timeout)
        w.compact_bytes(m.subscription)
        w.compact_bytes(m.assignment)
        w.uvarint(0)
    else:
        w.string(m.member_id)
        if v == 3:
            w.nullable_string(m.group_instance_id)
        w.string(m.client_id)
        w.string(m.client_host)
        if v >= 1:
            w.int32(m.rebalance_timeout)
        w.int32(m.session_timeout)
        w.bytes(m.subscription)
        w.bytes(m.assignment)


class GroupMetadataValue(Message):
    """GroupMetadataValue, a record_value: versions 0 to 4, flexible from 4."""

    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[GroupMetadataValueMember] = EMPTY,
    ) -> None:
        self.protocol_type: str = protocol_type
        self.generation: int = generation
        self.protocol: str | None = protocol
        self.leader: str | None = leader
        self.current_state_timestamp: int = current_state_timestamp
        self.members: list[GroupMetadataValueMember] = [] if members is EMPTY else members

    def write(self, w: Writer, version: int) -> None:
        _write_GroupMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> GroupMetadataValue:
        return _read_GroupMetadataValue(r, version)


def _read_GroupMetadataValue(r: Reader, v: int) -> GroupMetadataValue:
    m = GroupMetadataValue.__new__(GroupMetadataValue)
    if v >= 4:
        m.protocol_type = r.compact_string()
        m.generation = r.int32()
        m.protocol = r.compact_nullable_string()
        m.leader = r.compact_nullable_string()
        m.current_state_timestamp = r.int64()
        m.members = [_read_GroupMetadataValueMember(r, v) for _ in r.each(r.compact_count(15))]
        r.skip_tags()
    else:
        m.protocol_type = r.string()
        m.generation = r.int32()
        m.protocol = r.nullable_string()
        m.leader = r.nullable_string()
        m.current_state_timestamp = r.int64() if v >= 2 else -1
        m.members = [_read_GroupMetadataValueMember(r, v) for _ in r.each(r.count(18))]
    return m


def _write_GroupMetadataValue(w: Writer, m: GroupMetadataValue, v: int) -> None:
    if v >= 4:
        w.compact_string(m.protocol_type)
        w.int32(m.generation)
        w.compact_nullable_string(m.protocol)
        w.compact_nullable_string(m.leader)
        w.int64(m.current_state_timestamp)
        w.compact_count(len(m.members))
        for member in w.each(m.members):
            _write_GroupMetadataValueMember(w, member, v)
        w.uvarint(0)
    else:
        w.string(m.protocol_type)
        w.int32(m.generation)
        w.nullable_string(m.protocol)
        w.nullable_string(m.leader)
        if v >= 2:
            w.int64(m.current_state_timestamp)
        w.count(len(m.members))
        for member in w.each(m.members):
            _write_GroupMetadataValueMember(w, member, v)
