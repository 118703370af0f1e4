"""SaslAuthenticate (API 36). Generated from schema/sasl_authenticate.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import Buffer, Message, Reader, Request, Writer


class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    """SaslAuthenticateRequest, a request: versions 0 to 2, flexible from 2."""

    __slots__ = ("auth_bytes",)
    API_KEY: ClassVar[int] = 36
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, auth_bytes: Buffer = b"") -> None:
        self.auth_bytes: Buffer = auth_bytes

    def write(self, w: Writer, version: int) -> None:
        _write_SaslAuthenticateRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> SaslAuthenticateRequest:
        return _read_SaslAuthenticateRequest(r, version)


def _read_SaslAuthenticateRequest(r: Reader, v: int) -> SaslAuthenticateRequest:
    m = SaslAuthenticateRequest.__new__(SaslAuthenticateRequest)
    if v >= 2:
        m.auth_bytes = r.compact_bytes()
        r.skip_tags()
    else:
        m.auth_bytes = r.bytes()
    return m


def _write_SaslAuthenticateRequest(w: Writer, m: SaslAuthenticateRequest, v: int) -> None:
    if v >= 2:
        w.compact_bytes(m.auth_bytes)
        w.uvarint(0)
    else:
        w.bytes(m.auth_bytes)


class SaslAuthenticateResponse(Message):
    """SaslAuthenticateResponse, a response: versions 0 to 2, flexible from 2."""

    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")
    API_KEY: ClassVar[int] = 36
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: Buffer = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: Buffer = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms

    def write(self, w: Writer, version: int) -> None:
        _write_SaslAuthenticateResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> SaslAuthenticateResponse:
        return _read_SaslAuthenticateResponse(r, version)


def _read_SaslAuthenticateResponse(r: Reader, v: int) -> SaslAuthenticateResponse:
    m = SaslAuthenticateResponse.__new__(SaslAuthenticateResponse)
    if v >= 2:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.auth_bytes = r.compact_bytes()
        m.session_lifetime_ms = r.int64()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.auth_bytes = r.bytes()
        m.session_lifetime_ms = r.int64() if v == 1 else 0
    return m


def _write_SaslAuthenticateResponse(w: Writer, m: SaslAuthenticateResponse, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.compact_bytes(m.auth_bytes)
        w.int64(m.session_lifetime_ms)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)
        w.bytes(m.auth_bytes)
        if v == 1:
            w.int64(m.session_lifetime_ms)
