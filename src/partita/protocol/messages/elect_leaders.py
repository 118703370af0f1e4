"""ElectLeaders (API 43). Generated from schema/elect_leaders.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ElectLeadersTopic(Structure):
    """One element of topic_partitions in ElectLeadersRequest."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ElectLeadersTopic(r: Reader, v: int) -> ElectLeadersTopic:
    m = ElectLeadersTopic.__new__(ElectLeadersTopic)
    if v >= 2:
        m.topic = r.compact_string()
        m.partitions = r.compact_int32_array()
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = r.int32_array()
    return m


def _write_ElectLeadersTopic(w: Writer, m: ElectLeadersTopic, v: int) -> None:
    if v >= 2:
        w.compact_string(m.topic)
        w.compact_int32_array(m.partitions)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.int32_array(m.partitions)


class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    """ElectLeadersRequest, a request: versions 0 to 2, flexible from 2."""

    __slots__ = ("election_type", "topic_partitions", "timeout_ms")
    API_KEY: ClassVar[int] = 43
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[ElectLeadersTopic] | None = EMPTY,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[ElectLeadersTopic] | None = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms: int = timeout_ms

    def write(self, w: Writer, version: int) -> None:
        _write_ElectLeadersRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ElectLeadersRequest:
        return _read_ElectLeadersRequest(r, version)


def _read_ElectLeadersRequest(r: Reader, v: int) -> ElectLeadersRequest:
    m = ElectLeadersRequest.__new__(ElectLeadersRequest)
    if v >= 2:
        m.election_type = r.int8()
        m.topic_partitions = (
            None if (n := r.compact_nullable_count(3)) < 0 else [_read_ElectLeadersTopic(r, v) for _ in r.each(n)]
        )
        m.timeout_ms = r.int32()
        r.skip_tags()
    else:
        m.election_type = r.int8() if v == 1 else 0
        m.topic_partitions = (
            None if (n := r.nullable_count(6)) < 0 else [_read_ElectLeadersTopic(r, v) for _ in r.each(n)]
        )
        m.timeout_ms = r.int32()
    return m


def _write_ElectLeadersRequest(w: Writer, m: ElectLeadersRequest, v: int) -> None:
    if v >= 2:
        w.int8(m.election_type)
        if m.topic_partitions is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.topic_partitions))
            for topic_partition in w.each(m.topic_partitions):
                _write_ElectLeadersTopic(w, topic_partition, v)
        w.int32(m.timeout_ms)
        w.uvarint(0)
    else:
        if v == 1:
            w.int8(m.election_type)
        if m.topic_partitions is None:
            w.count(-1)
        else:
            w.count(len(m.topic_partitions))
            for topic_partition in w.each(m.topic_partitions):
                _write_ElectLeadersTopic(w, topic_partition, v)
        w.int32(m.timeout_ms)


class ElectLeadersPartitionResult(Structure):
    """One element of replica_election_results.partition_result in ElectLeadersResponse."""

    __slots__ = ("partition_id", "error_code", "error_message")

    def __init__(self, *, partition_id: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_ElectLeadersPartitionResult(r: Reader, v: int) -> ElectLeadersPartitionResult:
    m = ElectLeadersPartitionResult.__new__(ElectLeadersPartitionResult)
    if v >= 2:
        m.partition_id, m.error_code = r.fixed(_fixed_ih)
        m.error_message = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.partition_id, m.error_code = r.fixed(_fixed_ih)
        m.error_message = r.nullable_string()
    return m


def _write_ElectLeadersPartitionResult(w: Writer, m: ElectLeadersPartitionResult, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_ih.pack(m.partition_id, m.error_code)
        w.compact_nullable_string(m.error_message)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.partition_id, m.error_code)
        w.nullable_string(m.error_message)


class ElectLeadersTopicResult(Structure):
    """One element of replica_election_results in ElectLeadersResponse."""

    __slots__ = ("topic", "partition_result")

    def __init__(self, *, topic: str = "", partition_result: list[ElectLeadersPartitionResult] = EMPTY) -> None:
        self.topic: str = topic
        self.partition_result: list[ElectLeadersPartitionResult] = [] if partition_result is EMPTY else partition_result


def _read_ElectLeadersTopicResult(r: Reader, v: int) -> ElectLeadersTopicResult:
    m = ElectLeadersTopicResult.__new__(ElectLeadersTopicResult)
    if v >= 2:
        m.topic = r.compact_string()
        m.partition_result = [_read_ElectLeadersPartitionResult(r, v) for _ in r.each(r.compact_count(8))]
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partition_result = [_read_ElectLeadersPartitionResult(r, v) for _ in r.each(r.count(8))]
    return m


def _write_ElectLeadersTopicResult(w: Writer, m: ElectLeadersTopicResult, v: int) -> None:
    if v >= 2:
        w.compact_string(m.topic)
        w.compact_count(len(m.partition_result))
        for partition_result_item in w.each(m.partition_result):
            _write_ElectLeadersPartitionResult(w, partition_result_item, v)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.count(len(m.partition_result))
        for partition_result_item in w.each(m.partition_result):
            _write_ElectLeadersPartitionResult(w, partition_result_item, v)


class ElectLeadersResponse(Message):
    """ElectLeadersResponse, a response: versions 0 to 2, flexible from 2."""

    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")
    API_KEY: ClassVar[int] = 43
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ElectLeadersTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ElectLeadersTopicResult] = (
            [] if replica_election_results is EMPTY else replica_election_results
        )

    def write(self, w: Writer, version: int) -> None:
        _write_ElectLeadersResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ElectLeadersResponse:
        return _read_ElectLeadersResponse(r, version)


def _read_ElectLeadersResponse(r: Reader, v: int) -> ElectLeadersResponse:
    m = ElectLeadersResponse.__new__(ElectLeadersResponse)
    if v >= 2:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.replica_election_results = [_read_ElectLeadersTopicResult(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.error_code = r.int16() if v == 1 else 0
        m.replica_election_results = [_read_ElectLeadersTopicResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_ElectLeadersResponse(w: Writer, m: ElectLeadersResponse, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.compact_count(len(m.replica_election_results))
        for replica_election_result in w.each(m.replica_election_results):
            _write_ElectLeadersTopicResult(w, replica_election_result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        if v == 1:
            w.int16(m.error_code)
        w.count(len(m.replica_election_results))
        for replica_election_result in w.each(m.replica_election_results):
            _write_ElectLeadersTopicResult(w, replica_election_result, v)
