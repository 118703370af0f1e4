"""DescribeAcls (API 29). Generated from schema/describe_acls.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_bb = Struct(">bb")
_fixed_ih = Struct(">ih")


class DescribeAclsRequest(Request["DescribeAclsResponse"]):
    """DescribeAclsRequest, a request: versions 1 to 3, flexible from 2."""

    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    API_KEY: ClassVar[int] = 29
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeAclsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeAclsRequest:
        return _read_DescribeAclsRequest(r, version)


def _read_DescribeAclsRequest(r: Reader, v: int) -> DescribeAclsRequest:
    m = DescribeAclsRequest.__new__(DescribeAclsRequest)
    if v >= 2:
        m.resource_type_filter = r.int8()
        m.resource_name_filter = r.compact_nullable_string()
        m.pattern_type_filter = r.int8()
        m.principal_filter = r.compact_nullable_string()
        m.host_filter = r.compact_nullable_string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
        r.skip_tags()
    else:
        m.resource_type_filter = r.int8()
        m.resource_name_filter = r.nullable_string()
        m.pattern_type_filter = r.int8()
        m.principal_filter = r.nullable_string()
        m.host_filter = r.nullable_string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
    return m


def _write_DescribeAclsRequest(w: Writer, m: DescribeAclsRequest, v: int) -> None:
    if v >= 2:
        w.int8(m.resource_type_filter)
        w.compact_nullable_string(m.resource_name_filter)
        w.int8(m.pattern_type_filter)
        w.compact_nullable_string(m.principal_filter)
        w.compact_nullable_string(m.host_filter)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)
        w.uvarint(0)
    else:
        w.int8(m.resource_type_filter)
        w.nullable_string(m.resource_name_filter)
        w.int8(m.pattern_type_filter)
        w.nullable_string(m.principal_filter)
        w.nullable_string(m.host_filter)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)


class AclDescription(Structure):
    """One element of resources.acls in DescribeAclsResponse."""

    __slots__ = ("principal", "host", "operation", "permission_type")

    def __init__(self, *, principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


def _read_AclDescription(r: Reader, v: int) -> AclDescription:
    m = AclDescription.__new__(AclDescription)
    if v >= 2:
        m.principal = r.compact_string()
        m.host = r.compact_string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
        r.skip_tags()
    else:
        m.principal = r.string()
        m.host = r.string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
    return m


def _write_AclDescription(w: Writer, m: AclDescription, v: int) -> None:
    if v >= 2:
        w.compact_string(m.principal)
        w.compact_string(m.host)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)
        w.uvarint(0)
    else:
        w.string(m.principal)
        w.string(m.host)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)


class DescribeAclsResource(Structure):
    """One element of resources in DescribeAclsResponse."""

    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] = EMPTY,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: list[AclDescription] = [] if acls is EMPTY else acls


def _read_DescribeAclsResource(r: Reader, v: int) -> DescribeAclsResource:
    m = DescribeAclsResource.__new__(DescribeAclsResource)
    if v >= 2:
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        m.pattern_type = r.int8()
        m.acls = [_read_AclDescription(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.resource_type = r.int8()
        m.resource_name = r.string()
        m.pattern_type = r.int8()
        m.acls = [_read_AclDescription(r, v) for _ in r.each(r.count(6))]
    return m


def _write_DescribeAclsResource(w: Writer, m: DescribeAclsResource, v: int) -> None:
    if v >= 2:
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        w.int8(m.pattern_type)
        w.compact_count(len(m.acls))
        for acl in w.each(m.acls):
            _write_AclDescription(w, acl, v)
        w.uvarint(0)
    else:
        w.int8(m.resource_type)
        w.string(m.resource_name)
        w.int8(m.pattern_type)
        w.count(len(m.acls))
        for acl in w.each(m.acls):
            _write_AclDescription(w, acl, v)


class DescribeAclsResponse(Message):
    """DescribeAclsResponse, a response: versions 1 to 3, flexible from 2."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")
    API_KEY: ClassVar[int] = 29
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResource] = [] if resources is EMPTY else resources

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeAclsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeAclsResponse:
        return _read_DescribeAclsResponse(r, version)


def _read_DescribeAclsResponse(r: Reader, v: int) -> DescribeAclsResponse:
    m = DescribeAclsResponse.__new__(DescribeAclsResponse)
    if v >= 2:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.error_message = r.compact_nullable_string()
        m.resources = [_read_DescribeAclsResource(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.error_message = r.nullable_string()
        m.resources = [_read_DescribeAclsResource(r, v) for _ in r.each(r.count(8))]
    return m


def _write_DescribeAclsResponse(w: Writer, m: DescribeAclsResponse, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.compact_nullable_string(m.error_message)
        w.compact_count(len(m.resources))
        for resource in w.each(m.resources):
            _write_DescribeAclsResource(w, resource, v)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.nullable_string(m.error_message)
        w.count(len(m.resources))
        for resource in w.each(m.resources):
            _write_DescribeAclsResource(w, resource, v)
