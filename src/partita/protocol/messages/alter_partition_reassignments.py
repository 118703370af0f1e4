"""AlterPartitionReassignments (API 45). Generated from schema/alter_partition_reassignments.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ReassignablePartition(Structure):
    """One element of topics.partitions in AlterPartitionReassignmentsRequest."""

    __slots__ = ("partition_index", "replicas")

    def __init__(self, *, partition_index: int = 0, replicas: list[int] | None = None) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] | None = replicas


def _read_ReassignablePartition(r: Reader, v: int) -> ReassignablePartition:
    m = ReassignablePartition.__new__(ReassignablePartition)
    m.partition_index = r.int32()
    m.replicas = r.compact_nullable_int32_array()
    r.skip_tags()
    return m


def _write_ReassignablePartition(w: Writer, m: ReassignablePartition, v: int) -> None:
    w.int32(m.partition_index)
    if m.replicas is None:
        w.compact_count(-1)
    else:
        w.compact_int32_array(m.replicas)
    w.uvarint(0)


class ReassignableTopic(Structure):
    """One element of topics in AlterPartitionReassignmentsRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[ReassignablePartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartition] = [] if partitions is EMPTY else partitions


def _read_ReassignableTopic(r: Reader, v: int) -> ReassignableTopic:
    m = ReassignableTopic.__new__(ReassignableTopic)
    m.name = r.compact_string()
    m.partitions = [_read_ReassignablePartition(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_ReassignableTopic(w: Writer, m: ReassignableTopic, v: int) -> None:
    w.compact_string(m.name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ReassignablePartition(w, partition, v)
    w.uvarint(0)


class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    """AlterPartitionReassignmentsRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")
    API_KEY: ClassVar[int] = 45
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_AlterPartitionReassignmentsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterPartitionReassignmentsRequest:
        return _read_AlterPartitionReassignmentsRequest(r, version)


def _read_AlterPartitionReassignmentsRequest(r: Reader, v: int) -> AlterPartitionReassignmentsRequest:
    m = AlterPartitionReassignmentsRequest.__new__(AlterPartitionReassignmentsRequest)
    m.timeout_ms = r.int32()
    m.allow_replication_factor_change = r.boolean() if v == 1 else True
    m.topics = [_read_ReassignableTopic(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_AlterPartitionReassignmentsRequest(w: Writer, m: AlterPartitionReassignmentsRequest, v: int) -> None:
    w.int32(m.timeout_ms)
    if v == 1:
        w.boolean(m.allow_replication_factor_change)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_ReassignableTopic(w, topic, v)
    w.uvarint(0)


class ReassignablePartitionResponse(Structure):
    """One element of responses.partitions in AlterPartitionReassignmentsResponse."""

    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_ReassignablePartitionResponse(r: Reader, v: int) -> ReassignablePartitionResponse:
    m = ReassignablePartitionResponse.__new__(ReassignablePartitionResponse)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_ReassignablePartitionResponse(w: Writer, m: ReassignablePartitionResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class ReassignableTopicResponse(Structure):
    """One element of responses in AlterPartitionReassignmentsResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[ReassignablePartitionResponse] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is EMPTY else partitions


def _read_ReassignableTopicResponse(r: Reader, v: int) -> ReassignableTopicResponse:
    m = ReassignableTopicResponse.__new__(ReassignableTopicResponse)
    m.name = r.compact_string()
    m.partitions = [_read_ReassignablePartitionResponse(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_ReassignableTopicResponse(w: Writer, m: ReassignableTopicResponse, v: int) -> None:
    w.compact_string(m.name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ReassignablePartitionResponse(w, partition, v)
    w.uvarint(0)


class AlterPartitionReassignmentsResponse(Message):
    """AlterPartitionReassignmentsResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")
    API_KEY: ClassVar[int] = 45
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is EMPTY else responses

    def write(self, w: Writer, version: int) -> None:
        _write_AlterPartitionReassignmentsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterPartitionReassignmentsResponse:
        return _read_AlterPartitionReassignmentsResponse(r, version)


def _read_AlterPartitionReassignmentsResponse(r: Reader, v: int) -> AlterPartitionReassignmentsResponse:
    m = AlterPartitionReassignmentsResponse.__new__(AlterPartitionReassignmentsResponse)
    m.throttle_time_ms = r.int32()
    m.allow_replication_factor_change = r.boolean() if v == 1 else True
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    m.responses = [_read_ReassignableTopicResponse(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_AlterPartitionReassignmentsResponse(w: Writer, m: AlterPartitionReassignmentsResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    if v == 1:
        w.boolean(m.allow_replication_factor_change)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.responses))
    for response in w.each(m.responses):
        _write_ReassignableTopicResponse(w, response, v)
    w.uvarint(0)
