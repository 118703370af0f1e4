"""AlterShareGroupOffsets (API 91). Generated from schema/alter_share_group_offsets.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_iq = Struct(">iq")


class AlterShareOffsetsPartition(Structure):
    """One element of topics.partitions in AlterShareGroupOffsetsRequest."""

    __slots__ = ("partition_index", "start_offset")

    def __init__(self, *, partition_index: int = 0, start_offset: int = 0) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset


def _read_AlterShareOffsetsPartition(r: Reader, v: int) -> AlterShareOffsetsPartition:
    m = AlterShareOffsetsPartition.__new__(AlterShareOffsetsPartition)
    m.partition_index, m.start_offset = r.fixed(_fixed_iq)
    r.skip_tags()
    return m


def _write_AlterShareOffsetsPartition(w: Writer, m: AlterShareOffsetsPartition, v: int) -> None:
    w.buf += _fixed_iq.pack(m.partition_index, m.start_offset)
    w.uvarint(0)


class AlterShareOffsetsTopic(Structure):
    """One element of topics in AlterShareGroupOffsetsRequest."""

    __slots__ = ("topic_name", "partitions")

    def __init__(self, *, topic_name: str = "", partitions: list[AlterShareOffsetsPartition] = EMPTY) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterShareOffsetsPartition] = [] if partitions is EMPTY else partitions


def _read_AlterShareOffsetsTopic(r: Reader, v: int) -> AlterShareOffsetsTopic:
    m = AlterShareOffsetsTopic.__new__(AlterShareOffsetsTopic)
    m.topic_name = r.compact_string()
    m.partitions = [_read_AlterShareOffsetsPartition(r, v) for _ in r.each(r.compact_count(13))]
    r.skip_tags()
    return m


def _write_AlterShareOffsetsTopic(w: Writer, m: AlterShareOffsetsTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_AlterShareOffsetsPartition(w, partition, v)
    w.uvarint(0)


class AlterShareGroupOffsetsRequest(Request["AlterShareGroupOffsetsResponse"]):
    """AlterShareGroupOffsetsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 91
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[AlterShareOffsetsTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[AlterShareOffsetsTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_AlterShareGroupOffsetsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterShareGroupOffsetsRequest:
        return _read_AlterShareGroupOffsetsRequest(r, version)


def _read_AlterShareGroupOffsetsRequest(r: Reader, v: int) -> AlterShareGroupOffsetsRequest:
    m = AlterShareGroupOffsetsRequest.__new__(AlterShareGroupOffsetsRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_AlterShareOffsetsTopic(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_AlterShareGroupOffsetsRequest(w: Writer, m: AlterShareGroupOffsetsRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_AlterShareOffsetsTopic(w, topic, v)
    w.uvarint(0)


class AlteredShareOffsetsPartition(Structure):
    """One element of responses.partitions in AlterShareGroupOffsetsResponse."""

    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_AlteredShareOffsetsPartition(r: Reader, v: int) -> AlteredShareOffsetsPartition:
    m = AlteredShareOffsetsPartition.__new__(AlteredShareOffsetsPartition)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_AlteredShareOffsetsPartition(w: Writer, m: AlteredShareOffsetsPartition, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class AlteredShareOffsetsTopic(Structure):
    """One element of responses in AlterShareGroupOffsetsResponse."""

    __slots__ = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlteredShareOffsetsPartition] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[AlteredShareOffsetsPartition] = [] if partitions is EMPTY else partitions


def _read_AlteredShareOffsetsTopic(r: Reader, v: int) -> AlteredShareOffsetsTopic:
    m = AlteredShareOffsetsTopic.__new__(AlteredShareOffsetsTopic)
    m.topic_name = r.compact_string()
    m.topic_id = r.uuid()
    m.partitions = [_read_AlteredShareOffsetsPartition(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_AlteredShareOffsetsTopic(w: Writer, m: AlteredShareOffsetsTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_AlteredShareOffsetsPartition(w, partition, v)
    w.uvarint(0)


class AlterShareGroupOffsetsResponse(Message):
    """AlterShareGroupOffsetsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY: ClassVar[int] = 91
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlteredShareOffsetsTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[AlteredShareOffsetsTopic] = [] if responses is EMPTY else responses

    def write(self, w: Writer, version: int) -> None:
        _write_AlterShareGroupOffsetsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterShareGroupOffsetsResponse:
        return _read_AlterShareGroupOffsetsResponse(r, version)


def _read_AlterShareGroupOffsetsResponse(r: Reader, v: int) -> AlterShareGroupOffsetsResponse:
    m = AlterShareGroupOffsetsResponse.__new__(AlterShareGroupOffsetsResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.responses = [_read_AlteredShareOffsetsTopic(r, v) for _ in r.each(r.compact_count(19))]
    r.skip_tags()
    return m


def _write_AlterShareGroupOffsetsResponse(w: Writer, m: AlterShareGroupOffsetsResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.responses))
    for response in w.each(m.responses):
        _write_AlteredShareOffsetsTopic(w, response, v)
    w.uvarint(0)
