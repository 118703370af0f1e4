"""SyncGroup (API 14). Generated from schema/sync_group.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class SyncGroupRequestAssignment(Structure):
    """One element of assignments in SyncGroupRequest."""

    __slots__ = ("member_id", "assignment")

    def __init__(self, *, member_id: str = "", assignment: Buffer = b"") -> None:
        self.member_id: str = member_id
        self.assignment: Buffer = assignment


def _read_SyncGroupRequestAssignment(r: Reader, v: int) -> SyncGroupRequestAssignment:
    m = SyncGroupRequestAssignment.__new__(SyncGroupRequestAssignment)
    if v >= 4:
        m.member_id = r.compact_string()
        m.assignment = r.compact_bytes()
        r.skip_tags()
    else:
        m.member_id = r.string()
        m.assignment = r.bytes()
    return m


def _write_SyncGroupRequestAssignment(w: Writer, m: SyncGroupRequestAssignment, v: int) -> None:
    if v >= 4:
        w.compact_string(m.member_id)
        w.compact_bytes(m.assignment)
        w.uvarint(0)
    else:
        w.string(m.member_id)
        w.bytes(m.assignment)


class SyncGroupRequest(Request["SyncGroupResponse"]):
    """SyncGroupRequest, a request: versions 0 to 5, flexible from 4."""

    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    API_KEY: ClassVar[int] = 14
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is EMPTY else assignments

    def write(self, w: Writer, version: int) -> None:
        _write_SyncGroupRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> SyncGroupRequest:
        return _read_SyncGroupRequest(r, version)


def _read_SyncGroupRequest(r: Reader, v: int) -> SyncGroupRequest:
    m = SyncGroupRequest.__new__(SyncGroupRequest)
    if v >= 4:
        m.group_id = r.compact_string()
        m.generation_id = r.int32()
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.protocol_type = r.compact_nullable_string() if v == 5 else None
        m.protocol_name = r.compact_nullable_string() if v == 5 else None
        m.assignments = [_read_SyncGroupRequestAssignment(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.generation_id = r.int32()
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 3 else None
        m.assignments = [_read_SyncGroupRequestAssignment(r, v) for _ in r.each(r.count(6))]
        m.protocol_type = None
        m.protocol_name = None
    return m


def _write_SyncGroupRequest(w: Writer, m: SyncGroupRequest, v: int) -> None:
    if v >= 4:
        w.compact_string(m.group_id)
        w.int32(m.generation_id)
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        if v == 5:
            w.compact_nullable_string(m.protocol_type)
            w.compact_nullable_string(m.protocol_name)
        w.compact_count(len(m.assignments))
        for assignment in w.each(m.assignments):
            _write_SyncGroupRequestAssignment(w, assignment, v)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        w.int32(m.generation_id)
        w.string(m.member_id)
        if v == 3:
            w.nullable_string(m.group_instance_id)
        w.count(len(m.assignments))
        for assignment in w.each(m.assignments):
            _write_SyncGroupRequestAssignment(w, assignment, v)


class SyncGroupResponse(Message):
    """SyncGroupResponse, a response: versions 0 to 5, flexible from 4."""

    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")
    API_KEY: ClassVar[int] = 14
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: Buffer = b"",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: Buffer = assignment

    def write(self, w: Writer, version: int) -> None:
        _write_SyncGroupResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> SyncGroupResponse:
        return _read_SyncGroupResponse(r, version)


def _read_SyncGroupResponse(r: Reader, v: int) -> SyncGroupResponse:
    m = SyncGroupResponse.__new__(SyncGroupResponse)
    if v >= 4:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.protocol_type = r.compact_nullable_string() if v == 5 else None
        m.protocol_name = r.compact_nullable_string() if v == 5 else None
        m.assignment = r.compact_bytes()
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.error_code = r.int16()
        m.assignment = r.bytes()
        m.protocol_type = None
        m.protocol_name = None
    return m


def _write_SyncGroupResponse(w: Writer, m: SyncGroupResponse, v: int) -> None:
    if v >= 4:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        if v == 5:
            w.compact_nullable_string(m.protocol_type)
            w.compact_nullable_string(m.protocol_name)
        w.compact_bytes(m.assignment)
        w.uvarint(0)
    else:
        if v >= 1:
            w.int32(m.throttle_time_ms)
        w.int16(m.error_code)
        w.bytes(m.assignment)
