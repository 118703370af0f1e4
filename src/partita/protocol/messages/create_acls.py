"""CreateAcls (API 30). Generated from schema/create_acls.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_bb = Struct(">bb")


class AclCreation(Structure):
    """One element of creations in CreateAclsRequest."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


def _read_AclCreation(r: Reader, v: int) -> AclCreation:
    m = AclCreation.__new__(AclCreation)
    if v >= 2:
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        m.resource_pattern_type = r.int8()
        m.principal = r.compact_string()
        m.host = r.compact_string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
        r.skip_tags()
    else:
        m.resource_type = r.int8()
        m.resource_name = r.string()
        m.resource_pattern_type = r.int8()
        m.principal = r.string()
        m.host = r.string()
        m.operation, m.permission_type = r.fixed(_fixed_bb)
    return m


def _write_AclCreation(w: Writer, m: AclCreation, v: int) -> None:
    if v >= 2:
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        w.int8(m.resource_pattern_type)
        w.compact_string(m.principal)
        w.compact_string(m.host)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)
        w.uvarint(0)
    else:
        w.int8(m.resource_type)
        w.string(m.resource_name)
        w.int8(m.resource_pattern_type)
        w.string(m.principal)
        w.string(m.host)
        w.buf += _fixed_bb.pack(m.operation, m.permission_type)


class CreateAclsRequest(Request["CreateAclsResponse"]):
    """CreateAclsRequest, a request: versions 1 to 3, flexible from 2."""

    __slots__ = ("creations",)
    API_KEY: ClassVar[int] = 30
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, creations: list[AclCreation] = EMPTY) -> None:
        self.creations: list[AclCreation] = [] if creations is EMPTY else creations

    def write(self, w: Writer, version: int) -> None:
        _write_CreateAclsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreateAclsRequest:
        return _read_CreateAclsRequest(r, version)


def _read_CreateAclsRequest(r: Reader, v: int) -> CreateAclsRequest:
    m = CreateAclsRequest.__new__(CreateAclsRequest)
    if v >= 2:
        m.creations = [_read_AclCreation(r, v) for _ in r.each(r.compact_count(8))]
        r.skip_tags()
    else:
        m.creations = [_read_AclCreation(r, v) for _ in r.each(r.count(10))]
    return m


def _write_CreateAclsRequest(w: Writer, m: CreateAclsRequest, v: int) -> None:
    if v >= 2:
        w.compact_count(len(m.creations))
        for creation in w.each(m.creations):
            _write_AclCreation(w, creation, v)
        w.uvarint(0)
    else:
        w.count(len(m.creations))
        for creation in w.each(m.creations):
            _write_AclCreation(w, creation, v)


class AclCreationResult(Structure):
    """One element of results in CreateAclsResponse."""

    __slots__ = ("error_code", "error_message")

    def __init__(self, *, error_code: int = 0, error_message: str | None = "") -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_AclCreationResult(r: Reader, v: int) -> AclCreationResult:
    m = AclCreationResult.__new__(AclCreationResult)
    if v >= 2:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
    return m


def _write_AclCreationResult(w: Writer, m: AclCreationResult, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)


class CreateAclsResponse(Message):
    """CreateAclsResponse, a response: versions 1 to 3, flexible from 2."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY: ClassVar[int] = 30
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, throttle_time_ms: int = 0, results: list[AclCreationResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_CreateAclsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreateAclsResponse:
        return _read_CreateAclsResponse(r, version)


def _read_CreateAclsResponse(r: Reader, v: int) -> CreateAclsResponse:
    m = CreateAclsResponse.__new__(CreateAclsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.results = [_read_AclCreationResult(r, v) for _ in r.each(r.compact_count(4))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results = [_read_AclCreationResult(r, v) for _ in r.each(r.count(4))]
    return m


def _write_CreateAclsResponse(w: Writer, m: CreateAclsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_AclCreationResult(w, result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results))
        for result in w.each(m.results):
            _write_AclCreationResult(w, result, v)
