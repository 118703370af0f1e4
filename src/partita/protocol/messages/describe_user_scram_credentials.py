"""DescribeUserScramCredentials (API 50). Generated from schema/describe_user_scram_credentials.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_bi = Struct(">bi")
_fixed_ih = Struct(">ih")


class UserName(Structure):
    """One element of users in DescribeUserScramCredentialsRequest."""

    __slots__ = ("name",)

    def __init__(self, *, name: str = "") -> None:
        self.name: str = name


def _read_UserName(r: Reader, v: int) -> UserName:
    m = UserName.__new__(UserName)
    m.name = r.compact_string()
    r.skip_tags()
    return m


def _write_UserName(w: Writer, m: UserName, v: int) -> None:
    w.compact_string(m.name)
    w.uvarint(0)


class DescribeUserScramCredentialsRequest(Request["DescribeUserScramCredentialsResponse"]):
    """DescribeUserScramCredentialsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("users",)
    API_KEY: ClassVar[int] = 50
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, users: list[UserName] | None = EMPTY) -> None:
        self.users: list[UserName] | None = [] if users is EMPTY else users

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeUserScramCredentialsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeUserScramCredentialsRequest:
        return _read_DescribeUserScramCredentialsRequest(r, version)


def _read_DescribeUserScramCredentialsRequest(r: Reader, v: int) -> DescribeUserScramCredentialsRequest:
    m = DescribeUserScramCredentialsRequest.__new__(DescribeUserScramCredentialsRequest)
    m.users = None if (n := r.compact_nullable_count(2)) < 0 else [_read_UserName(r, v) for _ in r.each(n)]
    r.skip_tags()
    return m


def _write_DescribeUserScramCredentialsRequest(w: Writer, m: DescribeUserScramCredentialsRequest, v: int) -> None:
    if m.users is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.users))
        for user in w.each(m.users):
            _write_UserName(w, user, v)
    w.uvarint(0)


class CredentialInfo(Structure):
    """One element of results.credential_infos in DescribeUserScramCredentialsResponse."""

    __slots__ = ("mechanism", "iterations")

    def __init__(self, *, mechanism: int = 0, iterations: int = 0) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations


def _read_CredentialInfo(r: Reader, v: int) -> CredentialInfo:
    m = CredentialInfo.__new__(CredentialInfo)
    m.mechanism, m.iterations = r.fixed(_fixed_bi)
    r.skip_tags()
    return m


def _write_CredentialInfo(w: Writer, m: CredentialInfo, v: int) -> None:
    w.buf += _fixed_bi.pack(m.mechanism, m.iterations)
    w.uvarint(0)


class DescribeUserScramCredentialsResult(Structure):
    """One element of results in DescribeUserScramCredentialsResponse."""

    __slots__ = ("user", "error_code", "error_message", "credential_infos")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY,
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is EMPTY else credential_infos


def _read_DescribeUserScramCredentialsResult(r: Reader, v: int) -> DescribeUserScramCredentialsResult:
    m = DescribeUserScramCredentialsResult.__new__(DescribeUserScramCredentialsResult)
    m.user = r.compact_string()
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    m.credential_infos = [_read_CredentialInfo(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_DescribeUserScramCredentialsResult(w: Writer, m: DescribeUserScramCredentialsResult, v: int) -> None:
    w.compact_string(m.user)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.credential_infos))
    for credential_info in w.each(m.credential_infos):
        _write_CredentialInfo(w, credential_info, v)
    w.uvarint(0)


class DescribeUserScramCredentialsResponse(Message):
    """DescribeUserScramCredentialsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY: ClassVar[int] = 50
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeUserScramCredentialsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeUserScramCredentialsResponse:
        return _read_DescribeUserScramCredentialsResponse(r, version)


def _read_DescribeUserScramCredentialsResponse(r: Reader, v: int) -> DescribeUserScramCredentialsResponse:
    m = DescribeUserScramCredentialsResponse.__new__(DescribeUserScramCredentialsResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.results = [_read_DescribeUserScramCredentialsResult(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_DescribeUserScramCredentialsResponse(w: Writer, m: DescribeUserScramCredentialsResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_DescribeUserScramCredentialsResult(w, result, v)
    w.uvarint(0)
