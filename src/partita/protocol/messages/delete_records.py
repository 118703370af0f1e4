"""DeleteRecords (API 21). Generated from schema/delete_records.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_iq = Struct(">iq")
_fixed_iqh = Struct(">iqh")


class DeleteRecordsPartition(Structure):
    """One element of topics.partitions in DeleteRecordsRequest."""

    __slots__ = ("partition_index", "offset")

    def __init__(self, *, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset


def _read_DeleteRecordsPartition(r: Reader, v: int) -> DeleteRecordsPartition:
    m = DeleteRecordsPartition.__new__(DeleteRecordsPartition)
    if v >= 2:
        m.partition_index, m.offset = r.fixed(_fixed_iq)
        r.skip_tags()
    else:
        m.partition_index, m.offset = r.fixed(_fixed_iq)
    return m


def _write_DeleteRecordsPartition(w: Writer, m: DeleteRecordsPartition, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_iq.pack(m.partition_index, m.offset)
        w.uvarint(0)
    else:
        w.buf += _fixed_iq.pack(m.partition_index, m.offset)


class DeleteRecordsTopic(Structure):
    """One element of topics in DeleteRecordsRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[DeleteRecordsPartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is EMPTY else partitions


def _read_DeleteRecordsTopic(r: Reader, v: int) -> DeleteRecordsTopic:
    m = DeleteRecordsTopic.__new__(DeleteRecordsTopic)
    if v >= 2:
        m.name = r.compact_string()
        m.partitions = [_read_DeleteRecordsPartition(r, v) for _ in r.each(r.compact_count(13))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_DeleteRecordsPartition(r, v) for _ in r.each(r.count(12))]
    return m


def _write_DeleteRecordsTopic(w: Writer, m: DeleteRecordsTopic, v: int) -> None:
    if v >= 2:
        w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_DeleteRecordsPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_DeleteRecordsPartition(w, partition, v)


class DeleteRecordsRequest(Request["DeleteRecordsResponse"]):
    """DeleteRecordsRequest, a request: versions 0 to 2, flexible from 2."""

    __slots__ = ("topics", "timeout_ms")
    API_KEY: ClassVar[int] = 21
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, topics: list[DeleteRecordsTopic] = EMPTY, timeout_ms: int = 0) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteRecordsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteRecordsRequest:
        return _read_DeleteRecordsRequest(r, version)


def _read_DeleteRecordsRequest(r: Reader, v: int) -> DeleteRecordsRequest:
    m = DeleteRecordsRequest.__new__(DeleteRecordsRequest)
    if v >= 2:
        m.topics = [_read_DeleteRecordsTopic(r, v) for _ in r.each(r.compact_count(3))]
        m.timeout_ms = r.int32()
        r.skip_tags()
    else:
        m.topics = [_read_DeleteRecordsTopic(r, v) for _ in r.each(r.count(6))]
        m.timeout_ms = r.int32()
    return m


def _write_DeleteRecordsRequest(w: Writer, m: DeleteRecordsRequest, v: int) -> None:
    if v >= 2:
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DeleteRecordsTopic(w, topic, v)
        w.int32(m.timeout_ms)
        w.uvarint(0)
    else:
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DeleteRecordsTopic(w, topic, v)
        w.int32(m.timeout_ms)


class DeleteRecordsPartitionResult(Structure):
    """One element of topics.partitions in DeleteRecordsResponse."""

    __slots__ = ("partition_index", "low_watermark", "error_code")

    def __init__(self, *, partition_index: int = 0, low_watermark: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.low_watermark: int = low_watermark
        self.error_code: int = error_code


def _read_DeleteRecordsPartitionResult(r: Reader, v: int) -> DeleteRecordsPartitionResult:
    m = DeleteRecordsPartitionResult.__new__(DeleteRecordsPartitionResult)
    if v >= 2:
        m.partition_index, m.low_watermark, m.error_code = r.fixed(_fixed_iqh)
        r.skip_tags()
    else:
        m.partition_index, m.low_watermark, m.error_code = r.fixed(_fixed_iqh)
    return m


def _write_DeleteRecordsPartitionResult(w: Writer, m: DeleteRecordsPartitionResult, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_iqh.pack(m.partition_index, m.low_watermark, m.error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_iqh.pack(m.partition_index, m.low_watermark, m.error_code)


class DeleteRecordsTopicResult(Structure):
    """One element of topics in DeleteRecordsResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[DeleteRecordsPartitionResult] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is EMPTY else partitions


def _read_DeleteRecordsTopicResult(r: Reader, v: int) -> DeleteRecordsTopicResult:
    m = DeleteRecordsTopicResult.__new__(DeleteRecordsTopicResult)
    if v >= 2:
        m.name = r.compact_string()
        m.partitions = [_read_DeleteRecordsPartitionResult(r, v) for _ in r.each(r.compact_count(15))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_DeleteRecordsPartitionResult(r, v) for _ in r.each(r.count(14))]
    return m


def _write_DeleteRecordsTopicResult(w: Writer, m: DeleteRecordsTopicResult, v: int) -> None:
    if v >= 2:
        w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_DeleteRecordsPartitionResult(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_DeleteRecordsPartitionResult(w, partition, v)


class DeleteRecordsResponse(Message):
    """DeleteRecordsResponse, a response: versions 0 to 2, flexible from 2."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 21
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[DeleteRecordsTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteRecordsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteRecordsResponse:
        return _read_DeleteRecordsResponse(r, version)


def _read_DeleteRecordsResponse(r: Reader, v: int) -> DeleteRecordsResponse:
    m = DeleteRecordsResponse.__new__(DeleteRecordsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_DeleteRecordsTopicResult(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_DeleteRecordsTopicResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_DeleteRecordsResponse(w: Writer, m: DeleteRecordsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DeleteRecordsTopicResult(w, topic, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DeleteRecordsTopicResult(w, topic, v)
