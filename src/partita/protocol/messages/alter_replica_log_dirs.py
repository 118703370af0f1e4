"""AlterReplicaLogDirs (API 34). Generated from schema/alter_replica_log_dirs.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class AlterReplicaLogDirTopic(Structure):
    """One element of dirs.topics in AlterReplicaLogDirsRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_AlterReplicaLogDirTopic(r: Reader, v: int) -> AlterReplicaLogDirTopic:
    m = AlterReplicaLogDirTopic.__new__(AlterReplicaLogDirTopic)
    if v >= 2:
        m.name = r.compact_string()
        m.partitions = r.compact_int32_array()
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = r.int32_array()
    return m


def _write_AlterReplicaLogDirTopic(w: Writer, m: AlterReplicaLogDirTopic, v: int) -> None:
    if v >= 2:
        w.compact_string(m.name)
        w.compact_int32_array(m.partitions)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.int32_array(m.partitions)


class AlterReplicaLogDir(Structure):
    """One element of dirs in AlterReplicaLogDirsRequest."""

    __slots__ = ("path", "topics")

    def __init__(self, *, path: str = "", topics: list[AlterReplicaLogDirTopic] = EMPTY) -> None:
        self.path: str = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is EMPTY else topics


def _read_AlterReplicaLogDir(r: Reader, v: int) -> AlterReplicaLogDir:
    m = AlterReplicaLogDir.__new__(AlterReplicaLogDir)
    if v >= 2:
        m.path = r.compact_string()
        m.topics = [_read_AlterReplicaLogDirTopic(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.path = r.string()
        m.topics = [_read_AlterReplicaLogDirTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_AlterReplicaLogDir(w: Writer, m: AlterReplicaLogDir, v: int) -> None:
    if v >= 2:
        w.compact_string(m.path)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_AlterReplicaLogDirTopic(w, topic, v)
        w.uvarint(0)
    else:
        w.string(m.path)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_AlterReplicaLogDirTopic(w, topic, v)


class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    """AlterReplicaLogDirsRequest, a request: versions 1 to 2, flexible from 2."""

    __slots__ = ("dirs",)
    API_KEY: ClassVar[int] = 34
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, dirs: list[AlterReplicaLogDir] = EMPTY) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is EMPTY else dirs

    def write(self, w: Writer, version: int) -> None:
        _write_AlterReplicaLogDirsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterReplicaLogDirsRequest:
        return _read_AlterReplicaLogDirsRequest(r, version)


def _read_AlterReplicaLogDirsRequest(r: Reader, v: int) -> AlterReplicaLogDirsRequest:
    m = AlterReplicaLogDirsRequest.__new__(AlterReplicaLogDirsRequest)
    if v >= 2:
        m.dirs = [_read_AlterReplicaLogDir(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.dirs = [_read_AlterReplicaLogDir(r, v) for _ in r.each(r.count(6))]
    return m


def _write_AlterReplicaLogDirsRequest(w: Writer, m: AlterReplicaLogDirsRequest, v: int) -> None:
    if v >= 2:
        w.compact_count(len(m.dirs))
        for dir in w.each(m.dirs):
            _write_AlterReplicaLogDir(w, dir, v)
        w.uvarint(0)
    else:
        w.count(len(m.dirs))
        for dir in w.each(m.dirs):
            _write_AlterReplicaLogDir(w, dir, v)


class AlterReplicaLogDirPartitionResult(Structure):
    """One element of results.partitions in AlterReplicaLogDirsResponse."""

    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


def _read_AlterReplicaLogDirPartitionResult(r: Reader, v: int) -> AlterReplicaLogDirPartitionResult:
    m = AlterReplicaLogDirPartitionResult.__new__(AlterReplicaLogDirPartitionResult)
    if v >= 2:
        m.partition_index, m.error_code = r.fixed(_fixed_ih)
        r.skip_tags()
    else:
        m.partition_index, m.error_code = r.fixed(_fixed_ih)
    return m


def _write_AlterReplicaLogDirPartitionResult(w: Writer, m: AlterReplicaLogDirPartitionResult, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.partition_index, m.error_code)


class AlterReplicaLogDirTopicResult(Structure):
    """One element of results in AlterReplicaLogDirsResponse."""

    __slots__ = ("topic_name", "partitions")

    def __init__(self, *, topic_name: str = "", partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is EMPTY else partitions


def _read_AlterReplicaLogDirTopicResult(r: Reader, v: int) -> AlterReplicaLogDirTopicResult:
    m = AlterReplicaLogDirTopicResult.__new__(AlterReplicaLogDirTopicResult)
    if v >= 2:
        m.topic_name = r.compact_string()
        m.partitions = [_read_AlterReplicaLogDirPartitionResult(r, v) for _ in r.each(r.compact_count(7))]
        r.skip_tags()
    else:
        m.topic_name = r.string()
        m.partitions = [_read_AlterReplicaLogDirPartitionResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_AlterReplicaLogDirTopicResult(w: Writer, m: AlterReplicaLogDirTopicResult, v: int) -> None:
    if v >= 2:
        w.compact_string(m.topic_name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_AlterReplicaLogDirPartitionResult(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.topic_name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_AlterReplicaLogDirPartitionResult(w, partition, v)


class AlterReplicaLogDirsResponse(Message):
    """AlterReplicaLogDirsResponse, a response: versions 1 to 2, flexible from 2."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY: ClassVar[int] = 34
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, throttle_time_ms: int = 0, results: list[AlterReplicaLogDirTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_AlterReplicaLogDirsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterReplicaLogDirsResponse:
        return _read_AlterReplicaLogDirsResponse(r, version)


def _read_AlterReplicaLogDirsResponse(r: Reader, v: int) -> AlterReplicaLogDirsResponse:
    m = AlterReplicaLogDirsResponse.__new__(AlterReplicaLogDirsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.results = [_read_AlterReplicaLogDirTopicResult(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results = [_read_AlterReplicaLogDirTopicResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_AlterReplicaLogDirsResponse(w: Writer, m: AlterReplicaLogDirsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_AlterReplicaLogDirTopicResult(w, result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results))
        for result in w.each(m.results):
            _write_AlterReplicaLogDirTopicResult(w, result, v)
