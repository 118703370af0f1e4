"""Header. Generated from schema/header.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Message, Reader, Writer

_fixed_hhi = Struct(">hhi")


class RequestHeader(Message):
    """RequestHeader, a header: versions 1 to 2, flexible from 2."""

    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id")
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key: int = request_api_key
        self.request_api_version: int = request_api_version
        self.correlation_id: int = correlation_id
        self.client_id: str | None = client_id

    def write(self, w: Writer, version: int) -> None:
        _write_RequestHeader(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> RequestHeader:
        return _read_RequestHeader(r, version)


def _read_RequestHeader(r: Reader, v: int) -> RequestHeader:
    m = RequestHeader.__new__(RequestHeader)
    if v >= 2:
        m.request_api_key, m.request_api_version, m.correlation_id = r.fixed(_fixed_hhi)
        m.client_id = r.nullable_string()
        r.skip_tags()
    else:
        m.request_api_key, m.request_api_version, m.correlation_id = r.fixed(_fixed_hhi)
        m.client_id = r.nullable_string()
    return m


def _write_RequestHeader(w: Writer, m: RequestHeader, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_hhi.pack(m.request_api_key, m.request_api_version, m.correlation_id)
        w.nullable_string(m.client_id)
        w.uvarint(0)
    else:
        w.buf += _fixed_hhi.pack(m.request_api_key, m.request_api_version, m.correlation_id)
        w.nullable_string(m.client_id)


class ResponseHeader(Message):
    """ResponseHeader, a header: versions 0 to 1, flexible from 1."""

    __slots__ = ("correlation_id",)
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, correlation_id: int = 0) -> None:
        self.correlation_id: int = correlation_id

    def write(self, w: Writer, version: int) -> None:
        _write_ResponseHeader(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ResponseHeader:
        return _read_ResponseHeader(r, version)


def _read_ResponseHeader(r: Reader, v: int) -> ResponseHeader:
    m = ResponseHeader.__new__(ResponseHeader)
    if v >= 1:
        m.correlation_id = r.int32()
        r.skip_tags()
    else:
        m.correlation_id = r.int32()
    return m


def _write_ResponseHeader(w: Writer, m: ResponseHeader, v: int) -> None:
    if v >= 1:
        w.int32(m.correlation_id)
        w.uvarint(0)
    else:
        w.int32(m.correlation_id)
