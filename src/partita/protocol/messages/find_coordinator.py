"""FindCoordinator (API 10). Generated from schema/find_coordinator.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class FindCoordinatorRequest(Request["FindCoordinatorResponse"]):
    """FindCoordinatorRequest, a request: versions 0 to 6, flexible from 3."""

    __slots__ = ("key", "key_type", "coordinator_keys")
    API_KEY: ClassVar[int] = 10
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(self, *, key: str = "", key_type: int = 0, coordinator_keys: list[str] = EMPTY) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is EMPTY else coordinator_keys

    def write(self, w: Writer, version: int) -> None:
        _write_FindCoordinatorRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> FindCoordinatorRequest:
        return _read_FindCoordinatorRequest(r, version)


def _read_FindCoordinatorRequest(r: Reader, v: int) -> FindCoordinatorRequest:
    m = FindCoordinatorRequest.__new__(FindCoordinatorRequest)
    if v >= 3:
        m.key = r.compact_string() if v == 3 else ""
        m.key_type = r.int8()
        m.coordinator_keys = [r.compact_string() for _ in r.each(r.compact_count(1))] if v >= 4 else []
        r.skip_tags()
    else:
        m.key = r.string()
        m.key_type = r.int8() if v >= 1 else 0
        m.coordinator_keys = []
    return m


def _write_FindCoordinatorRequest(w: Writer, m: FindCoordinatorRequest, v: int) -> None:
    if v >= 3:
        if v == 3:
            w.compact_string(m.key)
        w.int8(m.key_type)
        if v >= 4:
            w.compact_count(len(m.coordinator_keys))
            for coordinator_key in w.each(m.coordinator_keys):
                w.compact_string(coordinator_key)
        w.uvarint(0)
    else:
        w.string(m.key)
        if v >= 1:
            w.int8(m.key_type)


class Coordinator(Structure):
    """One element of coordinators in FindCoordinatorResponse."""

    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_Coordinator(r: Reader, v: int) -> Coordinator:
    m = Coordinator.__new__(Coordinator)
    m.key = r.compact_string()
    m.node_id = r.int32()
    m.host = r.compact_string()
    m.port, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_Coordinator(w: Writer, m: Coordinator, v: int) -> None:
    w.compact_string(m.key)
    w.int32(m.node_id)
    w.compact_string(m.host)
    w.buf += _fixed_ih.pack(m.port, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class FindCoordinatorResponse(Message):
    """FindCoordinatorResponse, a response: versions 0 to 6, flexible from 3."""

    __slots__ = ("throttle_time_ms", "coordinators", "error_code", "error_message", "node_id", "host", "port")
    API_KEY: ClassVar[int] = 10
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        coordinators: list[Coordinator] = EMPTY,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.coordinators: list[Coordinator] = [] if coordinators is EMPTY else coordinators
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port

    def write(self, w: Writer, version: int) -> None:
        _write_FindCoordinatorResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> FindCoordinatorResponse:
        return _read_FindCoordinatorResponse(r, version)


def _read_FindCoordinatorResponse(r: Reader, v: int) -> FindCoordinatorResponse:
    m = FindCoordinatorResponse.__new__(FindCoordinatorResponse)
    if v >= 3:
        m.throttle_time_ms = r.int32()
        m.coordinators = [_read_Coordinator(r, v) for _ in r.each(r.compact_count(14))] if v >= 4 else []
        m.error_code = r.int16() if v == 3 else 0
        m.error_message = r.compact_nullable_string() if v == 3 else ""
        m.node_id = r.int32() if v == 3 else 0
        m.host = r.compact_string() if v == 3 else ""
        m.port = r.int32() if v == 3 else 0
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.error_code = r.int16()
        m.error_message = r.nullable_string() if v >= 1 else ""
        m.node_id = r.int32()
        m.host = r.string()
        m.port = r.int32()
        m.coordinators = []
    return m


def _write_FindCoordinatorResponse(w: Writer, m: FindCoordinatorResponse, v: int) -> None:
    if v >= 3:
        w.int32(m.throttle_time_ms)
        if v >= 4:
            w.compact_count(len(m.coordinators))
            for coordinator in w.each(m.coordinators):
                _write_Coordinator(w, coordinator, v)
        if v == 3:
            w.int16(m.error_code)
            w.compact_nullable_string(m.error_message)
            w.int32(m.node_id)
            w.compact_string(m.host)
            w.int32(m.port)
        w.uvarint(0)
    else:
        if v >= 1:
            w.int32(m.throttle_time_ms)
        w.int16(m.error_code)
        if v >= 1:
            w.nullable_string(m.error_message)
        w.int32(m.node_id)
        w.string(m.host)
        w.int32(m.port)
