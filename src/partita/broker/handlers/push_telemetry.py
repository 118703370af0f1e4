"""PushTelemetry: a client's metrics, which the metrics page of the broker shows. (Kafka: ClientMetricsManager)

Deviation: Partita shows the numbers that clients push on its metrics page, at most 20,000 of all and 1,000 of one, and
refuses a payload that is no OTLP or inflates to more than 4 MiB, where Kafka hands every payload to a plug-in, and
serves both requests with one alone.
"""

from __future__ import annotations

from itertools import islice

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.client_metrics import otlp
from partita.broker.client_metrics.clients import Instance
from partita.broker.handlers._telemetry import COMPRESSION_TYPES, facts_of
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from partita.records import compression
from partita.records.header import InvalidBatch

API = Served(PushTelemetryRequest)

INFLATED_BYTES_MAX, POINTS_MAX = 4 << 20, 10_000
"""What is read of one push: ten times the numbers that are kept of a client. Two million empty ones would fit."""
_RESERVED = (bytes(16), bytes(15) + b"\1")
"""Ids that mean none, and the topic of metadata."""


def handle(ctx: RequestContext, request: PushTelemetryRequest) -> Steps[PushTelemetryResponse]:
    """Take the numbers of a client that pushes what it was asked for, no sooner than it may."""
    if request.client_instance_id in _RESERVED:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    facts = facts_of(ctx, request.client_instance_id)
    instance = ctx.client_metrics.instance(request.client_instance_id, facts)
    error = _error(ctx, instance, request)
    instance.has_ended = request.terminating
    if not error and request.metrics:
        error = yield from _taken(ctx, instance, request)
    instance.last_error = error
    return PushTelemetryResponse(error_code=error)


def _error(ctx: RequestContext, instance: Instance, request: PushTelemetryRequest) -> ErrorCode:
    """The last push of a client may come at any time."""
    if instance.has_ended:
        return ErrorCode.INVALID_REQUEST
    if not instance.may_push(ctx.now().mono_ms) and not request.terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if request.subscription_id != instance.subscription_id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if request.compression_type not in (compression.NONE, *COMPRESSION_TYPES):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(request.metrics) > ctx.config.int("telemetry.max.bytes"):
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE


def _taken(ctx: RequestContext, instance: Instance, request: PushTelemetryRequest) -> Steps[ErrorCode]:
    """Read the payload beside the loop: of one with many labels and few numbers that takes tenths of a second."""

    def read() -> list[otlp.Point]:
        payload = compression.decompress(request.compression_type, request.metrics, INFLATED_BYTES_MAX)
        return list(islice(otlp.points(payload), POINTS_MAX))

    try:
        points: list[otlp.Point] = yield ctx.run_beside(read)
    except (InvalidBatch, otlp.BadPayload):
        return ErrorCode.INVALID_RECORD
    for point in points:
        yield None
        ctx.client_metrics.keep(instance, point)
    return ErrorCode.NONE
