"""DescribeShareGroupOffsets (API 90). Generated from schema/describe_share_group_offsets.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_iqi = Struct(">iqi")


class DescribeShareOffsetsTopic(Structure):
    """One element of groups.topics in DescribeShareGroupOffsetsRequest."""

    __slots__ = ("topic_name", "partitions")

    def __init__(self, *, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_DescribeShareOffsetsTopic(r: Reader, v: int) -> DescribeShareOffsetsTopic:
    m = DescribeShareOffsetsTopic.__new__(DescribeShareOffsetsTopic)
    m.topic_name = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_DescribeShareOffsetsTopic(w: Writer, m: DescribeShareOffsetsTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class DescribeShareOffsetsGroup(Structure):
    """One element of groups in DescribeShareGroupOffsetsRequest."""

    __slots__ = ("group_id", "topics")

    def __init__(self, *, group_id: str = "", topics: list[DescribeShareOffsetsTopic] | None = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareOffsetsTopic] | None = [] if topics is EMPTY else topics


def _read_DescribeShareOffsetsGroup(r: Reader, v: int) -> DescribeShareOffsetsGroup:
    m = DescribeShareOffsetsGroup.__new__(DescribeShareOffsetsGroup)
    m.group_id = r.compact_string()
    m.topics = (
        None if (n := r.compact_nullable_count(3)) < 0 else [_read_DescribeShareOffsetsTopic(r, v) for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_DescribeShareOffsetsGroup(w: Writer, m: DescribeShareOffsetsGroup, v: int) -> None:
    w.compact_string(m.group_id)
    if m.topics is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DescribeShareOffsetsTopic(w, topic, v)
    w.uvarint(0)


class DescribeShareGroupOffsetsRequest(Request["DescribeShareGroupOffsetsResponse"]):
    """DescribeShareGroupOffsetsRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("groups",)
    API_KEY: ClassVar[int] = 90
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, groups: list[DescribeShareOffsetsGroup] = EMPTY) -> None:
        self.groups: list[DescribeShareOffsetsGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeShareGroupOffsetsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeShareGroupOffsetsRequest:
        return _read_DescribeShareGroupOffsetsRequest(r, version)


def _read_DescribeShareGroupOffsetsRequest(r: Reader, v: int) -> DescribeShareGroupOffsetsRequest:
    m = DescribeShareGroupOffsetsRequest.__new__(DescribeShareGroupOffsetsRequest)
    m.groups = [_read_DescribeShareOffsetsGroup(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_DescribeShareGroupOffsetsRequest(w: Writer, m: DescribeShareGroupOffsetsRequest, v: int) -> None:
    w.compact_count(len(m.groups))
    for group in w.each(m.groups):
        _write_DescribeShareOffsetsGroup(w, group, v)
    w.uvarint(0)


class DescribedShareOffsetsPartition(Structure):
    """One element of groups.topics.partitions in DescribeShareGroupOffsetsResponse."""

    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.leader_epoch: int = leader_epoch
        self.lag: int = lag
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_DescribedShareOffsetsPartition(r: Reader, v: int) -> DescribedShareOffsetsPartition:
    m = DescribedShareOffsetsPartition.__new__(DescribedShareOffsetsPartition)
    m.partition_index, m.start_offset, m.leader_epoch = r.fixed(_fixed_iqi)
    m.lag = r.int64() if v == 1 else -1
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_DescribedShareOffsetsPartition(w: Writer, m: DescribedShareOffsetsPartition, v: int) -> None:
    w.buf += _fixed_iqi.pack(m.partition_index, m.start_offset, m.leader_epoch)
    if v == 1:
        w.int64(m.lag)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class DescribedShareOffsetsTopic(Structure):
    """One element of groups.topics in DescribeShareGroupOffsetsResponse."""

    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribedShareOffsetsPartition] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[DescribedShareOffsetsPartition] = [] if partitions is EMPTY else partitions


def _read_DescribedShareOffsetsTopic(r: Reader, v: int) -> DescribedShareOffsetsTopic:
    m = DescribedShareOffsetsTopic.__new__(DescribedShareOffsetsTopic)
    m.topic_name = r.compact_string()
    m.topic_id = r.uuid()
    m.partitions = [_read_DescribedShareOffsetsPartition(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_DescribedShareOffsetsTopic(w: Writer, m: DescribedShareOffsetsTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DescribedShareOffsetsPartition(w, partition, v)
    w.uvarint(0)


class DescribedShareOffsetsGroup(Structure):
    """One element of groups in DescribeShareGroupOffsetsResponse."""

    __slots__ = ("group_id", "topics", "error_code", "error_message")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribedShareOffsetsTopic] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribedShareOffsetsTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_DescribedShareOffsetsGroup(r: Reader, v: int) -> DescribedShareOffsetsGroup:
    m = DescribedShareOffsetsGroup.__new__(DescribedShareOffsetsGroup)
    m.group_id = r.compact_string()
    m.topics = [_read_DescribedShareOffsetsTopic(r, v) for _ in r.each(r.compact_count(19))]
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_DescribedShareOffsetsGroup(w: Writer, m: DescribedShareOffsetsGroup, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribedShareOffsetsTopic(w, topic, v)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class DescribeShareGroupOffsetsResponse(Message):
    """DescribeShareGroupOffsetsResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY: ClassVar[int] = 90
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, groups: list[DescribedShareOffsetsGroup] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedShareOffsetsGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeShareGroupOffsetsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeShareGroupOffsetsResponse:
        return _read_DescribeShareGroupOffsetsResponse(r, version)


def _read_DescribeShareGroupOffsetsResponse(r: Reader, v: int) -> DescribeShareGroupOffsetsResponse:
    m = DescribeShareGroupOffsetsResponse.__new__(DescribeShareGroupOffsetsResponse)
    m.throttle_time_ms = r.int32()
    m.groups = [_read_DescribedShareOffsetsGroup(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_DescribeShareGroupOffsetsResponse(w: Writer, m: DescribeShareGroupOffsetsResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.groups))
    for group in w.each(m.groups):
        _write_DescribedShareOffsetsGroup(w, group, v)
    w.uvarint(0)
