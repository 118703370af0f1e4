"""ReadShareGroupState (API 84). Generated from schema/read_share_group_state.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_iq = Struct(">iq")
_fixed_qqbh = Struct(">qqbh")


class ReadStatePartition(Structure):
    """One element of topics.partitions in ReadShareGroupStateRequest."""

    __slots__ = ("partition", "leader_epoch")

    def __init__(self, *, partition: int = 0, leader_epoch: int = 0) -> None:
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch


def _read_ReadStatePartition(r: Reader, v: int) -> ReadStatePartition:
    m = ReadStatePartition.__new__(ReadStatePartition)
    m.partition, m.leader_epoch = r.fixed(_fixed_ii)
    r.skip_tags()
    return m


def _write_ReadStatePartition(w: Writer, m: ReadStatePartition, v: int) -> None:
    w.buf += _fixed_ii.pack(m.partition, m.leader_epoch)
    w.uvarint(0)


class ReadStateTopic(Structure):
    """One element of topics in ReadShareGroupStateRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ReadStatePartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ReadStatePartition] = [] if partitions is EMPTY else partitions


def _read_ReadStateTopic(r: Reader, v: int) -> ReadStateTopic:
    m = ReadStateTopic.__new__(ReadStateTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_ReadStatePartition(r, v) for _ in r.each(r.compact_count(9))]
    r.skip_tags()
    return m


def _write_ReadStateTopic(w: Writer, m: ReadStateTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ReadStatePartition(w, partition, v)
    w.uvarint(0)


class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"]):
    """ReadShareGroupStateRequest, a request: version 0, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 84
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[ReadStateTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[ReadStateTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_ReadShareGroupStateRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ReadShareGroupStateRequest:
        return _read_ReadShareGroupStateRequest(r, version)


def _read_ReadShareGroupStateRequest(r: Reader, v: int) -> ReadShareGroupStateRequest:
    m = ReadShareGroupStateRequest.__new__(ReadShareGroupStateRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_ReadStateTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ReadShareGroupStateRequest(w: Writer, m: ReadShareGroupStateRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_ReadStateTopic(w, topic, v)
    w.uvarint(0)


class ReadStateBatch(Structure):
    """One element of results.partitions.state_batches in ReadShareGroupStateResponse."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self, *, first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count


def _read_ReadStateBatch(r: Reader, v: int) -> ReadStateBatch:
    m = ReadStateBatch.__new__(ReadStateBatch)
    m.first_offset, m.last_offset, m.delivery_state, m.delivery_count = r.fixed(_fixed_qqbh)
    r.skip_tags()
    return m


def _write_ReadStateBatch(w: Writer, m: ReadStateBatch, v: int) -> None:
    w.buf += _fixed_qqbh.pack(m.first_offset, m.last_offset, m.delivery_state, m.delivery_count)
    w.uvarint(0)


class ReadStatePartitionResult(Structure):
    """One element of results.partitions in ReadShareGroupStateResponse."""

    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches")

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[ReadStateBatch] = EMPTY,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.start_offset: int = start_offset
        self.state_batches: list[ReadStateBatch] = [] if state_batches is EMPTY else state_batches


def _read_ReadStatePartitionResult(r: Reader, v: int) -> ReadStatePartitionResult:
    m = ReadStatePartitionResult.__new__(ReadStatePartitionResult)
    m.partition, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.state_epoch, m.start_offset = r.fixed(_fixed_iq)
    m.state_batches = [_read_ReadStateBatch(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_ReadStatePartitionResult(w: Writer, m: ReadStatePartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.buf += _fixed_iq.pack(m.state_epoch, m.start_offset)
    w.compact_count(len(m.state_batches))
    for state_batche in w.each(m.state_batches):
        _write_ReadStateBatch(w, state_batche, v)
    w.uvarint(0)


class ReadStateResult(Structure):
    """One element of results in ReadShareGroupStateResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ReadStatePartitionResult] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ReadStatePartitionResult] = [] if partitions is EMPTY else partitions


def _read_ReadStateResult(r: Reader, v: int) -> ReadStateResult:
    m = ReadStateResult.__new__(ReadStateResult)
    m.topic_id = r.uuid()
    m.partitions = [_read_ReadStatePartitionResult(r, v) for _ in r.each(r.compact_count(21))]
    r.skip_tags()
    return m


def _write_ReadStateResult(w: Writer, m: ReadStateResult, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ReadStatePartitionResult(w, partition, v)
    w.uvarint(0)


class ReadShareGroupStateResponse(Message):
    """ReadShareGroupStateResponse, a response: version 0, flexible from 0."""

    __slots__ = ("results",)
    API_KEY: ClassVar[int] = 84
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, results: list[ReadStateResult] = EMPTY) -> None:
        self.results: list[ReadStateResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_ReadShareGroupStateResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ReadShareGroupStateResponse:
        return _read_ReadShareGroupStateResponse(r, version)


def _read_ReadShareGroupStateResponse(r: Reader, v: int) -> ReadShareGroupStateResponse:
    m = ReadShareGroupStateResponse.__new__(ReadShareGroupStateResponse)
    m.results = [_read_ReadStateResult(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ReadShareGroupStateResponse(w: Writer, m: ReadShareGroupStateResponse, v: int) -> None:
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_ReadStateResult(w, result, v)
    w.uvarint(0)
