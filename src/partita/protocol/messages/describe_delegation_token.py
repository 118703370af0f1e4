"""DescribeDelegationToken (API 41). Generated from schema/describe_delegation_token.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Request, Structure, Writer

_fixed_qqq = Struct(">qqq")


class DescribeDelegationTokenOwner(Structure):
    """One element of owners in DescribeDelegationTokenRequest."""

    __slots__ = ("principal_type", "principal_name")

    def __init__(self, *, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


def _read_DescribeDelegationTokenOwner(r: Reader, v: int) -> DescribeDelegationTokenOwner:
    m = DescribeDelegationTokenOwner.__new__(DescribeDelegationTokenOwner)
    if v >= 2:
        m.principal_type = r.compact_string()
        m.principal_name = r.compact_string()
        r.skip_tags()
    else:
        m.principal_type = r.string()
        m.principal_name = r.string()
    return m


def _write_DescribeDelegationTokenOwner(w: Writer, m: DescribeDelegationTokenOwner, v: int) -> None:
    if v >= 2:
        w.compact_string(m.principal_type)
        w.compact_string(m.principal_name)
        w.uvarint(0)
    else:
        w.string(m.principal_type)
        w.string(m.principal_name)


class DescribeDelegationTokenRequest(Request["DescribeDelegationTokenResponse"]):
    """DescribeDelegationTokenRequest, a request: versions 1 to 3, flexible from 2."""

    __slots__ = ("owners",)
    API_KEY: ClassVar[int] = 41
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, owners: list[DescribeDelegationTokenOwner] | None = EMPTY) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if owners is EMPTY else owners

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeDelegationTokenRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeDelegationTokenRequest:
        return _read_DescribeDelegationTokenRequest(r, version)


def _read_DescribeDelegationTokenRequest(r: Reader, v: int) -> DescribeDelegationTokenRequest:
    m = DescribeDelegationTokenRequest.__new__(DescribeDelegationTokenRequest)
    if v >= 2:
        m.owners = (
            None
            if (n := r.compact_nullable_count(3)) < 0
            else [_read_DescribeDelegationTokenOwner(r, v) for _ in r.each(n)]
        )
        r.skip_tags()
    else:
        m.owners = (
            None if (n := r.nullable_count(4)) < 0 else [_read_DescribeDelegationTokenOwner(r, v) for _ in r.each(n)]
        )
    return m


def _write_DescribeDelegationTokenRequest(w: Writer, m: DescribeDelegationTokenRequest, v: int) -> None:
    if v >= 2:
        if m.owners is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.owners))
            for owner in w.each(m.owners):
                _write_DescribeDelegationTokenOwner(w, owner, v)
        w.uvarint(0)
    else:
        if m.owners is None:
            w.count(-1)
        else:
            w.count(len(m.owners))
            for owner in w.each(m.owners):
                _write_DescribeDelegationTokenOwner(w, owner, v)


class DescribedDelegationTokenRenewer(Structure):
    """One element of tokens.renewers in DescribeDelegationTokenResponse."""

    __slots__ = ("principal_type", "principal_name")

    def __init__(self, *, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


def _read_DescribedDelegationTokenRenewer(r: Reader, v: int) -> DescribedDelegationTokenRenewer:
    m = DescribedDelegationTokenRenewer.__new__(DescribedDelegationTokenRenewer)
    if v >= 2:
        m.principal_type = r.compact_string()
        m.principal_name = r.compact_string()
        r.skip_tags()
    else:
        m.principal_type = r.string()
        m.principal_name = r.string()
    return m


def _write_DescribedDelegationTokenRenewer(w: Writer, m: DescribedDelegationTokenRenewer, v: int) -> None:
    if v >= 2:
        w.compact_string(m.principal_type)
        w.compact_string(m.principal_name)
        w.uvarint(0)
    else:
        w.string(m.principal_type)
        w.string(m.principal_name)


class DescribedDelegationToken(Structure):
    """One element of tokens in DescribeDelegationTokenResponse."""

    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: Buffer = b"",
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY,
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp: int = issue_timestamp
        self.expiry_timestamp: int = expiry_timestamp
        self.max_timestamp: int = max_timestamp
        self.token_id: str = token_id
        self.hmac: Buffer = hmac
        self.renewers: list[DescribedDelegationTokenRenewer] = [] if renewers is EMPTY else renewers


def _read_DescribedDelegationToken(r: Reader, v: int) -> DescribedDelegationToken:
    m = DescribedDelegationToken.__new__(DescribedDelegationToken)
    if v >= 2:
        m.principal_type = r.compact_string()
        m.principal_name = r.compact_string()
        m.token_requester_principal_type = r.compact_string() if v == 3 else ""
        m.token_requester_principal_name = r.compact_string() if v == 3 else ""
        m.issue_timestamp, m.expiry_timestamp, m.max_timestamp = r.fixed(_fixed_qqq)
        m.token_id = r.compact_string()
        m.hmac = r.compact_bytes()
        m.renewers = [_read_DescribedDelegationTokenRenewer(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.principal_type = r.string()
        m.principal_name = r.string()
        m.issue_timestamp, m.expiry_timestamp, m.max_timestamp = r.fixed(_fixed_qqq)
        m.token_id = r.string()
        m.hmac = r.bytes()
        m.renewers = [_read_DescribedDelegationTokenRenewer(r, v) for _ in r.each(r.count(4))]
        m.token_requester_principal_type = ""
        m.token_requester_principal_name = ""
    return m


def _write_DescribedDelegationToken(w: Writer, m: DescribedDelegationToken, v: int) -> None:
    if v >= 2:
        w.compact_string(m.principal_type)
        w.compact_string(m.principal_name)
        if v == 3:
            w.compact_string(m.token_requester_principal_type)
            w.compact_string(m.token_requester_principal_name)
        w.buf += _fixed_qqq.pack(m.issue_timestamp, m.expiry_timestamp, m.max_timestamp)
        w.compact_string(m.token_id)
        w.compact_bytes(m.hmac)
        w.compact_count(len(m.renewers))
        for renewer in w.each(m.renewers):
            _write_DescribedDelegationTokenRenewer(w, renewer, v)
        w.uvarint(0)
    else:
        w.string(m.principal_type)
        w.string(m.principal_name)
        w.buf += _fixed_qqq.pack(m.issue_timestamp, m.expiry_timestamp, m.max_timestamp)
        w.string(m.token_id)
        w.bytes(m.hmac)
        w.count(len(m.renewers))
        for renewer in w.each(m.renewers):
            _write_DescribedDelegationTokenRenewer(w, renewer, v)


class DescribeDelegationTokenResponse(Message):
    """DescribeDelegationTokenResponse, a response: versions 1 to 3, flexible from 2."""

    __slots__ = ("error_code", "tokens", "throttle_time_ms")
    API_KEY: ClassVar[int] = 41
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self, *, error_code: int = 0, tokens: list[DescribedDelegationToken] = EMPTY, throttle_time_ms: int = 0
    ) -> None:
        self.error_code: int = error_code
        self.tokens: list[DescribedDelegationToken] = [] if tokens is EMPTY else tokens
        self.throttle_time_ms: int = throttle_time_ms

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeDelegationTokenResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeDelegationTokenResponse:
        return _read_DescribeDelegationTokenResponse(r, version)


def _read_DescribeDelegationTokenResponse(r: Reader, v: int) -> DescribeDelegationTokenResponse:
    m = DescribeDelegationTokenResponse.__new__(DescribeDelegationTokenResponse)
    if v >= 2:
        m.error_code = r.int16()
        m.tokens = [_read_DescribedDelegationToken(r, v) for _ in r.each(r.compact_count(30))]
        m.throttle_time_ms = r.int32()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.tokens = [_read_DescribedDelegationToken(r, v) for _ in r.each(r.count(38))]
        m.throttle_time_ms = r.int32()
    return m


def _write_DescribeDelegationTokenResponse(w: Writer, m: DescribeDelegationTokenResponse, v: int) -> None:
    if v >= 2:
        w.int16(m.error_code)
        w.compact_count(len(m.tokens))
        for token in w.each(m.tokens):
            _write_DescribedDelegationToken(w, token, v)
        w.int32(m.throttle_time_ms)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.count(len(m.tokens))
        for token in w.each(m.tokens):
            _write_DescribedDelegationToken(w, token, v)
        w.int32(m.throttle_time_ms)
