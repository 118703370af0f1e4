"""ReadShareGroupStateSummary (API 87). Generated from schema/read_share_group_state_summary.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_iiq = Struct(">iiq")


class ReadStateSummaryPartition(Structure):
    """One element of topics.partitions in ReadShareGroupStateSummaryRequest."""

    __slots__ = ("partition", "leader_epoch")

    def __init__(self, *, partition: int = 0, leader_epoch: int = 0) -> None:
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch


def _read_ReadStateSummaryPartition(r: Reader, v: int) -> ReadStateSummaryPartition:
    m = ReadStateSummaryPartition.__new__(ReadStateSummaryPartition)
    m.partition, m.leader_epoch = r.fixed(_fixed_ii)
    r.skip_tags()
    return m


def _write_ReadStateSummaryPartition(w: Writer, m: ReadStateSummaryPartition, v: int) -> None:
    w.buf += _fixed_ii.pack(m.partition, m.leader_epoch)
    w.uvarint(0)


class ReadStateSummaryTopic(Structure):
    """One element of topics in ReadShareGroupStateSummaryRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ReadStateSummaryPartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ReadStateSummaryPartition] = [] if partitions is EMPTY else partitions


def _read_ReadStateSummaryTopic(r: Reader, v: int) -> ReadStateSummaryTopic:
    m = ReadStateSummaryTopic.__new__(ReadStateSummaryTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_ReadStateSummaryPartition(r, v) for _ in r.each(r.compact_count(9))]
    r.skip_tags()
    return m


def _write_ReadStateSummaryTopic(w: Writer, m: ReadStateSummaryTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ReadStateSummaryPartition(w, partition, v)
    w.uvarint(0)


class ReadShareGroupStateSummaryRequest(Request["ReadShareGroupStateSummaryResponse"]):
    """ReadShareGroupStateSummaryRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 87
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[ReadStateSummaryTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[ReadStateSummaryTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_ReadShareGroupStateSummaryRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ReadShareGroupStateSummaryRequest:
        return _read_ReadShareGroupStateSummaryRequest(r, version)


def _read_ReadShareGroupStateSummaryRequest(r: Reader, v: int) -> ReadShareGroupStateSummaryRequest:
    m = ReadShareGroupStateSummaryRequest.__new__(ReadShareGroupStateSummaryRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_ReadStateSummaryTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ReadShareGroupStateSummaryRequest(w: Writer, m: ReadShareGroupStateSummaryRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_ReadStateSummaryTopic(w, topic, v)
    w.uvarint(0)


class ReadStateSummaryPartitionResult(Structure):
    """One element of results.partitions in ReadShareGroupStateSummaryResponse."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count


def _read_ReadStateSummaryPartitionResult(r: Reader, v: int) -> ReadStateSummaryPartitionResult:
    m = ReadStateSummaryPartitionResult.__new__(ReadStateSummaryPartitionResult)
    m.partition, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.state_epoch, m.leader_epoch, m.start_offset = r.fixed(_fixed_iiq)
    m.delivery_complete_count = r.int32() if v == 1 else -1
    r.skip_tags()
    return m


def _write_ReadStateSummaryPartitionResult(w: Writer, m: ReadStateSummaryPartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.buf += _fixed_iiq.pack(m.state_epoch, m.leader_epoch, m.start_offset)
    if v == 1:
        w.int32(m.delivery_complete_count)
    w.uvarint(0)


class ReadStateSummaryResult(Structure):
    """One element of results in ReadShareGroupStateSummaryResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, partitions: list[ReadStateSummaryPartitionResult] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ReadStateSummaryPartitionResult] = [] if partitions is EMPTY else partitions


def _read_ReadStateSummaryResult(r: Reader, v: int) -> ReadStateSummaryResult:
    m = ReadStateSummaryResult.__new__(ReadStateSummaryResult)
    m.topic_id = r.uuid()
    m.partitions = [_read_ReadStateSummaryPartitionResult(r, v) for _ in r.each(r.compact_count(24))]
    r.skip_tags()
    return m


def _write_ReadStateSummaryResult(w: Writer, m: ReadStateSummaryResult, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ReadStateSummaryPartitionResult(w, partition, v)
    w.uvarint(0)


class ReadShareGroupStateSummaryResponse(Message):
    """ReadShareGroupStateSummaryResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("results",)
    API_KEY: ClassVar[int] = 87
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, results: list[ReadStateSummaryResult] = EMPTY) -> None:
        self.results: list[ReadStateSummaryResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_ReadShareGroupStateSummaryResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ReadShareGroupStateSummaryResponse:
        return _read_ReadShareGroupStateSummaryResponse(r, version)


def _read_ReadShareGroupStateSummaryResponse(r: Reader, v: int) -> ReadShareGroupStateSummaryResponse:
    m = ReadShareGroupStateSummaryResponse.__new__(ReadShareGroupStateSummaryResponse)
    m.results = [_read_ReadStateSummaryResult(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ReadShareGroupStateSummaryResponse(w: Writer, m: ReadShareGroupStateSummaryResponse, v: int) -> None:
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_ReadStateSummaryResult(w, result, v)
    w.uvarint(0)
