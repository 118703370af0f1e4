"""ListConfigResources (API 74). Generated from schema/list_config_resources.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"]):
    """ListConfigResourcesRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("resource_types",)
    API_KEY: ClassVar[int] = 74
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, resource_types: list[int] = EMPTY) -> None:
        self.resource_types: list[int] = [] if resource_types is EMPTY else resource_types

    def write(self, w: Writer, version: int) -> None:
        _write_ListConfigResourcesRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListConfigResourcesRequest:
        return _read_ListConfigResourcesRequest(r, version)


def _read_ListConfigResourcesRequest(r: Reader, v: int) -> ListConfigResourcesRequest:
    m = ListConfigResourcesRequest.__new__(ListConfigResourcesRequest)
    m.resource_types = [r.int8() for _ in r.each(r.compact_count(1))] if v == 1 else []
    r.skip_tags()
    return m


def _write_ListConfigResourcesRequest(w: Writer, m: ListConfigResourcesRequest, v: int) -> None:
    if v == 1:
        w.compact_count(len(m.resource_types))
        for resource_type in w.each(m.resource_types):
            w.int8(resource_type)
    w.uvarint(0)


class ListedConfigResource(Structure):
    """One element of config_resources in ListConfigResourcesResponse."""

    __slots__ = ("resource_name", "resource_type")

    def __init__(self, *, resource_name: str = "", resource_type: int = 16) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type


def _read_ListedConfigResource(r: Reader, v: int) -> ListedConfigResource:
    m = ListedConfigResource.__new__(ListedConfigResource)
    m.resource_name = r.compact_string()
    m.resource_type = r.int8() if v == 1 else 16
    r.skip_tags()
    return m


def _write_ListedConfigResource(w: Writer, m: ListedConfigResource, v: int) -> None:
    w.compact_string(m.resource_name)
    if v == 1:
        w.int8(m.resource_type)
    w.uvarint(0)


class ListConfigResourcesResponse(Message):
    """ListConfigResourcesResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "config_resources")
    API_KEY: ClassVar[int] = 74
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, config_resources: list[ListedConfigResource] = EMPTY
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ListedConfigResource] = [] if config_resources is EMPTY else config_resources

    def write(self, w: Writer, version: int) -> None:
        _write_ListConfigResourcesResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListConfigResourcesResponse:
        return _read_ListConfigResourcesResponse(r, version)


def _read_ListConfigResourcesResponse(r: Reader, v: int) -> ListConfigResourcesResponse:
    m = ListConfigResourcesResponse.__new__(ListConfigResourcesResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.config_resources = [_read_ListedConfigResource(r, v) for _ in r.each(r.compact_count(2))]
    r.skip_tags()
    return m


def _write_ListConfigResourcesResponse(w: Writer, m: ListConfigResourcesResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_count(len(m.config_resources))
    for config_resource in w.each(m.config_resources):
        _write_ListedConfigResource(w, config_resource, v)
    w.uvarint(0)
