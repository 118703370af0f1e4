"""LeaveGroup (API 13). Generated from schema/leave_group.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class MemberIdentity(Structure):
    """One element of members in LeaveGroupRequest."""

    __slots__ = ("member_id", "group_instance_id", "reason")

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, reason: str | None = None) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason


def _read_MemberIdentity(r: Reader, v: int) -> MemberIdentity:
    m = MemberIdentity.__new__(MemberIdentity)
    if v >= 4:
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.reason = r.compact_nullable_string() if v == 5 else None
        r.skip_tags()
    else:
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string()
        m.reason = None
    return m


def _write_MemberIdentity(w: Writer, m: MemberIdentity, v: int) -> None:
    if v >= 4:
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        if v == 5:
            w.compact_nullable_string(m.reason)
        w.uvarint(0)
    else:
        w.string(m.member_id)
        w.nullable_string(m.group_instance_id)


class LeaveGroupRequest(Request["LeaveGroupResponse"]):
    """LeaveGroupRequest, a request: versions 0 to 5, flexible from 4."""

    __slots__ = ("group_id", "members", "member_id")
    API_KEY: ClassVar[int] = 13
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(self, *, group_id: str = "", members: list[MemberIdentity] = EMPTY, member_id: str = "") -> None:
        self.group_id: str = group_id
        self.members: list[MemberIdentity] = [] if members is EMPTY else members
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_LeaveGroupRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> LeaveGroupRequest:
        return _read_LeaveGroupRequest(r, version)


def _read_LeaveGroupRequest(r: Reader, v: int) -> LeaveGroupRequest:
    m = LeaveGroupRequest.__new__(LeaveGroupRequest)
    if v >= 4:
        m.group_id = r.compact_string()
        m.members = [_read_MemberIdentity(r, v) for _ in r.each(r.compact_count(3))]
        m.member_id = ""
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.members = [_read_MemberIdentity(r, v) for _ in r.each(r.count(4))] if v == 3 else []
        m.member_id = r.string() if v <= 2 else ""
    return m


def _write_LeaveGroupRequest(w: Writer, m: LeaveGroupRequest, v: int) -> None:
    if v >= 4:
        w.compact_string(m.group_id)
        w.compact_count(len(m.members))
        for member in w.each(m.members):
            _write_MemberIdentity(w, member, v)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        if v == 3:
            w.count(len(m.members))
            for member in w.each(m.members):
                _write_MemberIdentity(w, member, v)
        if v <= 2:
            w.string(m.member_id)


class MemberResponse(Structure):
    """One element of members in LeaveGroupResponse."""

    __slots__ = ("member_id", "group_instance_id", "error_code")

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = "", error_code: int = 0) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code


def _read_MemberResponse(r: Reader, v: int) -> MemberResponse:
    m = MemberResponse.__new__(MemberResponse)
    if v >= 4:
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.error_code = r.int16()
        r.skip_tags()
    else:
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string()
        m.error_code = r.int16()
    return m


def _write_MemberResponse(w: Writer, m: MemberResponse, v: int) -> None:
    if v >= 4:
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.int16(m.error_code)
        w.uvarint(0)
    else:
        w.string(m.member_id)
        w.nullable_string(m.group_instance_id)
        w.int16(m.error_code)


class LeaveGroupResponse(Message):
    """LeaveGroupResponse, a response: versions 0 to 5, flexible from 4."""

    __slots__ = ("throttle_time_ms", "error_code", "members")
    API_KEY: ClassVar[int] = 13
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, members: list[MemberResponse] = EMPTY
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[MemberResponse] = [] if members is EMPTY else members

    def write(self, w: Writer, version: int) -> None:
        _write_LeaveGroupResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> LeaveGroupResponse:
        return _read_LeaveGroupResponse(r, version)


def _read_LeaveGroupResponse(r: Reader, v: int) -> LeaveGroupResponse:
    m = LeaveGroupResponse.__new__(LeaveGroupResponse)
    if v >= 4:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.members = [_read_MemberResponse(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.error_code = r.int16()
        m.members = [_read_MemberResponse(r, v) for _ in r.each(r.count(6))] if v == 3 else []
    return m


def _write_LeaveGroupResponse(w: Writer, m: LeaveGroupResponse, v: int) -> None:
    if v >= 4:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.compact_count(len(m.members))
        for member in w.each(m.members):
            _write_MemberResponse(w, member, v)
        w.uvarint(0)
    else:
        if v >= 1:
            w.int32(m.throttle_time_ms)
        w.int16(m.error_code)
        if v == 3:
            w.count(len(m.members))
            for member in w.each(m.members):
                _write_MemberResponse(w, member, v)
