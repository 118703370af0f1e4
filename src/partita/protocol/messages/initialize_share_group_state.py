"""InitializeShareGroupState (API 83). Generated from schema/initialize_share_group_state.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_iiq = Struct(">iiq")


class InitializeStatePartition(Structure):
    """One element of topics.partitions in InitializeShareGroupStateRequest."""

    __slots__ = ("partition", "state_epoch", "start_offset")

    def __init__(self, *, partition: int = 0, state_epoch: int = 0, start_offset: int = 0) -> None:
        self.partition: int = partition
        self.state_epoch: int = state_epoch
        self.start_offset: int = start_offset


def _read_InitializeStatePartition(r: Reader, v: int) -> InitializeStatePartition:
    m = InitializeStatePartition.__new__(InitializeStatePartition)
    m.partition, m.state_epoch, m.start_offset = r.fixed(_fixed_iiq)
    r.skip_tags()
    return m


def _write_InitializeStatePartition(w: Writer, m: InitializeStatePartition, v: int) -> None:
    w.buf += _fixed_iiq.pack(m.partition, m.state_epoch, m.start_offset)
    w.uvarint(0)


class InitializeStateTopic(Structure):
    """One element of topics in InitializeShareGroupStateRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[InitializeStatePartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[InitializeStatePartition] = [] if partitions is EMPTY else partitions


def _read_InitializeStateTopic(r: Reader, v: int) -> InitializeStateTopic:
    m = InitializeStateTopic.__new__(InitializeStateTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_InitializeStatePartition(r, v) for _ in r.each(r.compact_count(17))]
    r.skip_tags()
    return m


def _write_InitializeStateTopic(w: Writer, m: InitializeStateTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_InitializeStatePartition(w, partition, v)
    w.uvarint(0)


class InitializeShareGroupStateRequest(Request["InitializeShareGroupStateResponse"]):
    """InitializeShareGroupStateRequest, a request: version 0, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 83
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[InitializeStateTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[InitializeStateTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_InitializeShareGroupStateRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> InitializeShareGroupStateRequest:
        return _read_InitializeShareGroupStateRequest(r, version)


def _read_InitializeShareGroupStateRequest(r: Reader, v: int) -> InitializeShareGroupStateRequest:
    m = InitializeShareGroupStateRequest.__new__(InitializeShareGroupStateRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_InitializeStateTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_InitializeShareGroupStateRequest(w: Writer, m: InitializeShareGroupStateRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_InitializeStateTopic(w, topic, v)
    w.uvarint(0)


class InitializeStatePartitionResult(Structure):
    """One element of results.partitions in InitializeShareGroupStateResponse."""

    __slots__ = ("partition", "error_code", "error_message")

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_InitializeStatePartitionResult(r: Reader, v: int) -> InitializeStatePartitionResult:
    m = InitializeStatePartitionResult.__new__(InitializeStatePartitionResult)
    m.partition, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_InitializeStatePartitionResult(w: Writer, m: InitializeStatePartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class InitializeStateResult(Structure):
    """One element of results in InitializeShareGroupStateResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, partitions: list[InitializeStatePartitionResult] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[InitializeStatePartitionResult] = [] if partitions is EMPTY else partitions


def _read_InitializeStateResult(r: Reader, v: int) -> InitializeStateResult:
    m = InitializeStateResult.__new__(InitializeStateResult)
    m.topic_id = r.uuid()
    m.partitions = [_read_InitializeStatePartitionResult(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_InitializeStateResult(w: Writer, m: InitializeStateResult, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_InitializeStatePartitionResult(w, partition, v)
    w.uvarint(0)


class InitializeShareGroupStateResponse(Message):
    """InitializeShareGroupStateResponse, a response: version 0, flexible from 0."""

    __slots__ = ("results",)
    API_KEY: ClassVar[int] = 83
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, results: list[InitializeStateResult] = EMPTY) -> None:
        self.results: list[InitializeStateResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_InitializeShareGroupStateResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> InitializeShareGroupStateResponse:
        return _read_InitializeShareGroupStateResponse(r, version)


def _read_InitializeShareGroupStateResponse(r: Reader, v: int) -> InitializeShareGroupStateResponse:
    m = InitializeShareGroupStateResponse.__new__(InitializeShareGroupStateResponse)
    m.results = [_read_InitializeStateResult(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_InitializeShareGroupStateResponse(w: Writer, m: InitializeShareGroupStateResponse, v: int) -> None:
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_InitializeStateResult(w, result, v)
    w.uvarint(0)
