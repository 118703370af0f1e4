"""Heartbeat (API 12). Generated from schema/heartbeat.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Message, Reader, Request, Writer

_fixed_ih = Struct(">ih")


class HeartbeatRequest(Request["HeartbeatResponse"]):
    """HeartbeatRequest, a request: versions 0 to 4, flexible from 4."""

    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")
    API_KEY: ClassVar[int] = 12
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self, *, group_id: str = "", generation_id: int = 0, member_id: str = "", group_instance_id: str | None = None
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id

    def write(self, w: Writer, version: int) -> None:
        _write_HeartbeatRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> HeartbeatRequest:
        return _read_HeartbeatRequest(r, version)


def _read_HeartbeatRequest(r: Reader, v: int) -> HeartbeatRequest:
    m = HeartbeatRequest.__new__(HeartbeatRequest)
    if v >= 4:
        m.group_id = r.compact_string()
        m.generation_id = r.int32()
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.generation_id = r.int32()
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 3 else None
    return m


def _write_HeartbeatRequest(w: Writer, m: HeartbeatRequest, v: int) -> None:
    if v >= 4:
        w.compact_string(m.group_id)
        w.int32(m.generation_id)
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        w.int32(m.generation_id)
        w.string(m.member_id)
        if v == 3:
            w.nullable_string(m.group_instance_id)


class HeartbeatResponse(Message):
    """HeartbeatResponse, a response: versions 0 to 4, flexible from 4."""

    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY: ClassVar[int] = 12
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code

    def write(self, w: Writer, version: int) -> None:
        _write_HeartbeatResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> HeartbeatResponse:
        return _read_HeartbeatResponse(r, version)


def _read_HeartbeatResponse(r: Reader, v: int) -> HeartbeatResponse:
    m = HeartbeatResponse.__new__(HeartbeatResponse)
    if v >= 4:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.error_code = r.int16()
    return m


def _write_HeartbeatResponse(w: Writer, m: HeartbeatResponse, v: int) -> None:
    if v >= 4:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.uvarint(0)
    else:
        if v >= 1:
            w.int32(m.throttle_time_ms)
        w.int16(m.error_code)
