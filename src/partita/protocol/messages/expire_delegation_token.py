"""ExpireDelegationToken (API 40). Generated from schema/expire_delegation_token.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Buffer, Message, Reader, Request, Writer

_fixed_hqi = Struct(">hqi")


class ExpireDelegationTokenRequest(Request["ExpireDelegationTokenResponse"]):
    """ExpireDelegationTokenRequest, a request: versions 1 to 2, flexible from 2."""

    __slots__ = ("hmac", "expiry_time_period_ms")
    API_KEY: ClassVar[int] = 40
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, hmac: Buffer = b"", expiry_time_period_ms: int = 0) -> None:
        self.hmac: Buffer = hmac
        self.expiry_time_period_ms: int = expiry_time_period_ms

    def write(self, w: Writer, version: int) -> None:
        _write_ExpireDelegationTokenRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ExpireDelegationTokenRequest:
        return _read_ExpireDelegationTokenRequest(r, version)


def _read_ExpireDelegationTokenRequest(r: Reader, v: int) -> ExpireDelegationTokenRequest:
    m = ExpireDelegationTokenRequest.__new__(ExpireDelegationTokenRequest)
    if v >= 2:
        m.hmac = r.compact_bytes()
        m.expiry_time_period_ms = r.int64()
        r.skip_tags()
    else:
        m.hmac = r.bytes()
        m.expiry_time_period_ms = r.int64()
    return m


def _write_ExpireDelegationTokenRequest(w: Writer, m: ExpireDelegationTokenRequest, v: int) -> None:
    if v >= 2:
        w.compact_bytes(m.hmac)
        w.int64(m.expiry_time_period_ms)
        w.uvarint(0)
    else:
        w.bytes(m.hmac)
        w.int64(m.expiry_time_period_ms)


class ExpireDelegationTokenResponse(Message):
    """ExpireDelegationTokenResponse, a response: versions 1 to 2, flexible from 2."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY: ClassVar[int] = 40
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, error_code: int = 0, expiry_timestamp_ms: int = 0, throttle_time_ms: int = 0) -> None:
        self.error_code: int = error_code
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.throttle_time_ms: int = throttle_time_ms

    def write(self, w: Writer, version: int) -> None:
        _write_ExpireDelegationTokenResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ExpireDelegationTokenResponse:
        return _read_ExpireDelegationTokenResponse(r, version)


def _read_ExpireDelegationTokenResponse(r: Reader, v: int) -> ExpireDelegationTokenResponse:
    m = ExpireDelegationTokenResponse.__new__(ExpireDelegationTokenResponse)
    if v >= 2:
        m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms = r.fixed(_fixed_hqi)
        r.skip_tags()
    else:
        m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms = r.fixed(_fixed_hqi)
    return m


def _write_ExpireDelegationTokenResponse(w: Writer, m: ExpireDelegationTokenResponse, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_hqi.pack(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
        w.uvarint(0)
    else:
        w.buf += _fixed_hqi.pack(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
