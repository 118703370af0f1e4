"""GetTelemetrySubscriptions (API 71). Generated from schema/get_telemetry_subscriptions.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")


class GetTelemetrySubscriptionsRequest(Request["GetTelemetrySubscriptionsResponse"]):
    """GetTelemetrySubscriptionsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("client_instance_id",)
    API_KEY: ClassVar[int] = 71
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, client_instance_id: bytes = ZERO_UUID) -> None:
        self.client_instance_id: bytes = client_instance_id

    def write(self, w: Writer, version: int) -> None:
        _write_GetTelemetrySubscriptionsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> GetTelemetrySubscriptionsRequest:
        return _read_GetTelemetrySubscriptionsRequest(r, version)


def _read_GetTelemetrySubscriptionsRequest(r: Reader, v: int) -> GetTelemetrySubscriptionsRequest:
    m = GetTelemetrySubscriptionsRequest.__new__(GetTelemetrySubscriptionsRequest)
    m.client_instance_id = r.uuid()
    r.skip_tags()
    return m


def _write_GetTelemetrySubscriptionsRequest(w: Writer, m: GetTelemetrySubscriptionsRequest, v: int) -> None:
    w.uuid(m.client_instance_id)
    w.uvarint(0)


class GetTelemetrySubscriptionsResponse(Message):
    """GetTelemetrySubscriptionsResponse, a response: version 0, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )
    API_KEY: ClassVar[int] = 71
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.client_instance_id: bytes = client_instance_id
        self.subscription_id: int = subscription_id
        self.accepted_compression_types: list[int] = (
            [] if accepted_compression_types is EMPTY else accepted_compression_types
        )
        self.push_interval_ms: int = push_interval_ms
        self.telemetry_max_bytes: int = telemetry_max_bytes
        self.delta_temporality: bool = delta_temporality
        self.requested_metrics: list[str] = [] if requested_metrics is EMPTY else requested_metrics

    def write(self, w: Writer, version: int) -> None:
        _write_GetTelemetrySubscriptionsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> GetTelemetrySubscriptionsResponse:
        return _read_GetTelemetrySubscriptionsResponse(r, version)


def _read_GetTelemetrySubscriptionsResponse(r: Reader, v: int) -> GetTelemetrySubscriptionsResponse:
    m = GetTelemetrySubscriptionsResponse.__new__(GetTelemetrySubscriptionsResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.client_instance_id = r.uuid()
    m.subscription_id = r.int32()
    m.accepted_compression_types = [r.int8() for _ in r.each(r.compact_count(1))]
    m.push_interval_ms, m.telemetry_max_bytes = r.fixed(_fixed_ii)
    m.delta_temporality = r.boolean()
    m.requested_metrics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    r.skip_tags()
    return m


def _write_GetTelemetrySubscriptionsResponse(w: Writer, m: GetTelemetrySubscriptionsResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.uuid(m.client_instance_id)
    w.int32(m.subscription_id)
    w.compact_count(len(m.accepted_compression_types))
    for accepted_compression_type in w.each(m.accepted_compression_types):
        w.int8(accepted_compression_type)
    w.buf += _fixed_ii.pack(m.push_interval_ms, m.telemetry_max_bytes)
    w.boolean(m.delta_temporality)
    w.compact_count(len(m.requested_metrics))
    for requested_metric in w.each(m.requested_metrics):
        w.compact_string(requested_metric)
    w.uvarint(0)
