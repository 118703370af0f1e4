"""SaslHandshake (API 17). Generated from schema/sasl_handshake.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Writer


class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    """SaslHandshakeRequest, a request: versions 0 to 1."""

    __slots__ = ("mechanism",)
    API_KEY: ClassVar[int] = 17
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, mechanism: str = "") -> None:
        self.mechanism: str = mechanism

    def write(self, w: Writer, version: int) -> None:
        _write_SaslHandshakeRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> SaslHandshakeRequest:
        return _read_SaslHandshakeRequest(r, version)


def _read_SaslHandshakeRequest(r: Reader, v: int) -> SaslHandshakeRequest:
    m = SaslHandshakeRequest.__new__(SaslHandshakeRequest)
    m.mechanism = r.string()
    return m


def _write_SaslHandshakeRequest(w: Writer, m: SaslHandshakeRequest, v: int) -> None:
    w.string(m.mechanism)


class SaslHandshakeResponse(Message):
    """SaslHandshakeResponse, a response: versions 0 to 1."""

    __slots__ = ("error_code", "mechanisms")
    API_KEY: ClassVar[int] = 17
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, error_code: int = 0, mechanisms: list[str] = EMPTY) -> None:
        self.error_code: int = error_code
        self.mechanisms: list[str] = [] if mechanisms is EMPTY else mechanisms

    def write(self, w: Writer, version: int) -> None:
        _write_SaslHandshakeResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> SaslHandshakeResponse:
        return _read_SaslHandshakeResponse(r, version)


def _read_SaslHandshakeResponse(r: Reader, v: int) -> SaslHandshakeResponse:
    m = SaslHandshakeResponse.__new__(SaslHandshakeResponse)
    m.error_code = r.int16()
    m.mechanisms = [r.string() for _ in r.each(r.count(2))]
    return m


def _write_SaslHandshakeResponse(w: Writer, m: SaslHandshakeResponse, v: int) -> None:
    w.int16(m.error_code)
    w.count(len(m.mechanisms))
    for mechanism in w.each(m.mechanisms):
        w.string(mechanism)
