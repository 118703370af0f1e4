"""RenewDelegationToken (API 39). Generated from schema/renew_delegation_token.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Buffer, Message, Reader, Request, Writer

_fixed_hqi = Struct(">hqi")


class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"]):
    """RenewDelegationTokenRequest, a request: versions 1 to 2, flexible from 2."""

    __slots__ = ("hmac", "renew_period_ms")
    API_KEY: ClassVar[int] = 39
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, hmac: Buffer = b"", renew_period_ms: int = 0) -> None:
        self.hmac: Buffer = hmac
        self.renew_period_ms: int = renew_period_ms

    def write(self, w: Writer, version: int) -> None:
        _write_RenewDelegationTokenRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> RenewDelegationTokenRequest:
        return _read_RenewDelegationTokenRequest(r, version)


def _read_RenewDelegationTokenRequest(r: Reader, v: int) -> RenewDelegationTokenRequest:
    m = RenewDelegationTokenRequest.__new__(RenewDelegationTokenRequest)
    if v >= 2:
        m.hmac = r.compact_bytes()
        m.renew_period_ms = r.int64()
        r.skip_tags()
    else:
        m.hmac = r.bytes()
        m.renew_period_ms = r.int64()
    return m


def _write_RenewDelegationTokenRequest(w: Writer, m: RenewDelegationTokenRequest, v: int) -> None:
    if v >= 2:
        w.compact_bytes(m.hmac)
        w.int64(m.renew_period_ms)
        w.uvarint(0)
    else:
        w.bytes(m.hmac)
        w.int64(m.renew_period_ms)


class RenewDelegationTokenResponse(Message):
    """RenewDelegationTokenResponse, a response: versions 1 to 2, flexible from 2."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY: ClassVar[int] = 39
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, error_code: int = 0, expiry_timestamp_ms: int = 0, throttle_time_ms: int = 0) -> None:
        self.error_code: int = error_code
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.throttle_time_ms: int = throttle_time_ms

    def write(self, w: Writer, version: int) -> None:
        _write_RenewDelegationTokenResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> RenewDelegationTokenResponse:
        return _read_RenewDelegationTokenResponse(r, version)


def _read_RenewDelegationTokenResponse(r: Reader, v: int) -> RenewDelegationTokenResponse:
    m = RenewDelegationTokenResponse.__new__(RenewDelegationTokenResponse)
    if v >= 2:
        m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms = r.fixed(_fixed_hqi)
        r.skip_tags()
    else:
        m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms = r.fixed(_fixed_hqi)
    return m


def _write_RenewDelegationTokenResponse(w: Writer, m: RenewDelegationTokenResponse, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_hqi.pack(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
        w.uvarint(0)
    else:
        w.buf += _fixed_hqi.pack(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
