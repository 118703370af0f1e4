"""DeleteTopics (API 20). Generated from schema/delete_topics.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer


class DeleteTopicState(Structure):
    """One element of topics in DeleteTopicsRequest."""

    __slots__ = ("name", "topic_id")

    def __init__(self, *, name: str | None = None, topic_id: bytes = ZERO_UUID) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id


def _read_DeleteTopicState(r: Reader, v: int) -> DeleteTopicState:
    m = DeleteTopicState.__new__(DeleteTopicState)
    m.name = r.compact_nullable_string()
    m.topic_id = r.uuid()
    r.skip_tags()
    return m


def _write_DeleteTopicState(w: Writer, m: DeleteTopicState, v: int) -> None:
    w.compact_nullable_string(m.name)
    w.uuid(m.topic_id)
    w.uvarint(0)


class DeleteTopicsRequest(Request["DeleteTopicsResponse"]):
    """DeleteTopicsRequest, a request: versions 1 to 6, flexible from 4."""

    __slots__ = ("topics", "topic_names", "timeout_ms")
    API_KEY: ClassVar[int] = 20
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self, *, topics: list[DeleteTopicState] = EMPTY, topic_names: list[str] = EMPTY, timeout_ms: int = 0
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is EMPTY else topics
        self.topic_names: list[str] = [] if topic_names is EMPTY else topic_names
        self.timeout_ms: int = timeout_ms

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteTopicsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteTopicsRequest:
        return _read_DeleteTopicsRequest(r, version)


def _read_DeleteTopicsRequest(r: Reader, v: int) -> DeleteTopicsRequest:
    m = DeleteTopicsRequest.__new__(DeleteTopicsRequest)
    if v >= 4:
        m.topics = [_read_DeleteTopicState(r, v) for _ in r.each(r.compact_count(18))] if v == 6 else []
        m.topic_names = [r.compact_string() for _ in r.each(r.compact_count(1))] if v <= 5 else []
        m.timeout_ms = r.int32()
        r.skip_tags()
    else:
        m.topic_names = [r.string() for _ in r.each(r.count(2))]
        m.timeout_ms = r.int32()
        m.topics = []
    return m


def _write_DeleteTopicsRequest(w: Writer, m: DeleteTopicsRequest, v: int) -> None:
    if v >= 4:
        if v == 6:
            w.compact_count(len(m.topics))
            for topic in w.each(m.topics):
                _write_DeleteTopicState(w, topic, v)
        if v <= 5:
            w.compact_count(len(m.topic_names))
            for topic_name in w.each(m.topic_names):
                w.compact_string(topic_name)
        w.int32(m.timeout_ms)
        w.uvarint(0)
    else:
        w.count(len(m.topic_names))
        for topic_name in w.each(m.topic_names):
            w.string(topic_name)
        w.int32(m.timeout_ms)


class DeletableTopicResult(Structure):
    """One element of responses in DeleteTopicsResponse."""

    __slots__ = ("name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_DeletableTopicResult(r: Reader, v: int) -> DeletableTopicResult:
    m = DeletableTopicResult.__new__(DeletableTopicResult)
    if v >= 4:
        m.name = r.compact_nullable_string() if v == 6 else r.compact_string()
        m.topic_id = r.uuid() if v == 6 else ZERO_UUID
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string() if v >= 5 else None
        r.skip_tags()
    else:
        m.name = r.string()
        m.error_code = r.int16()
        m.topic_id = ZERO_UUID
        m.error_message = None
    return m


def _write_DeletableTopicResult(w: Writer, m: DeletableTopicResult, v: int) -> None:
    if v >= 4:
        if v == 6:
            w.compact_nullable_string(m.name)
        else:
            w.compact_string(w.required(m.name, "name"))
        if v == 6:
            w.uuid(m.topic_id)
        w.int16(m.error_code)
        if v >= 5:
            w.compact_nullable_string(m.error_message)
        w.uvarint(0)
    else:
        w.string(w.required(m.name, "name"))
        w.int16(m.error_code)


class DeleteTopicsResponse(Message):
    """DeleteTopicsResponse, a response: versions 1 to 6, flexible from 4."""

    __slots__ = ("throttle_time_ms", "responses")
    API_KEY: ClassVar[int] = 20
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(self, *, throttle_time_ms: int = 0, responses: list[DeletableTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is EMPTY else responses

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteTopicsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteTopicsResponse:
        return _read_DeleteTopicsResponse(r, version)


def _read_DeleteTopicsResponse(r: Reader, v: int) -> DeleteTopicsResponse:
    m = DeleteTopicsResponse.__new__(DeleteTopicsResponse)
    if v >= 4:
        m.throttle_time_ms = r.int32()
        m.responses = [_read_DeletableTopicResult(r, v) for _ in r.each(r.compact_count(4))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.responses = [_read_DeletableTopicResult(r, v) for _ in r.each(r.count(4))]
    return m


def _write_DeleteTopicsResponse(w: Writer, m: DeleteTopicsResponse, v: int) -> None:
    if v >= 4:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.responses))
        for response in w.each(m.responses):
            _write_DeletableTopicResult(w, response, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.responses))
        for response in w.each(m.responses):
            _write_DeletableTopicResult(w, response, v)
