"""DescribeLogDirs (API 35). Generated from schema/describe_log_dirs.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_iqq = Struct(">iqq")


class DescribableLogDirTopic(Structure):
    """One element of topics in DescribeLogDirsRequest."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_DescribableLogDirTopic(r: Reader, v: int) -> DescribableLogDirTopic:
    m = DescribableLogDirTopic.__new__(DescribableLogDirTopic)
    if v >= 2:
        m.topic = r.compact_string()
        m.partitions = r.compact_int32_array()
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = r.int32_array()
    return m


def _write_DescribableLogDirTopic(w: Writer, m: DescribableLogDirTopic, v: int) -> None:
    if v >= 2:
        w.compact_string(m.topic)
        w.compact_int32_array(m.partitions)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.int32_array(m.partitions)


class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    """DescribeLogDirsRequest, a request: versions 1 to 5, flexible from 2."""

    __slots__ = ("topics",)
    API_KEY: ClassVar[int] = 35
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, topics: list[DescribableLogDirTopic] | None = EMPTY) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeLogDirsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeLogDirsRequest:
        return _read_DescribeLogDirsRequest(r, version)


def _read_DescribeLogDirsRequest(r: Reader, v: int) -> DescribeLogDirsRequest:
    m = DescribeLogDirsRequest.__new__(DescribeLogDirsRequest)
    if v >= 2:
        m.topics = (
            None if (n := r.compact_nullable_count(3)) < 0 else [_read_DescribableLogDirTopic(r, v) for _ in r.each(n)]
        )
        r.skip_tags()
    else:
        m.topics = None if (n := r.nullable_count(6)) < 0 else [_read_DescribableLogDirTopic(r, v) for _ in r.each(n)]
    return m


def _write_DescribeLogDirsRequest(w: Writer, m: DescribeLogDirsRequest, v: int) -> None:
    if v >= 2:
        if m.topics is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.topics))
            for topic in w.each(m.topics):
                _write_DescribableLogDirTopic(w, topic, v)
        w.uvarint(0)
    else:
        if m.topics is None:
            w.count(-1)
        else:
            w.count(len(m.topics))
            for topic in w.each(m.topics):
                _write_DescribableLogDirTopic(w, topic, v)


class DescribeLogDirsPartition(Structure):
    """One element of results.topics.partitions in DescribeLogDirsResponse."""

    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")

    def __init__(
        self, *, partition_index: int = 0, partition_size: int = 0, offset_lag: int = 0, is_future_key: bool = False
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key


def _read_DescribeLogDirsPartition(r: Reader, v: int) -> DescribeLogDirsPartition:
    m = DescribeLogDirsPartition.__new__(DescribeLogDirsPartition)
    if v >= 2:
        m.partition_index, m.partition_size, m.offset_lag = r.fixed(_fixed_iqq)
        m.is_future_key = r.boolean()
        r.skip_tags()
    else:
        m.partition_index, m.partition_size, m.offset_lag = r.fixed(_fixed_iqq)
        m.is_future_key = r.boolean()
    return m


def _write_DescribeLogDirsPartition(w: Writer, m: DescribeLogDirsPartition, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_iqq.pack(m.partition_index, m.partition_size, m.offset_lag)
        w.boolean(m.is_future_key)
        w.uvarint(0)
    else:
        w.buf += _fixed_iqq.pack(m.partition_index, m.partition_size, m.offset_lag)
        w.boolean(m.is_future_key)


class DescribeLogDirsTopic(Structure):
    """One element of results.topics in DescribeLogDirsResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[DescribeLogDirsPartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is EMPTY else partitions


def _read_DescribeLogDirsTopic(r: Reader, v: int) -> DescribeLogDirsTopic:
    m = DescribeLogDirsTopic.__new__(DescribeLogDirsTopic)
    if v >= 2:
        m.name = r.compact_string()
        m.partitions = [_read_DescribeLogDirsPartition(r, v) for _ in r.each(r.compact_count(22))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_DescribeLogDirsPartition(r, v) for _ in r.each(r.count(21))]
    return m


def _write_DescribeLogDirsTopic(w: Writer, m: DescribeLogDirsTopic, v: int) -> None:
    if v >= 2:
        w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_DescribeLogDirsPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_DescribeLogDirsPartition(w, partition, v)


class DescribeLogDirsResult(Structure):
    """One element of results in DescribeLogDirsResponse."""

    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is EMPTY else topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes
        self.is_cordoned: bool = is_cordoned


def _read_DescribeLogDirsResult(r: Reader, v: int) -> DescribeLogDirsResult:
    m = DescribeLogDirsResult.__new__(DescribeLogDirsResult)
    if v >= 2:
        m.error_code = r.int16()
        m.log_dir = r.compact_string()
        m.topics = [_read_DescribeLogDirsTopic(r, v) for _ in r.each(r.compact_count(3))]
        m.total_bytes = r.int64() if v >= 4 else -1
        m.usable_bytes = r.int64() if v >= 4 else -1
        m.is_cordoned = r.boolean() if v == 5 else False
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.log_dir = r.string()
        m.topics = [_read_DescribeLogDirsTopic(r, v) for _ in r.each(r.count(6))]
        m.total_bytes = -1
        m.usable_bytes = -1
        m.is_cordoned = False
    return m


def _write_DescribeLogDirsResult(w: Writer, m: DescribeLogDirsResult, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_string(m.log_dir)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DescribeLogDirsTopic(w, topic, v)
        if v >= 4:
            w.int64(m.total_bytes)
            w.int64(m.usable_bytes)
        if v == 5:
            w.boolean(m.is_cordoned)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.string(m.log_dir)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_DescribeLogDirsTopic(w, topic, v)


class DescribeLogDirsResponse(Message):
    """DescribeLogDirsResponse, a response: versions 1 to 5, flexible from 2."""

    __slots__ = ("throttle_time_ms", "error_code", "results")
    API_KEY: ClassVar[int] = 35
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, results: list[DescribeLogDirsResult] = EMPTY
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeLogDirsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeLogDirsResponse:
        return _read_DescribeLogDirsResponse(r, version)


def _read_DescribeLogDirsResponse(r: Reader, v: int) -> DescribeLogDirsResponse:
    m = DescribeLogDirsResponse.__new__(DescribeLogDirsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.error_code = r.int16() if v >= 3 else 0
        m.results = [_read_DescribeLogDirsResult(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results = [_read_DescribeLogDirsResult(r, v) for _ in r.each(r.count(8))]
        m.error_code = 0
    return m


def _write_DescribeLogDirsResponse(w: Writer, m: DescribeLogDirsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        if v >= 3:
            w.int16(m.error_code)
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_DescribeLogDirsResult(w, result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results))
        for result in w.each(m.results):
            _write_DescribeLogDirsResult(w, result, v)
