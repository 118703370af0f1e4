"""OffsetCommit (API 8). Generated from schema/offset_commit.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_iq = Struct(">iq")
_fixed_iqi = Struct(">iqi")


class OffsetCommitRequestPartition(Structure):
    """One element of topics.partitions in OffsetCommitRequest."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


def _read_OffsetCommitRequestPartition(r: Reader, v: int) -> OffsetCommitRequestPartition:
    m = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
    if v >= 8:
        m.partition_index, m.committed_offset, m.committed_leader_epoch = r.fixed(_fixed_iqi)
        m.committed_metadata = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.partition_index, m.committed_offset = r.fixed(_fixed_iq)
        m.committed_leader_epoch = r.int32() if v >= 6 else -1
        m.committed_metadata = r.nullable_string()
    return m


def _write_OffsetCommitRequestPartition(w: Writer, m: OffsetCommitRequestPartition, v: int) -> None:
    if v >= 8:
        w.buf += _fixed_iqi.pack(m.partition_index, m.committed_offset, m.committed_leader_epoch)
        w.compact_nullable_string(m.committed_metadata)
        w.uvarint(0)
    else:
        w.buf += _fixed_iq.pack(m.partition_index, m.committed_offset)
        if v >= 6:
            w.int32(m.committed_leader_epoch)
        w.nullable_string(m.committed_metadata)


class OffsetCommitRequestTopic(Structure):
    """One element of topics in OffsetCommitRequest."""

    __slots__ = ("topic_id", "name", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, name: str = "", partitions: list[OffsetCommitRequestPartition] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str = name
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions


def _read_OffsetCommitRequestTopic(r: Reader, v: int) -> OffsetCommitRequestTopic:
    m = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
    if v >= 8:
        m.topic_id = r.uuid() if v == 10 else ZERO_UUID
        m.name = r.compact_string() if v <= 9 else ""
        m.partitions = [_read_OffsetCommitRequestPartition(r, v) for _ in r.each(r.compact_count(18))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_OffsetCommitRequestPartition(r, v) for _ in r.each(r.count(14))]
        m.topic_id = ZERO_UUID
    return m


def _write_OffsetCommitRequestTopic(w: Writer, m: OffsetCommitRequestTopic, v: int) -> None:
    if v >= 8:
        if v == 10:
            w.uuid(m.topic_id)
        if v <= 9:
            w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetCommitRequestPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetCommitRequestPartition(w, partition, v)


class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    """OffsetCommitRequest, a request: versions 2 to 10, flexible from 8."""

    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )
    API_KEY: ClassVar[int] = 8
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 8

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.retention_time_ms: int = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetCommitRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetCommitRequest:
        return _read_OffsetCommitRequest(r, version)


def _read_OffsetCommitRequest(r: Reader, v: int) -> OffsetCommitRequest:
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    if v >= 8:
        m.group_id = r.compact_string()
        m.generation_id_or_member_epoch = r.int32()
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.topics = [_read_OffsetCommitRequestTopic(r, v) for _ in r.each(r.compact_count(2))]
        m.retention_time_ms = -1
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.generation_id_or_member_epoch = r.int32()
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 7 else None
        m.retention_time_ms = r.int64() if v <= 4 else -1
        m.topics = [_read_OffsetCommitRequestTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetCommitRequest(w: Writer, m: OffsetCommitRequest, v: int) -> None:
    if v >= 8:
        w.compact_string(m.group_id)
        w.int32(m.generation_id_or_member_epoch)
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetCommitRequestTopic(w, topic, v)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        w.int32(m.generation_id_or_member_epoch)
        w.string(m.member_id)
        if v == 7:
            w.nullable_string(m.group_instance_id)
        if v <= 4:
            w.int64(m.retention_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetCommitRequestTopic(w, topic, v)


class OffsetCommitResponsePartition(Structure):
    """One element of topics.partitions in OffsetCommitResponse."""

    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


def _read_OffsetCommitResponsePartition(r: Reader, v: int) -> OffsetCommitResponsePartition:
    m = OffsetCommitResponsePartition.__new__(OffsetCommitResponsePartition)
    if v >= 8:
        m.partition_index, m.error_code = r.fixed(_fixed_ih)
        r.skip_tags()
    else:
        m.partition_index, m.error_code = r.fixed(_fixed_ih)
    return m


def _write_OffsetCommitResponsePartition(w: Writer, m: OffsetCommitResponsePartition, v: int) -> None:
    if v >= 8:
        w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.partition_index, m.error_code)


class OffsetCommitResponseTopic(Structure):
    """One element of topics in OffsetCommitResponse."""

    __slots__ = ("topic_id", "name", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, name: str = "", partitions: list[OffsetCommitResponsePartition] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str = name
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions


def _read_OffsetCommitResponseTopic(r: Reader, v: int) -> OffsetCommitResponseTopic:
    m = OffsetCommitResponseTopic.__new__(OffsetCommitResponseTopic)
    if v >= 8:
        m.topic_id = r.uuid() if v == 10 else ZERO_UUID
        m.name = r.compact_string() if v <= 9 else ""
        m.partitions = [_read_OffsetCommitResponsePartition(r, v) for _ in r.each(r.compact_count(7))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_OffsetCommitResponsePartition(r, v) for _ in r.each(r.count(6))]
        m.topic_id = ZERO_UUID
    return m


def _write_OffsetCommitResponseTopic(w: Writer, m: OffsetCommitResponseTopic, v: int) -> None:
    if v >= 8:
        if v == 10:
            w.uuid(m.topic_id)
        if v <= 9:
            w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetCommitResponsePartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetCommitResponsePartition(w, partition, v)


class OffsetCommitResponse(Message):
    """OffsetCommitResponse, a response: versions 2 to 10, flexible from 8."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 8
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 8

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[OffsetCommitResponseTopic] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetCommitResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetCommitResponse:
        return _read_OffsetCommitResponse(r, version)


def _read_OffsetCommitResponse(r: Reader, v: int) -> OffsetCommitResponse:
    m = OffsetCommitResponse.__new__(OffsetCommitResponse)
    if v >= 8:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_OffsetCommitResponseTopic(r, v) for _ in r.each(r.compact_count(2))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 3 else 0
        m.topics = [_read_OffsetCommitResponseTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetCommitResponse(w: Writer, m: OffsetCommitResponse, v: int) -> None:
    if v >= 8:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetCommitResponseTopic(w, topic, v)
        w.uvarint(0)
    else:
        if v >= 3:
            w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetCommitResponseTopic(w, topic, v)
