"""ListOffsets (API 2). Generated from schema/list_offsets.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ib = Struct(">ib")
_fixed_ihqq = Struct(">ihqq")
_fixed_ihqqi = Struct(">ihqqi")
_fixed_iiq = Struct(">iiq")


class ListOffsetsPartition(Structure):
    """One element of topics.partitions in ListOffsetsRequest."""

    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")

    def __init__(self, *, partition_index: int = 0, current_leader_epoch: int = -1, timestamp: int = 0) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp


def _read_ListOffsetsPartition(r: Reader, v: int) -> ListOffsetsPartition:
    m = ListOffsetsPartition.__new__(ListOffsetsPartition)
    if v >= 6:
        m.partition_index, m.current_leader_epoch, m.timestamp = r.fixed(_fixed_iiq)
        r.skip_tags()
    else:
        m.partition_index = r.int32()
        m.current_leader_epoch = r.int32() if v >= 4 else -1
        m.timestamp = r.int64()
    return m


def _write_ListOffsetsPartition(w: Writer, m: ListOffsetsPartition, v: int) -> None:
    if v >= 6:
        w.buf += _fixed_iiq.pack(m.partition_index, m.current_leader_epoch, m.timestamp)
        w.uvarint(0)
    else:
        w.int32(m.partition_index)
        if v >= 4:
            w.int32(m.current_leader_epoch)
        w.int64(m.timestamp)


class ListOffsetsTopic(Structure):
    """One element of topics in ListOffsetsRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[ListOffsetsPartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is EMPTY else partitions


def _read_ListOffsetsTopic(r: Reader, v: int) -> ListOffsetsTopic:
    m = ListOffsetsTopic.__new__(ListOffsetsTopic)
    if v >= 6:
        m.name = r.compact_string()
        m.partitions = [_read_ListOffsetsPartition(r, v) for _ in r.each(r.compact_count(17))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_ListOffsetsPartition(r, v) for _ in r.each(r.count(12))]
    return m


def _write_ListOffsetsTopic(w: Writer, m: ListOffsetsTopic, v: int) -> None:
    if v >= 6:
        w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_ListOffsetsPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_ListOffsetsPartition(w, partition, v)


class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    """ListOffsetsRequest, a request: versions 1 to 11, flexible from 6."""

    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")
    API_KEY: ClassVar[int] = 2
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int | None] = 6

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms

    def write(self, w: Writer, version: int) -> None:
        _write_ListOffsetsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListOffsetsRequest:
        return _read_ListOffsetsRequest(r, version)


def _read_ListOffsetsRequest(r: Reader, v: int) -> ListOffsetsRequest:
    m = ListOffsetsRequest.__new__(ListOffsetsRequest)
    if v >= 6:
        m.replica_id, m.isolation_level = r.fixed(_fixed_ib)
        m.topics = [_read_ListOffsetsTopic(r, v) for _ in r.each(r.compact_count(3))]
        m.timeout_ms = r.int32() if v >= 10 else 0
        r.skip_tags()
    else:
        m.replica_id = r.int32()
        m.isolation_level = r.int8() if v >= 2 else 0
        m.topics = [_read_ListOffsetsTopic(r, v) for _ in r.each(r.count(6))]
        m.timeout_ms = 0
    return m


def _write_ListOffsetsRequest(w: Writer, m: ListOffsetsRequest, v: int) -> None:
    if v >= 6:
        w.buf += _fixed_ib.pack(m.replica_id, m.isolation_level)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_ListOffsetsTopic(w, topic, v)
        if v >= 10:
            w.int32(m.timeout_ms)
        w.uvarint(0)
    else:
        w.int32(m.replica_id)
        if v >= 2:
            w.int8(m.isolation_level)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_ListOffsetsTopic(w, topic, v)


class ListOffsetsPartitionResponse(Structure):
    """One element of topics.partitions in ListOffsetsResponse."""

    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch


def _read_ListOffsetsPartitionResponse(r: Reader, v: int) -> ListOffsetsPartitionResponse:
    m = ListOffsetsPartitionResponse.__new__(ListOffsetsPartitionResponse)
    if v >= 6:
        m.partition_index, m.error_code, m.timestamp, m.offset, m.leader_epoch = r.fixed(_fixed_ihqqi)
        r.skip_tags()
    else:
        m.partition_index, m.error_code, m.timestamp, m.offset = r.fixed(_fixed_ihqq)
        m.leader_epoch = r.int32() if v >= 4 else -1
    return m


def _write_ListOffsetsPartitionResponse(w: Writer, m: ListOffsetsPartitionResponse, v: int) -> None:
    if v >= 6:
        w.buf += _fixed_ihqqi.pack(m.partition_index, m.error_code, m.timestamp, m.offset, m.leader_epoch)
        w.uvarint(0)
    else:
        w.buf += _fixed_ihqq.pack(m.partition_index, m.error_code, m.timestamp, m.offset)
        if v >= 4:
            w.int32(m.leader_epoch)


class ListOffsetsTopicResponse(Structure):
    """One element of topics in ListOffsetsResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[ListOffsetsPartitionResponse] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is EMPTY else partitions


def _read_ListOffsetsTopicResponse(r: Reader, v: int) -> ListOffsetsTopicResponse:
    m = ListOffsetsTopicResponse.__new__(ListOffsetsTopicResponse)
    if v >= 6:
        m.name = r.compact_string()
        m.partitions = [_read_ListOffsetsPartitionResponse(r, v) for _ in r.each(r.compact_count(27))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_ListOffsetsPartitionResponse(r, v) for _ in r.each(r.count(22))]
    return m


def _write_ListOffsetsTopicResponse(w: Writer, m: ListOffsetsTopicResponse, v: int) -> None:
    if v >= 6:
        w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_ListOffsetsPartitionResponse(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_ListOffsetsPartitionResponse(w, partition, v)


class ListOffsetsResponse(Message):
    """ListOffsetsResponse, a response: versions 1 to 11, flexible from 6."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 2
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int | None] = 6

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[ListOffsetsTopicResponse] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_ListOffsetsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListOffsetsResponse:
        return _read_ListOffsetsResponse(r, version)


def _read_ListOffsetsResponse(r: Reader, v: int) -> ListOffsetsResponse:
    m = ListOffsetsResponse.__new__(ListOffsetsResponse)
    if v >= 6:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_ListOffsetsTopicResponse(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 2 else 0
        m.topics = [_read_ListOffsetsTopicResponse(r, v) for _ in r.each(r.count(6))]
    return m


def _write_ListOffsetsResponse(w: Writer, m: ListOffsetsResponse, v: int) -> None:
    if v >= 6:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_ListOffsetsTopicResponse(w, topic, v)
        w.uvarint(0)
    else:
        if v >= 2:
            w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_ListOffsetsTopicResponse(w, topic, v)
