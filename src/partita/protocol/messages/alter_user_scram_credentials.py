"""AlterUserScramCredentials (API 51). Generated from schema/alter_user_scram_credentials.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Request, Structure, Writer

_fixed_bi = Struct(">bi")


class ScramCredentialDeletion(Structure):
    """One element of deletions in AlterUserScramCredentialsRequest."""

    __slots__ = ("name", "mechanism")

    def __init__(self, *, name: str = "", mechanism: int = 0) -> None:
        self.name: str = name
        self.mechanism: int = mechanism


def _read_ScramCredentialDeletion(r: Reader, v: int) -> ScramCredentialDeletion:
    m = ScramCredentialDeletion.__new__(ScramCredentialDeletion)
    m.name = r.compact_string()
    m.mechanism = r.int8()
    r.skip_tags()
    return m


def _write_ScramCredentialDeletion(w: Writer, m: ScramCredentialDeletion, v: int) -> None:
    w.compact_string(m.name)
    w.int8(m.mechanism)
    w.uvarint(0)


class ScramCredentialUpsertion(Structure):
    """One element of upsertions in AlterUserScramCredentialsRequest."""

    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: Buffer = b"",
        salted_password: Buffer = b"",
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: Buffer = salt
        self.salted_password: Buffer = salted_password


def _read_ScramCredentialUpsertion(r: Reader, v: int) -> ScramCredentialUpsertion:
    m = ScramCredentialUpsertion.__new__(ScramCredentialUpsertion)
    m.name = r.compact_string()
    m.mechanism, m.iterations = r.fixed(_fixed_bi)
    m.salt = r.compact_bytes()
    m.salted_password = r.compact_bytes()
    r.skip_tags()
    return m


def _write_ScramCredentialUpsertion(w: Writer, m: ScramCredentialUpsertion, v: int) -> None:
    w.compact_string(m.name)
    w.buf += _fixed_bi.pack(m.mechanism, m.iterations)
    w.compact_bytes(m.salt)
    w.compact_bytes(m.salted_password)
    w.uvarint(0)


class AlterUserScramCredentialsRequest(Request["AlterUserScramCredentialsResponse"]):
    """AlterUserScramCredentialsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("deletions", "upsertions")
    API_KEY: ClassVar[int] = 51
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self, *, deletions: list[ScramCredentialDeletion] = EMPTY, upsertions: list[ScramCredentialUpsertion] = EMPTY
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is EMPTY else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is EMPTY else upsertions

    def write(self, w: Writer, version: int) -> None:
        _write_AlterUserScramCredentialsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterUserScramCredentialsRequest:
        return _read_AlterUserScramCredentialsRequest(r, version)


def _read_AlterUserScramCredentialsRequest(r: Reader, v: int) -> AlterUserScramCredentialsRequest:
    m = AlterUserScramCredentialsRequest.__new__(AlterUserScramCredentialsRequest)
    m.deletions = [_read_ScramCredentialDeletion(r, v) for _ in r.each(r.compact_count(3))]
    m.upsertions = [_read_ScramCredentialUpsertion(r, v) for _ in r.each(r.compact_count(9))]
    r.skip_tags()
    return m


def _write_AlterUserScramCredentialsRequest(w: Writer, m: AlterUserScramCredentialsRequest, v: int) -> None:
    w.compact_count(len(m.deletions))
    for deletion in w.each(m.deletions):
        _write_ScramCredentialDeletion(w, deletion, v)
    w.compact_count(len(m.upsertions))
    for upsertion in w.each(m.upsertions):
        _write_ScramCredentialUpsertion(w, upsertion, v)
    w.uvarint(0)


class AlterUserScramCredentialsResult(Structure):
    """One element of results in AlterUserScramCredentialsResponse."""

    __slots__ = ("user", "error_code", "error_message")

    def __init__(self, *, user: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_AlterUserScramCredentialsResult(r: Reader, v: int) -> AlterUserScramCredentialsResult:
    m = AlterUserScramCredentialsResult.__new__(AlterUserScramCredentialsResult)
    m.user = r.compact_string()
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_AlterUserScramCredentialsResult(w: Writer, m: AlterUserScramCredentialsResult, v: int) -> None:
    w.compact_string(m.user)
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)


class AlterUserScramCredentialsResponse(Message):
    """AlterUserScramCredentialsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY: ClassVar[int] = 51
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, results: list[AlterUserScramCredentialsResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_AlterUserScramCredentialsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterUserScramCredentialsResponse:
        return _read_AlterUserScramCredentialsResponse(r, version)


def _read_AlterUserScramCredentialsResponse(r: Reader, v: int) -> AlterUserScramCredentialsResponse:
    m = AlterUserScramCredentialsResponse.__new__(AlterUserScramCredentialsResponse)
    m.throttle_time_ms = r.int32()
    m.results = [_read_AlterUserScramCredentialsResult(r, v) for _ in r.each(r.compact_count(5))]
    r.skip_tags()
    return m


def _write_AlterUserScramCredentialsResponse(w: Writer, m: AlterUserScramCredentialsResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.results))
    for result in w.each(m.results):
        _write_AlterUserScramCredentialsResult(w, result, v)
    w.uvarint(0)
