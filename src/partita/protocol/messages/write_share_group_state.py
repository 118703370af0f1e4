"""WriteShareGroupState (API 85). Generated from schema/write_share_group_state.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_iiiq = Struct(">iiiq")
_fixed_qqbh = Struct(">qqbh")


class WriteStateBatch(Structure):
    """One element of topics.partitions.state_batches in WriteShareGroupStateRequest."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self, *, first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count


def _read_WriteStateBatch(r: Reader, v: int) -> WriteStateBatch:
    m = WriteStateBatch.__new__(WriteStateBatch)
    m.first_offset, m.last_offset, m.delivery_state, m.delivery_count = r.fixed(_fixed_qqbh)
    r.skip_tags()
    return m


def _write_WriteStateBatch(w: Writer, m: WriteStateBatch, v: int) -> None:
    w.buf += _fixed_qqbh.pack(m.first_offset, m.last_offset, m.delivery_state, m.delivery_count)
    w.uvarint(0)


class WriteStatePartition(Structure):
    """One element of topics.partitions in WriteShareGroupStateRequest."""

    __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[WriteStateBatch] = EMPTY,
    ) -> None:
        self.partition: int = partition
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.state_batches: list[WriteStateBatch] = [] if state_batches is EMPTY else state_batches


def _read_WriteStatePartition(r: Reader, v: int) -> WriteStatePartition:
    m = WriteStatePartition.__new__(WriteStatePartition)
    m.partition, m.state_epoch, m.leader_epoch, m.start_offset = r.fixed(_fixed_iiiq)
    m.delivery_complete_count = r.int32() if v == 1 else -1
    m.state_batches = [_read_WriteStateBatch(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_WriteStatePartition(w: Writer, m: WriteStatePartition, v: int) -> None:
    w.buf += _fixed_iiiq.pack(m.partition, m.state_epoch, m.leader_epoch, m.start_offset)
    if v == 1:
        w.int32(m.delivery_complete_count)
    w.compact_count(len(m.state_batches))
    for state_batche in w.each(m.state_batches):
        _write_WriteStateBatch(w, state_batche, v)
    w.uvarint(0)


class WriteStateTopic(Structure):
    """One element of topics in WriteShareGroupStateRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[WriteStatePartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[WriteStatePartition] = [] if partitions is EMPTY else partitions


def _read_WriteStateTopic(r: Reader, v: int) -> WriteStateTopic:
    m = WriteStateTopic.__new__(WriteStateTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_WriteStatePartition(r, v) for _ in r.each(r.compact_count(22))]
    r.skip_tags()
    return m


def _write_WriteStateTopic(w: Writer, m: WriteStateTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_WriteStatePartition(w, partition, v)
    w.uvarint(0)


class WriteShareGroupStateRequest(Request["WriteShareGroupStateResponse"]):
    """WriteShareGroupStateRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 85
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[WriteStateTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[WriteStateTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_WriteShareGroupStateRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> WriteShareGroupStateRequest:
        return _read_WriteShareGroupStateRequest(r, version)


def _read_WriteShareGroupStateRequest(r: Reader, v: int) -> WriteShareGroupStateRequest:
    m = WriteShareGroupStateRequest.__new__(WriteShareGroupStateRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_WriteStateTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_WriteShareGroupStateRequest(w: Writer, m: WriteShareGroupStateRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_WriteStateTopic(w, topic, v)
    w.uvarint(0)


class WriteStatePartitionResult(Structure):
    """One element of results.partitions in WriteShareGroupStateResponse."""

    __slots__ = ("partition", "error_code", "error_message")

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_WriteStatePartitionResult(r: Reader, v: int) -> WriteStatePartitionResult:
    m = WriteStatePartitionResult.__new__(WriteStatePartitionResult)
    m.partition, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_WriteStatePartitionResult(w: Writer, m: WriteStatePartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class WriteStateResult(Structure):
    """One element of results in WriteShareGroupStateResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[WriteStatePartitionResult] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[WriteStatePartitionResult] = [] if partitions is EMPTY else partitions


def _read_WriteStateResult(r: Reader, v: int) -> WriteStateResult:
    m = WriteStateResult.__new__(WriteStateResult)
    m.topic_id = r.uuid()
    m.partitions = [_read_WriteStatePartitionResult(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_WriteStateResult(w: Writer, m: WriteStateResult, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_WriteStatePartitionResult(w, partition, v)
    w.uvarint(0)


class WriteShareGroupStateResponse(Message):
    """WriteShareGroupStateResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("results",)
    API_KEY: ClassVar[int] = 85
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, results: list[WriteStateResult] = EMPTY) -> None:
        self.results: list[WriteStateResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_WriteShareGroupStateResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> WriteShareGroupStateResponse:
        return _read_WriteShareGroupStateResponse(r, version)


def _read_WriteShareGroupStateResponse(r: Reader, v: int) -> WriteShareGroupStateResponse:
    m = WriteShareGroupStateResponse.__new__(WriteShareGroupStateResponse)
    m.results = [_read_WriteStateResult(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_WriteShareGroupStateResponse(w: Writer, m: WriteShareGroupStateResponse, v: int) -> None:
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_WriteStateResult(w, result, v)
    w.uvarint(0)
