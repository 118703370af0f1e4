"""CreateDelegationToken (API 38). Generated from schema/create_delegation_token.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Request, Structure, Writer

_fixed_qqq = Struct(">qqq")


class CreatableRenewers(Structure):
    """One element of renewers in CreateDelegationTokenRequest."""

    __slots__ = ("principal_type", "principal_name")

    def __init__(self, *, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


def _read_CreatableRenewers(r: Reader, v: int) -> CreatableRenewers:
    m = CreatableRenewers.__new__(CreatableRenewers)
    if v >= 2:
        m.principal_type = r.compact_string()
        m.principal_name = r.compact_string()
        r.skip_tags()
    else:
        m.principal_type = r.string()
        m.principal_name = r.string()
    return m


def _write_CreatableRenewers(w: Writer, m: CreatableRenewers, v: int) -> None:
    if v >= 2:
        w.compact_string(m.principal_type)
        w.compact_string(m.principal_name)
        w.uvarint(0)
    else:
        w.string(m.principal_type)
        w.string(m.principal_name)


class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    """CreateDelegationTokenRequest, a request: versions 1 to 3, flexible from 2."""

    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")
    API_KEY: ClassVar[int] = 38
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        self.owner_principal_name: str | None = owner_principal_name
        self.renewers: list[CreatableRenewers] = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms: int = max_lifetime_ms

    def write(self, w: Writer, version: int) -> None:
        _write_CreateDelegationTokenRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreateDelegationTokenRequest:
        return _read_CreateDelegationTokenRequest(r, version)


def _read_CreateDelegationTokenRequest(r: Reader, v: int) -> CreateDelegationTokenRequest:
    m = CreateDelegationTokenRequest.__new__(CreateDelegationTokenRequest)
    if v >= 2:
        m.owner_principal_type = r.compact_nullable_string() if v == 3 else ""
        m.owner_principal_name = r.compact_nullable_string() if v == 3 else ""
        m.renewers = [_read_CreatableRenewers(r, v) for _ in r.each(r.compact_count(3))]
        m.max_lifetime_ms = r.int64()
        r.skip_tags()
    else:
        m.renewers = [_read_CreatableRenewers(r, v) for _ in r.each(r.count(4))]
        m.max_lifetime_ms = r.int64()
        m.owner_principal_type = ""
        m.owner_principal_name = ""
    return m


def _write_CreateDelegationTokenRequest(w: Writer, m: CreateDelegationTokenRequest, v: int) -> None:
    if v >= 2:
        if v == 3:
            w.compact_nullable_string(m.owner_principal_type)
            w.compact_nullable_string(m.owner_principal_name)
        w.compact_count(len(m.renewers))
        for renewer in w.each(m.renewers):
            _write_CreatableRenewers(w, renewer, v)
        w.int64(m.max_lifetime_ms)
        w.uvarint(0)
    else:
        w.count(len(m.renewers))
        for renewer in w.each(m.renewers):
            _write_CreatableRenewers(w, renewer, v)
        w.int64(m.max_lifetime_ms)


class CreateDelegationTokenResponse(Message):
    """CreateDelegationTokenResponse, a response: versions 1 to 3, flexible from 2."""

    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    API_KEY: ClassVar[int] = 38
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: Buffer = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp_ms: int = issue_timestamp_ms
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.max_timestamp_ms: int = max_timestamp_ms
        self.token_id: str = token_id
        self.hmac: Buffer = hmac
        self.throttle_time_ms: int = throttle_time_ms

    def write(self, w: Writer, version: int) -> None:
        _write_CreateDelegationTokenResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreateDelegationTokenResponse:
        return _read_CreateDelegationTokenResponse(r, version)


def _read_CreateDelegationTokenResponse(r: Reader, v: int) -> CreateDelegationTokenResponse:
    m = CreateDelegationTokenResponse.__new__(CreateDelegationTokenResponse)
    if v >= 2:
        m.error_code = r.int16()
        m.principal_type = r.compact_string()
        m.principal_name = r.compact_string()
        m.token_requester_principal_type = r.compact_string() if v == 3 else ""
        m.token_requester_principal_name = r.compact_string() if v == 3 else ""
        m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms = r.fixed(_fixed_qqq)
        m.token_id = r.compact_string()
        m.hmac = r.compact_bytes()
        m.throttle_time_ms = r.int32()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.principal_type = r.string()
        m.principal_name = r.string()
        m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms = r.fixed(_fixed_qqq)
        m.token_id = r.string()
        m.hmac = r.bytes()
        m.throttle_time_ms = r.int32()
        m.token_requester_principal_type = ""
        m.token_requester_principal_name = ""
    return m


def _write_CreateDelegationTokenResponse(w: Writer, m: CreateDelegationTokenResponse, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_string(m.principal_type)
        w.compact_string(m.principal_name)
        if v == 3:
            w.compact_string(m.token_requester_principal_type)
            w.compact_string(m.token_requester_principal_name)
        w.buf += _fixed_qqq.pack(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
        w.compact_string(m.token_id)
        w.compact_bytes(m.hmac)
        w.int32(m.throttle_time_ms)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.string(m.principal_type)
        w.string(m.principal_name)
        w.buf += _fixed_qqq.pack(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
        w.string(m.token_id)
        w.bytes(m.hmac)
        w.int32(m.throttle_time_ms)
