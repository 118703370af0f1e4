"""ListPartitionReassignments (API 46). Generated from schema/list_partition_reassignments.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ListPartitionReassignmentsTopic(Structure):
    """One element of topics in ListPartitionReassignmentsRequest."""

    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


def _read_ListPartitionReassignmentsTopic(r: Reader, v: int) -> ListPartitionReassignmentsTopic:
    m = ListPartitionReassignmentsTopic.__new__(ListPartitionReassignmentsTopic)
    m.name = r.compact_string()
    m.partition_indexes = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ListPartitionReassignmentsTopic(w: Writer, m: ListPartitionReassignmentsTopic, v: int) -> None:
    w.compact_string(m.name)
    w.compact_int32_array(m.partition_indexes)
    w.uvarint(0)


class ListPartitionReassignmentsRequest(Request["ListPartitionReassignmentsResponse"]):
    """ListPartitionReassignmentsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("timeout_ms", "topics")
    API_KEY: ClassVar[int] = 46
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, timeout_ms: int = 60000, topics: list[ListPartitionReassignmentsTopic] | None = None) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ListPartitionReassignmentsTopic] | None = topics

    def write(self, w: Writer, version: int) -> None:
        _write_ListPartitionReassignmentsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListPartitionReassignmentsRequest:
        return _read_ListPartitionReassignmentsRequest(r, version)


def _read_ListPartitionReassignmentsRequest(r: Reader, v: int) -> ListPartitionReassignmentsRequest:
    m = ListPartitionReassignmentsRequest.__new__(ListPartitionReassignmentsRequest)
    m.timeout_ms = r.int32()
    m.topics = (
        None
        if (n := r.compact_nullable_count(3)) < 0
        else [_read_ListPartitionReassignmentsTopic(r, v) for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_ListPartitionReassignmentsRequest(w: Writer, m: ListPartitionReassignmentsRequest, v: int) -> None:
    w.int32(m.timeout_ms)
    if m.topics is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_ListPartitionReassignmentsTopic(w, topic, v)
    w.uvarint(0)


class OngoingPartitionReassignment(Structure):
    """One element of topics.partitions in ListPartitionReassignmentsResponse."""

    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] = [] if replicas is EMPTY else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is EMPTY else removing_replicas


def _read_OngoingPartitionReassignment(r: Reader, v: int) -> OngoingPartitionReassignment:
    m = OngoingPartitionReassignment.__new__(OngoingPartitionReassignment)
    m.partition_index = r.int32()
    m.replicas = r.compact_int32_array()
    m.adding_replicas = r.compact_int32_array()
    m.removing_replicas = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_OngoingPartitionReassignment(w: Writer, m: OngoingPartitionReassignment, v: int) -> None:
    w.int32(m.partition_index)
    w.compact_int32_array(m.replicas)
    w.compact_int32_array(m.adding_replicas)
    w.compact_int32_array(m.removing_replicas)
    w.uvarint(0)


class OngoingTopicReassignment(Structure):
    """One element of topics in ListPartitionReassignmentsResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[OngoingPartitionReassignment] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is EMPTY else partitions


def _read_OngoingTopicReassignment(r: Reader, v: int) -> OngoingTopicReassignment:
    m = OngoingTopicReassignment.__new__(OngoingTopicReassignment)
    m.name = r.compact_string()
    m.partitions = [_read_OngoingPartitionReassignment(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_OngoingTopicReassignment(w: Writer, m: OngoingTopicReassignment, v: int) -> None:
    w.compact_string(m.name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_OngoingPartitionReassignment(w, partition, v)
    w.uvarint(0)


class ListPartitionReassignmentsResponse(Message):
    """ListPartitionReassignmentsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")
    API_KEY: ClassVar[int] = 46
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[OngoingTopicReassignment] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_ListPartitionReassignmentsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListPartitionReassignmentsResponse:
        return _read_ListPartitionReassignmentsResponse(r, version)


def _read_ListPartitionReassignmentsResponse(r: Reader, v: int) -> ListPartitionReassignmentsResponse:
    m = ListPartitionReassignmentsResponse.__new__(ListPartitionReassignmentsResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.topics = [_read_OngoingTopicReassignment(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_ListPartitionReassignmentsResponse(w: Writer, m: ListPartitionReassignmentsResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_OngoingTopicReassignment(w, topic, v)
    w.uvarint(0)
