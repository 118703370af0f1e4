"""OffsetDelete (API 47). Generated from schema/offset_delete.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_hi = Struct(">hi")
_fixed_ih = Struct(">ih")


class OffsetDeleteRequestPartition(Structure):
    """One element of topics.partitions in OffsetDeleteRequest."""

    __slots__ = ("partition_index",)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index: int = partition_index


def _read_OffsetDeleteRequestPartition(r: Reader, v: int) -> OffsetDeleteRequestPartition:
    m = OffsetDeleteRequestPartition.__new__(OffsetDeleteRequestPartition)
    m.partition_index = r.int32()
    return m


def _write_OffsetDeleteRequestPartition(w: Writer, m: OffsetDeleteRequestPartition, v: int) -> None:
    w.int32(m.partition_index)


class OffsetDeleteRequestTopic(Structure):
    """One element of topics in OffsetDeleteRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[OffsetDeleteRequestPartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is EMPTY else partitions


def _read_OffsetDeleteRequestTopic(r: Reader, v: int) -> OffsetDeleteRequestTopic:
    m = OffsetDeleteRequestTopic.__new__(OffsetDeleteRequestTopic)
    m.name = r.string()
    m.partitions = [_read_OffsetDeleteRequestPartition(r, v) for _ in r.each(r.count(4))]
    return m


def _write_OffsetDeleteRequestTopic(w: Writer, m: OffsetDeleteRequestTopic, v: int) -> None:
    w.string(m.name)
    w.count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_OffsetDeleteRequestPartition(w, partition, v)


class OffsetDeleteRequest(Request["OffsetDeleteResponse"]):
    """OffsetDeleteRequest, a request: version 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 47
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", topics: list[OffsetDeleteRequestTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetDeleteRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetDeleteRequest:
        return _read_OffsetDeleteRequest(r, version)


def _read_OffsetDeleteRequest(r: Reader, v: int) -> OffsetDeleteRequest:
    m = OffsetDeleteRequest.__new__(OffsetDeleteRequest)
    m.group_id = r.string()
    m.topics = [_read_OffsetDeleteRequestTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetDeleteRequest(w: Writer, m: OffsetDeleteRequest, v: int) -> None:
    w.string(m.group_id)
    w.count(len(m.topics))
    for topic in w.each(m.topics):
        _write_OffsetDeleteRequestTopic(w, topic, v)


class OffsetDeleteResponsePartition(Structure):
    """One element of topics.partitions in OffsetDeleteResponse."""

    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


def _read_OffsetDeleteResponsePartition(r: Reader, v: int) -> OffsetDeleteResponsePartition:
    m = OffsetDeleteResponsePartition.__new__(OffsetDeleteResponsePartition)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    return m


def _write_OffsetDeleteResponsePartition(w: Writer, m: OffsetDeleteResponsePartition, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)


class OffsetDeleteResponseTopic(Structure):
    """One element of topics in OffsetDeleteResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[OffsetDeleteResponsePartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is EMPTY else partitions


def _read_OffsetDeleteResponseTopic(r: Reader, v: int) -> OffsetDeleteResponseTopic:
    m = OffsetDeleteResponseTopic.__new__(OffsetDeleteResponseTopic)
    m.name = r.string()
    m.partitions = [_read_OffsetDeleteResponsePartition(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetDeleteResponseTopic(w: Writer, m: OffsetDeleteResponseTopic, v: int) -> None:
    w.string(m.name)
    w.count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_OffsetDeleteResponsePartition(w, partition, v)


class OffsetDeleteResponse(Message):
    """OffsetDeleteResponse, a response: version 0."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 47
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(
        self, *, error_code: int = 0, throttle_time_ms: int = 0, topics: list[OffsetDeleteResponseTopic] = EMPTY
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetDeleteResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetDeleteResponse:
        return _read_OffsetDeleteResponse(r, version)


def _read_OffsetDeleteResponse(r: Reader, v: int) -> OffsetDeleteResponse:
    m = OffsetDeleteResponse.__new__(OffsetDeleteResponse)
    m.error_code, m.throttle_time_ms = r.fixed(_fixed_hi)
    m.topics = [_read_OffsetDeleteResponseTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetDeleteResponse(w: Writer, m: OffsetDeleteResponse, v: int) -> None:
    w.buf += _fixed_hi.pack(m.error_code, m.throttle_time_ms)
    w.count(len(m.topics))
    for topic in w.each(m.topics):
        _write_OffsetDeleteResponseTopic(w, topic, v)
