"""DeleteShareGroupState (API 86). Generated from schema/delete_share_group_state.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class DeleteStatePartition(Structure):
    """One element of topics.partitions in DeleteShareGroupStateRequest."""

    __slots__ = ("partition",)

    def __init__(self, *, partition: int = 0) -> None:
        self.partition: int = partition


def _read_DeleteStatePartition(r: Reader, v: int) -> DeleteStatePartition:
    m = DeleteStatePartition.__new__(DeleteStatePartition)
    m.partition = r.int32()
    r.skip_tags()
    return m


def _write_DeleteStatePartition(w: Writer, m: DeleteStatePartition, v: int) -> None:
    w.int32(m.partition)
    w.uvarint(0)


class DeleteStateTopic(Structure):
    """One element of topics in DeleteShareGroupStateRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[DeleteStatePartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[DeleteStatePartition] = [] if partitions is EMPTY else partitions


def _read_DeleteStateTopic(r: Reader, v: int) -> DeleteStateTopic:
    m = DeleteStateTopic.__new__(DeleteStateTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_DeleteStatePartition(r, v) for _ in r.each(r.compact_count(5))]
    r.skip_tags()
    return m


def _write_DeleteStateTopic(w: Writer, m: DeleteStateTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DeleteStatePartition(w, partition, v)
    w.uvarint(0)


class DeleteShareGroupStateRequest(Request["DeleteShareGroupStateResponse"]):
    """DeleteShareGroupStateRequest, a request: version 0, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 86
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[DeleteStateTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[DeleteStateTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteShareGroupStateRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteShareGroupStateRequest:
        return _read_DeleteShareGroupStateRequest(r, version)


def _read_DeleteShareGroupStateRequest(r: Reader, v: int) -> DeleteShareGroupStateRequest:
    m = DeleteShareGroupStateRequest.__new__(DeleteShareGroupStateRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_DeleteStateTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_DeleteShareGroupStateRequest(w: Writer, m: DeleteShareGroupStateRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DeleteStateTopic(w, topic, v)
    w.uvarint(0)


class DeleteStatePartitionResult(Structure):
    """One element of results.partitions in DeleteShareGroupStateResponse."""

    __slots__ = ("partition", "error_code", "error_message")

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_DeleteStatePartitionResult(r: Reader, v: int) -> DeleteStatePartitionResult:
    m = DeleteStatePartitionResult.__new__(DeleteStatePartitionResult)
    m.partition, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_DeleteStatePartitionResult(w: Writer, m: DeleteStatePartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class DeleteStateResult(Structure):
    """One element of results in DeleteShareGroupStateResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[DeleteStatePartitionResult] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[DeleteStatePartitionResult] = [] if partitions is EMPTY else partitions


def _read_DeleteStateResult(r: Reader, v: int) -> DeleteStateResult:
    m = DeleteStateResult.__new__(DeleteStateResult)
    m.topic_id = r.uuid()
    m.partitions = [_read_DeleteStatePartitionResult(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_DeleteStateResult(w: Writer, m: DeleteStateResult, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DeleteStatePartitionResult(w, partition, v)
    w.uvarint(0)


class DeleteShareGroupStateResponse(Message):
    """DeleteShareGroupStateResponse, a response: version 0, flexible from 0."""

    __slots__ = ("results",)
    API_KEY: ClassVar[int] = 86
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, results: list[DeleteStateResult] = EMPTY) -> None:
        self.results: list[DeleteStateResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteShareGroupStateResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteShareGroupStateResponse:
        return _read_DeleteShareGroupStateResponse(r, version)


def _read_DeleteShareGroupStateResponse(r: Reader, v: int) -> DeleteShareGroupStateResponse:
    m = DeleteShareGroupStateResponse.__new__(DeleteShareGroupStateResponse)
    m.results = [_read_DeleteStateResult(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_DeleteShareGroupStateResponse(w: Writer, m: DeleteShareGroupStateResponse, v: int) -> None:
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_DeleteStateResult(w, result, v)
    w.uvarint(0)
