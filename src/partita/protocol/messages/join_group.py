"""JoinGroup (API 11). Generated from schema/join_group.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Request, Structure, Writer

_fixed_hi = Struct(">hi")
_fixed_ihi = Struct(">ihi")
_fixed_ii = Struct(">ii")


class JoinGroupRequestProtocol(Structure):
    """One element of protocols in JoinGroupRequest."""

    __slots__ = ("name", "metadata")

    def __init__(self, *, name: str = "", metadata: Buffer = b"") -> None:
        self.name: str = name
        self.metadata: Buffer = metadata


def _read_JoinGroupRequestProtocol(r: Reader, v: int) -> JoinGroupRequestProtocol:
    m = JoinGroupRequestProtocol.__new__(JoinGroupRequestProtocol)
    if v >= 6:
        m.name = r.compact_string()
        m.metadata = r.compact_bytes()
        r.skip_tags()
    else:
        m.name = r.string()
        m.metadata = r.bytes()
    return m


def _write_JoinGroupRequestProtocol(w: Writer, m: JoinGroupRequestProtocol, v: int) -> None:
    if v >= 6:
        w.compact_string(m.name)
        w.compact_bytes(m.metadata)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.bytes(m.metadata)


class JoinGroupRequest(Request["JoinGroupResponse"]):
    """JoinGroupRequest, a request: versions 0 to 9, flexible from 6."""

    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    API_KEY: ClassVar[int] = 11
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 9
    FLEXIBLE_FROM: ClassVar[int | None] = 6

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is EMPTY else protocols
        self.reason: str | None = reason

    def write(self, w: Writer, version: int) -> None:
        _write_JoinGroupRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> JoinGroupRequest:
        return _read_JoinGroupRequest(r, version)


def _read_JoinGroupRequest(r: Reader, v: int) -> JoinGroupRequest:
    m = JoinGroupRequest.__new__(JoinGroupRequest)
    if v >= 6:
        m.group_id = r.compact_string()
        m.session_timeout_ms, m.rebalance_timeout_ms = r.fixed(_fixed_ii)
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.protocol_type = r.compact_string()
        m.protocols = [_read_JoinGroupRequestProtocol(r, v) for _ in r.each(r.compact_count(3))]
        m.reason = r.compact_nullable_string() if v >= 8 else None
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.session_timeout_ms = r.int32()
        m.rebalance_timeout_ms = r.int32() if v >= 1 else -1
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 5 else None
        m.protocol_type = r.string()
        m.protocols = [_read_JoinGroupRequestProtocol(r, v) for _ in r.each(r.count(6))]
        m.reason = None
    return m


def _write_JoinGroupRequest(w: Writer, m: JoinGroupRequest, v: int) -> None:
    if v >= 6:
        w.compact_string(m.group_id)
        w.buf += _fixed_ii.pack(m.session_timeout_ms, m.rebalance_timeout_ms)
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.compact_string(m.protocol_type)
        w.compact_count(len(m.protocols))
        for protocol in w.each(m.protocols):
            _write_JoinGroupRequestProtocol(w, protocol, v)
        if v >= 8:
            w.compact_nullable_string(m.reason)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        w.int32(m.session_timeout_ms)
        if v >= 1:
            w.int32(m.rebalance_timeout_ms)
        w.string(m.member_id)
        if v == 5:
            w.nullable_string(m.group_instance_id)
        w.string(m.protocol_type)
        w.count(len(m.protocols))
        for protocol in w.each(m.protocols):
            _write_JoinGroupRequestProtocol(w, protocol, v)


class JoinGroupResponseMember(Structure):
    """One element of members in JoinGroupResponse."""

    __slots__ = ("member_id", "group_instance_id", "metadata")

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, metadata: Buffer = b"") -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: Buffer = metadata


def _read_JoinGroupResponseMember(r: Reader, v: int) -> JoinGroupResponseMember:
    m = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
    if v >= 6:
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.metadata = r.compact_bytes()
        r.skip_tags()
    else:
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 5 else None
        m.metadata = r.bytes()
    return m


def _write_JoinGroupResponseMember(w: Writer, m: JoinGroupResponseMember, v: int) -> None:
    if v >= 6:
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.compact_bytes(m.metadata)
        w.uvarint(0)
    else:
        w.string(m.member_id)
        if v == 5:
            w.nullable_string(m.group_instance_id)
        w.bytes(m.metadata)


class JoinGroupResponse(Message):
    """JoinGroupResponse, a response: versions 0 to 9, flexible from 6."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    API_KEY: ClassVar[int] = 11
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 9
    FLEXIBLE_FROM: ClassVar[int | None] = 6

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is EMPTY else members

    def write(self, w: Writer, version: int) -> None:
        _write_JoinGroupResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> JoinGroupResponse:
        return _read_JoinGroupResponse(r, version)


def _read_JoinGroupResponse(r: Reader, v: int) -> JoinGroupResponse:
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    if v >= 6:
        m.throttle_time_ms, m.error_code, m.generation_id = r.fixed(_fixed_ihi)
        m.protocol_type = r.compact_nullable_string() if v >= 7 else None
        m.protocol_name = r.compact_nullable_string() if v >= 7 else r.compact_string()
        m.leader = r.compact_string()
        m.skip_assignment = r.boolean() if v == 9 else False
        m.member_id = r.compact_string()
        m.members = [_read_JoinGroupResponseMember(r, v) for _ in r.each(r.compact_count(4))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 2 else 0
        m.error_code, m.generation_id = r.fixed(_fixed_hi)
        m.protocol_name = r.string()
        m.leader = r.string()
        m.member_id = r.string()
        m.members = [_read_JoinGroupResponseMember(r, v) for _ in r.each(r.count(6))]
        m.protocol_type = None
        m.skip_assignment = False
    return m


def _write_JoinGroupResponse(w: Writer, m: JoinGroupResponse, v: int) -> None:
    if v >= 6:
        w.buf += _fixed_ihi.pack(m.throttle_time_ms, m.error_code, m.generation_id)
        if v >= 7:
            w.compact_nullable_string(m.protocol_type)
        if v >= 7:
            w.compact_nullable_string(m.protocol_name)
        else:
            w.compact_string(w.required(m.protocol_name, "protocol_name"))
        w.compact_string(m.leader)
        if v == 9:
            w.boolean(m.skip_assignment)
        w.compact_string(m.member_id)
        w.compact_count(len(m.members))
        for member in w.each(m.members):
            _write_JoinGroupResponseMember(w, member, v)
        w.uvarint(0)
    else:
        if v >= 2:
            w.int32(m.throttle_time_ms)
        w.buf += _fixed_hi.pack(m.error_code, m.generation_id)
        w.string(w.required(m.protocol_name, "protocol_name"))
        w.string(m.leader)
        w.string(m.member_id)
        w.count(len(m.members))
        for member in w.each(m.members):
            _write_JoinGroupResponseMember(w, member, v)
