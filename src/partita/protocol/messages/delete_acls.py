"""DeleteAcls (API 31). Generated from schema/delete_acls.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_bb = Struct(">bb")


class DeleteAclsFilter(Structure):
    """One element of filters in DeleteAclsRequest."""

    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

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


def _read_DeleteAclsFilter(r: Reader, v: int) -> DeleteAclsFilter:
    m = DeleteAclsFilter.__new__(DeleteAclsFilter)
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


def _write_DeleteAclsFilter(w: Writer, m: DeleteAclsFilter, v: int) -> None:
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


class DeleteAclsRequest(Request["DeleteAclsResponse"]):
    """DeleteAclsRequest, a request: versions 1 to 3, flexible from 2."""

    __slots__ = ("filters",)
    API_KEY: ClassVar[int] = 31
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, filters: list[DeleteAclsFilter] = EMPTY) -> None:
        self.filters: list[DeleteAclsFilter] = [] if filters is EMPTY else filters

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteAclsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteAclsRequest:
        return _read_DeleteAclsRequest(r, version)


def _read_DeleteAclsRequest(r: Reader, v: int) -> DeleteAclsRequest:
    m = DeleteAclsRequest.__new__(DeleteAclsRequest)
    if v >= 2:
        m.filters = [_read_DeleteAclsFilter(r, v) for _ in r.each(r.compact_count(8))]
        r.skip_tags()
    else:
        m.filters = [_read_DeleteAclsFilter(r, v) for _ in r.each(r.count(10))]
    return m


def _write_DeleteAclsRequest(w: Writer, m: DeleteAclsRequest, v: int) -> None:
    if v >= 2:
        w.compact_count(len(m.filters))
        for filter in w.each(m.filters):
            _write_DeleteAclsFilter(w, filter, v)
        w.uvarint(0)
    else:
        w.count(len(m.filters))
        for filter in w.each(m.filters):
            _write_DeleteAclsFilter(w, filter, v)


class DeleteAclsMatchingAcl(Structure):
    """One element of filter_results.matching_acls in DeleteAclsResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


def _read_DeleteAclsMatchingAcl(r: Reader, v: int) -> DeleteAclsMatchingAcl:
    m = DeleteAclsMatchingAcl.__new__(DeleteAclsMatchingAcl)
    if v >= 2:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        m.pattern_type = r.int8()
        m.principal = r.compact_string()
        m.host = r.compact_string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.resource_type = r.int8()
        m.resource_name = r.string()
        m.pattern_type = r.int8()
        m.principal = r.string()
        m.host = r.string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
    return m


def _write_DeleteAclsMatchingAcl(w: Writer, m: DeleteAclsMatchingAcl, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        w.int8(m.pattern_type)
        w.compact_string(m.principal)
        w.compact_string(m.host)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)
        w.int8(m.resource_type)
        w.string(m.resource_name)
        w.int8(m.pattern_type)
        w.string(m.principal)
        w.string(m.host)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)


class DeleteAclsFilterResult(Structure):
    """One element of filter_results in DeleteAclsResponse."""

    __slots__ = ("error_code", "error_message", "matching_acls")

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", matching_acls: list[DeleteAclsMatchingAcl] = EMPTY
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is EMPTY else matching_acls


def _read_DeleteAclsFilterResult(r: Reader, v: int) -> DeleteAclsFilterResult:
    m = DeleteAclsFilterResult.__new__(DeleteAclsFilterResult)
    if v >= 2:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.matching_acls = [_read_DeleteAclsMatchingAcl(r, v) for _ in r.each(r.compact_count(11))]
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.matching_acls = [_read_DeleteAclsMatchingAcl(r, v) for _ in r.each(r.count(14))]
    return m


def _write_DeleteAclsFilterResult(w: Writer, m: DeleteAclsFilterResult, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.compact_count(len(m.matching_acls))
        for matching_acl in w.each(m.matching_acls):
            _write_DeleteAclsMatchingAcl(w, matching_acl, v)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)
        w.count(len(m.matching_acls))
        for matching_acl in w.each(m.matching_acls):
            _write_DeleteAclsMatchingAcl(w, matching_acl, v)


class DeleteAclsResponse(Message):
    """DeleteAclsResponse, a response: versions 1 to 3, flexible from 2."""

    __slots__ = ("throttle_time_ms", "filter_results")
    API_KEY: ClassVar[int] = 31
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, throttle_time_ms: int = 0, filter_results: list[DeleteAclsFilterResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is EMPTY else filter_results

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteAclsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteAclsResponse:
        return _read_DeleteAclsResponse(r, version)


def _read_DeleteAclsResponse(r: Reader, v: int) -> DeleteAclsResponse:
    m = DeleteAclsResponse.__new__(DeleteAclsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.filter_results = [_read_DeleteAclsFilterResult(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.filter_results = [_read_DeleteAclsFilterResult(r, v) for _ in r.each(r.count(8))]
    return m


def _write_DeleteAclsResponse(w: Writer, m: DeleteAclsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.filter_results))
        for filter_result in w.each(m.filter_results):
            _write_DeleteAclsFilterResult(w, filter_result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.filter_results))
        for filter_result in w.each(m.filter_results):
            _write_DeleteAclsFilterResult(w, filter_result, v)
