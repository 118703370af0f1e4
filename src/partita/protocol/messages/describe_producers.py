"""DescribeProducers (API 61). Generated from schema/describe_producers.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_qiiqiq = Struct(">qiiqiq")


class DescribeProducersTopic(Structure):
    """One element of topics in DescribeProducersRequest."""

    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


def _read_DescribeProducersTopic(r: Reader, v: int) -> DescribeProducersTopic:
    m = DescribeProducersTopic.__new__(DescribeProducersTopic)
    m.name = r.compact_string()
    m.partition_indexes = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_DescribeProducersTopic(w: Writer, m: DescribeProducersTopic, v: int) -> None:
    w.compact_string(m.name)
    w.compact_int32_array(m.partition_indexes)
    w.uvarint(0)


class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    """DescribeProducersRequest, a request: version 0, flexible from 0."""

    __slots__ = ("topics",)
    API_KEY: ClassVar[int] = 61
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, topics: list[DescribeProducersTopic] = EMPTY) -> None:
        self.topics: list[DescribeProducersTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeProducersRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeProducersRequest:
        return _read_DescribeProducersRequest(r, version)


def _read_DescribeProducersRequest(r: Reader, v: int) -> DescribeProducersRequest:
    m = DescribeProducersRequest.__new__(DescribeProducersRequest)
    m.topics = [_read_DescribeProducersTopic(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_DescribeProducersRequest(w: Writer, m: DescribeProducersRequest, v: int) -> None:
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribeProducersTopic(w, topic, v)
    w.uvarint(0)


class ProducerState(Structure):
    """One element of topics.partitions.active_producers in DescribeProducersResponse."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset


def _read_ProducerState(r: Reader, v: int) -> ProducerState:
    m = ProducerState.__new__(ProducerState)
    (
        m.producer_id,
        m.producer_epoch,
        m.last_sequence,
        m.last_timestamp,
        m.coordinator_epoch,
        m.current_txn_start_offset,
    ) = r.fixed(_fixed_qiiqiq)
    r.skip_tags()
    return m


def _write_ProducerState(w: Writer, m: ProducerState, v: int) -> None:
    w.buf += _fixed_qiiqiq.pack(
        m.producer_id,
        m.producer_epoch,
        m.last_sequence,
        m.last_timestamp,
        m.coordinator_epoch,
        m.current_txn_start_offset,
    )
    w.uvarint(0)


class DescribeProducersPartitionResult(Structure):
    """One element of topics.partitions in DescribeProducersResponse."""

    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: list[ProducerState] = [] if active_producers is EMPTY else active_producers


def _read_DescribeProducersPartitionResult(r: Reader, v: int) -> DescribeProducersPartitionResult:
    m = DescribeProducersPartitionResult.__new__(DescribeProducersPartitionResult)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.active_producers = [_read_ProducerState(r, v) for _ in r.each(r.compact_count(37))]
    r.skip_tags()
    return m


def _write_DescribeProducersPartitionResult(w: Writer, m: DescribeProducersPartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.active_producers))
    for active_producer in w.each(m.active_producers):
        _write_ProducerState(w, active_producer, v)
    w.uvarint(0)


class DescribeProducersTopicResult(Structure):
    """One element of topics in DescribeProducersResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[DescribeProducersPartitionResult] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[DescribeProducersPartitionResult] = [] if partitions is EMPTY else partitions


def _read_DescribeProducersTopicResult(r: Reader, v: int) -> DescribeProducersTopicResult:
    m = DescribeProducersTopicResult.__new__(DescribeProducersTopicResult)
    m.name = r.compact_string()
    m.partitions = [_read_DescribeProducersPartitionResult(r, v) for _ in r.each(r.compact_count(9))]
    r.skip_tags()
    return m


def _write_DescribeProducersTopicResult(w: Writer, m: DescribeProducersTopicResult, v: int) -> None:
    w.compact_string(m.name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DescribeProducersPartitionResult(w, partition, v)
    w.uvarint(0)


class DescribeProducersResponse(Message):
    """DescribeProducersResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 61
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[DescribeProducersTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeProducersTopicResult] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeProducersResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeProducersResponse:
        return _read_DescribeProducersResponse(r, version)


def _read_DescribeProducersResponse(r: Reader, v: int) -> DescribeProducersResponse:
    m = DescribeProducersResponse.__new__(DescribeProducersResponse)
    m.throttle_time_ms = r.int32()
    m.topics = [_read_DescribeProducersTopicResult(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_DescribeProducersResponse(w: Writer, m: DescribeProducersResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribeProducersTopicResult(w, topic, v)
    w.uvarint(0)
