"""DeleteShareGroupOffsets (API 92). Generated from schema/delete_share_group_offsets.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class DeleteShareOffsetsTopic(Structure):
    """One element of topics in DeleteShareGroupOffsetsRequest."""

    __slots__ = ("topic_name",)

    def __init__(self, *, topic_name: str = "") -> None:
        self.topic_name: str = topic_name


def _read_DeleteShareOffsetsTopic(r: Reader, v: int) -> DeleteShareOffsetsTopic:
    m = DeleteShareOffsetsTopic.__new__(DeleteShareOffsetsTopic)
    m.topic_name = r.compact_string()
    r.skip_tags()
    return m


def _write_DeleteShareOffsetsTopic(w: Writer, m: DeleteShareOffsetsTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.uvarint(0)


class DeleteShareGroupOffsetsRequest(Request["DeleteShareGroupOffsetsResponse"]):
    """DeleteShareGroupOffsetsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("group_id", "topics")
    API_KEY: ClassVar[int] = 92
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_id: str = "", topics: list[DeleteShareOffsetsTopic] = EMPTY) -> None:
        self.group_id: str = group_id
        self.topics: list[DeleteShareOffsetsTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteShareGroupOffsetsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteShareGroupOffsetsRequest:
        return _read_DeleteShareGroupOffsetsRequest(r, version)


def _read_DeleteShareGroupOffsetsRequest(r: Reader, v: int) -> DeleteShareGroupOffsetsRequest:
    m = DeleteShareGroupOffsetsRequest.__new__(DeleteShareGroupOffsetsRequest)
    m.group_id = r.compact_string()
    m.topics = [_read_DeleteShareOffsetsTopic(r, v) for _ in r.each(r.compact_count(2))]
    r.skip_tags()
    return m


def _write_DeleteShareGroupOffsetsRequest(w: Writer, m: DeleteShareGroupOffsetsRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DeleteShareOffsetsTopic(w, topic, v)
    w.uvarint(0)


class DeletedShareOffsetsTopic(Structure):
    """One element of responses in DeleteShareGroupOffsetsResponse."""

    __slots__ = ("topic_name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_DeletedShareOffsetsTopic(r: Reader, v: int) -> DeletedShareOffsetsTopic:
    m = DeletedShareOffsetsTopic.__new__(DeletedShareOffsetsTopic)
    m.topic_name = r.compact_string()
    m.topic_id = r.uuid()
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_DeletedShareOffsetsTopic(w: Writer, m: DeletedShareOffsetsTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.uuid(m.topic_id)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class DeleteShareGroupOffsetsResponse(Message):
    """DeleteShareGroupOffsetsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY: ClassVar[int] = 92
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeletedShareOffsetsTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[DeletedShareOffsetsTopic] = [] if responses is EMPTY else responses

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteShareGroupOffsetsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteShareGroupOffsetsResponse:
        return _read_DeleteShareGroupOffsetsResponse(r, version)


def _read_DeleteShareGroupOffsetsResponse(r: Reader, v: int) -> DeleteShareGroupOffsetsResponse:
    m = DeleteShareGroupOffsetsResponse.__new__(DeleteShareGroupOffsetsResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.responses = [_read_DeletedShareOffsetsTopic(r, v) for _ in r.each(r.compact_count(21))]
    r.skip_tags()
    return m


def _write_DeleteShareGroupOffsetsResponse(w: Writer, m: DeleteShareGroupOffsetsResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.responses))
    for response in w.each(m.responses):
        _write_DeletedShareOffsetsTopic(w, response, v)
    w.uvarint(0)
