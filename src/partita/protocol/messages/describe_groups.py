"""DescribeGroups (API 15). Generated from schema/describe_groups.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Request, Structure, Writer


class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
    """DescribeGroupsRequest, a request: versions 0 to 6, flexible from 5."""

    __slots__ = ("groups", "include_authorized_operations")
    API_KEY: ClassVar[int] = 15
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 5

    def __init__(self, *, groups: list[str] = EMPTY, include_authorized_operations: bool = False) -> None:
        self.groups: list[str] = [] if groups is EMPTY else groups
        self.include_authorized_operations: bool = include_authorized_operations

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeGroupsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeGroupsRequest:
        return _read_DescribeGroupsRequest(r, version)


def _read_DescribeGroupsRequest(r: Reader, v: int) -> DescribeGroupsRequest:
    m = DescribeGroupsRequest.__new__(DescribeGroupsRequest)
    if v >= 5:
        m.groups = [r.compact_string() for _ in r.each(r.compact_count(1))]
        m.include_authorized_operations = r.boolean()
        r.skip_tags()
    else:
        m.groups = [r.string() for _ in r.each(r.count(2))]
        m.include_authorized_operations = r.boolean() if v >= 3 else False
    return m


def _write_DescribeGroupsRequest(w: Writer, m: DescribeGroupsRequest, v: int) -> None:
    if v >= 5:
        w.compact_count(len(m.groups))
        for group in w.each(m.groups):
            w.compact_string(group)
        w.boolean(m.include_authorized_operations)
        w.uvarint(0)
    else:
        w.count(len(m.groups))
        for group in w.each(m.groups):
            w.string(group)
        if v >= 3:
            w.boolean(m.include_authorized_operations)


class DescribedGroupMember(Structure):
    """One element of groups.members in DescribeGroupsResponse."""

    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: Buffer = b"",
        member_assignment: Buffer = b"",
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: Buffer = member_metadata
        self.member_assignment: Buffer = member_assignment


def _read_DescribedGroupMember(r: Reader, v: int) -> DescribedGroupMember:
    m = DescribedGroupMember.__new__(DescribedGroupMember)
    if v >= 5:
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.client_id = r.compact_string()
        m.client_host = r.compact_string()
        m.member_metadata = r.compact_bytes()
        m.member_assignment = r.compact_bytes()
        r.skip_tags()
    else:
        m.member_id = r.string()
        m.group_instance_id = r.nullable_string() if v == 4 else None
        m.client_id = r.string()
        m.client_host = r.string()
        m.member_metadata = r.bytes()
        m.member_assignment = r.bytes()
    return m


def _write_DescribedGroupMember(w: Writer, m: DescribedGroupMember, v: int) -> None:
    if v >= 5:
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.compact_string(m.client_id)
        w.compact_string(m.client_host)
        w.compact_bytes(m.member_metadata)
        w.compact_bytes(m.member_assignment)
        w.uvarint(0)
    else:
        w.string(m.member_id)
        if v == 4:
            w.nullable_string(m.group_instance_id)
        w.string(m.client_id)
        w.string(m.client_host)
        w.bytes(m.member_metadata)
        w.bytes(m.member_assignment)


class DescribedGroup(Structure):
    """One element of groups in DescribeGroupsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: list[DescribedGroupMember] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations


def _read_DescribedGroup(r: Reader, v: int) -> DescribedGroup:
    m = DescribedGroup.__new__(DescribedGroup)
    if v >= 5:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string() if v == 6 else None
        m.group_id = r.compact_string()
        m.group_state = r.compact_string()
        m.protocol_type = r.compact_string()
        m.protocol_data = r.compact_string()
        m.members = [_read_DescribedGroupMember(r, v) for _ in r.each(r.compact_count(7))]
        m.authorized_operations = r.int32()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.group_id = r.string()
        m.group_state = r.string()
        m.protocol_type = r.string()
        m.protocol_data = r.string()
        m.members = [_read_DescribedGroupMember(r, v) for _ in r.each(r.count(14))]
        m.authorized_operations = r.int32() if v >= 3 else -2147483648
        m.error_message = None
    return m


def _write_DescribedGroup(w: Writer, m: DescribedGroup, v: int) -> None:
    if v >= 5:
        w.int16(m.error_code)
        if v == 6:
            w.compact_nullable_string(m.error_message)
        w.compact_string(m.group_id)
        w.compact_string(m.group_state)
        w.compact_string(m.protocol_type)
        w.compact_string(m.protocol_data)
        w.compact_count(len(m.members))
        for member in w.each(m.members):
            _write_DescribedGroupMember(w, member, v)
        w.int32(m.authorized_operations)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.string(m.group_id)
        w.string(m.group_state)
        w.string(m.protocol_type)
        w.string(m.protocol_data)
        w.count(len(m.members))
        for member in w.each(m.members):
            _write_DescribedGroupMember(w, member, v)
        if v >= 3:
            w.int32(m.authorized_operations)


class DescribeGroupsResponse(Message):
    """DescribeGroupsResponse, a response: versions 0 to 6, flexible from 5."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY: ClassVar[int] = 15
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 5

    def __init__(self, *, throttle_time_ms: int = 0, groups: list[DescribedGroup] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeGroupsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeGroupsResponse:
        return _read_DescribeGroupsResponse(r, version)


def _read_DescribeGroupsResponse(r: Reader, v: int) -> DescribeGroupsResponse:
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    if v >= 5:
        m.throttle_time_ms = r.int32()
        m.groups = [_read_DescribedGroup(r, v) for _ in r.each(r.compact_count(12))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.groups = [_read_DescribedGroup(r, v) for _ in r.each(r.count(14))]
    return m


def _write_DescribeGroupsResponse(w: Writer, m: DescribeGroupsResponse, v: int) -> None:
    if v >= 5:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.groups))
        for group in w.each(m.groups):
            _write_DescribedGroup(w, group, v)
        w.uvarint(0)
    else:
        if v >= 1:
            w.int32(m.throttle_time_ms)
        w.count(len(m.groups))
        for group in w.each(m.groups):
            _write_DescribedGroup(w, group, v)
