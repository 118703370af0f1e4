"""PushTelemetry (API 72). Generated from schema/push_telemetry.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import ZERO_UUID, Buffer, Message, Reader, Request, Writer

_fixed_ih = Struct(">ih")


class PushTelemetryRequest(Request["PushTelemetryResponse"]):
    """PushTelemetryRequest, a request: version 0, flexible from 0."""

    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")
    API_KEY: ClassVar[int] = 72
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: Buffer = b"",
    ) -> None:
        self.client_instance_id: bytes = client_instance_id
        self.subscription_id: int = subscription_id
        self.terminating: bool = terminating
        self.compression_type: int = compression_type
        self.metrics: Buffer = metrics

    def write(self, w: Writer, version: int) -> None:
        _write_PushTelemetryRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> PushTelemetryRequest:
        return _read_PushTelemetryRequest(r, version)


def _read_PushTelemetryRequest(r: Reader, v: int) -> PushTelemetryRequest:
    m = PushTelemetryRequest.__new__(PushTelemetryRequest)
    m.client_instance_id = r.uuid()
    m.subscription_id = r.int32()
    m.terminating = r.boolean()
    m.compression_type = r.int8()
    m.metrics = r.compact_bytes()
    r.skip_tags()
    return m


def _write_PushTelemetryRequest(w: Writer, m: PushTelemetryRequest, v: int) -> None:
    w.uuid(m.client_instance_id)
    w.int32(m.subscription_id)
    w.boolean(m.terminating)
    w.int8(m.compression_type)
    w.compact_bytes(m.metrics)
    w.uvarint(0)


class PushTelemetryResponse(Message):
    """PushTelemetryResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY: ClassVar[int] = 72
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code

    def write(self, w: Writer, version: int) -> None:
        _write_PushTelemetryResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> PushTelemetryResponse:
        return _read_PushTelemetryResponse(r, version)


def _read_PushTelemetryResponse(r: Reader, v: int) -> PushTelemetryResponse:
    m = PushTelemetryResponse.__new__(PushTelemetryResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    r.skip_tags()
    return m


def _write_PushTelemetryResponse(w: Writer, m: PushTelemetryResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.uvarint(0)
