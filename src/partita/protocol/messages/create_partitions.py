"""CreatePartitions (API 37). Generated from schema/create_partitions.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer


class CreatePartitionsAssignment(Structure):
    """One element of topics.assignments in CreatePartitionsRequest."""

    __slots__ = ("broker_ids",)

    def __init__(self, *, broker_ids: list[int] = EMPTY) -> None:
        self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids


def _read_CreatePartitionsAssignment(r: Reader, v: int) -> CreatePartitionsAssignment:
    m = CreatePartitionsAssignment.__new__(CreatePartitionsAssignment)
    if v >= 2:
        m.broker_ids = r.compact_int32_array()
        r.skip_tags()
    else:
        m.broker_ids = r.int32_array()
    return m


def _write_CreatePartitionsAssignment(w: Writer, m: CreatePartitionsAssignment, v: int) -> None:
    if v >= 2:
        w.compact_int32_array(m.broker_ids)
        w.uvarint(0)
    else:
        w.int32_array(m.broker_ids)


class CreatePartitionsTopic(Structure):
    """One element of topics in CreatePartitionsRequest."""

    __slots__ = ("name", "count", "assignments")

    def __init__(
        self, *, name: str = "", count: int = 0, assignments: list[CreatePartitionsAssignment] | None = EMPTY
    ) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: list[CreatePartitionsAssignment] | None = [] if assignments is EMPTY else assignments


def _read_CreatePartitionsTopic(r: Reader, v: int) -> CreatePartitionsTopic:
    m = CreatePartitionsTopic.__new__(CreatePartitionsTopic)
    if v >= 2:
        m.name = r.compact_string()
        m.count = r.int32()
        m.assignments = (
            None
            if (n := r.compact_nullable_count(2)) < 0
            else [_read_CreatePartitionsAssignment(r, v) for _ in r.each(n)]
        )
        r.skip_tags()
    else:
        m.name = r.string()
        m.count = r.int32()
        m.assignments = (
            None if (n := r.nullable_count(4)) < 0 else [_read_CreatePartitionsAssignment(r, v) for _ in r.each(n)]
        )
    return m


def _write_CreatePartitionsTopic(w: Writer, m: CreatePartitionsTopic, v: int) -> None:
    if v >= 2:
        w.compact_string(m.name)
        w.int32(m.count)
        if m.assignments is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.assignments))
            for assignment in w.each(m.assignments):
                _write_CreatePartitionsAssignment(w, assignment, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.int32(m.count)
        if m.assignments is None:
            w.count(-1)
        else:
            w.count(len(m.assignments))
            for assignment in w.each(m.assignments):
                _write_CreatePartitionsAssignment(w, assignment, v)


class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    """CreatePartitionsRequest, a request: versions 0 to 3, flexible from 2."""

    __slots__ = ("topics", "timeout_ms", "validate_only")
    API_KEY: ClassVar[int] = 37
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self, *, topics: list[CreatePartitionsTopic] = EMPTY, timeout_ms: int = 0, validate_only: bool = False
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only

    def write(self, w: Writer, version: int) -> None:
        _write_CreatePartitionsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreatePartitionsRequest:
        return _read_CreatePartitionsRequest(r, version)


def _read_CreatePartitionsRequest(r: Reader, v: int) -> CreatePartitionsRequest:
    m = CreatePartitionsRequest.__new__(CreatePartitionsRequest)
    if v >= 2:
        m.topics = [_read_CreatePartitionsTopic(r, v) for _ in r.each(r.compact_count(7))]
        m.timeout_ms = r.int32()
        m.validate_only = r.boolean()
        r.skip_tags()
    else:
        m.topics = [_read_CreatePartitionsTopic(r, v) for _ in r.each(r.count(10))]
        m.timeout_ms = r.int32()
        m.validate_only = r.boolean()
    return m


def _write_CreatePartitionsRequest(w: Writer, m: CreatePartitionsRequest, v: int) -> None:
    if v >= 2:
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_CreatePartitionsTopic(w, topic, v)
        w.int32(m.timeout_ms)
        w.boolean(m.validate_only)
        w.uvarint(0)
    else:
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_CreatePartitionsTopic(w, topic, v)
        w.int32(m.timeout_ms)
        w.boolean(m.validate_only)


class CreatePartitionsTopicResult(Structure):
    """One element of results in CreatePartitionsResponse."""

    __slots__ = ("name", "error_code", "error_message")

    def __init__(self, *, name: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_CreatePartitionsTopicResult(r: Reader, v: int) -> CreatePartitionsTopicResult:
    m = CreatePartitionsTopicResult.__new__(CreatePartitionsTopicResult)
    if v >= 2:
        m.name = r.compact_string()
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.name = r.string()
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
    return m


def _write_CreatePartitionsTopicResult(w: Writer, m: CreatePartitionsTopicResult, v: int) -> None:
    if v >= 2:
        w.compact_string(m.name)
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.int16(m.error_code)
        w.nullable_string(m.error_message)


class CreatePartitionsResponse(Message):
    """CreatePartitionsResponse, a response: versions 0 to 3, flexible from 2."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY: ClassVar[int] = 37
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, throttle_time_ms: int = 0, results: list[CreatePartitionsTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_CreatePartitionsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreatePartitionsResponse:
        return _read_CreatePartitionsResponse(r, version)


def _read_CreatePartitionsResponse(r: Reader, v: int) -> CreatePartitionsResponse:
    m = CreatePartitionsResponse.__new__(CreatePartitionsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.results = [_read_CreatePartitionsTopicResult(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results = [_read_CreatePartitionsTopicResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_CreatePartitionsResponse(w: Writer, m: CreatePartitionsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_CreatePartitionsTopicResult(w, result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results))
        for result in w.each(m.results):
            _write_CreatePartitionsTopicResult(w, result, v)
