"""GetTelemetrySubscriptions: which of its metrics a client is to push, and how often. (Kafka: ClientMetricsManager)"""

from __future__ import annotations

from uuid import UUID

from partita.broker.api.context import RequestContext
from partita.broker.api.served import Served
from partita.broker.handlers._telemetry import COMPRESSION_TYPES, facts_of
from partita.broker.nodes import random_uuid
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from partita.protocol.primitives import ZERO_UUID

API = Served(GetTelemetrySubscriptionsRequest)


def handle(ctx: RequestContext, request: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
    """A client without an id is given one. It asks again after its interval; sooner, it is refused."""
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = UUID(bytes=random_uuid(), version=4).bytes
    instance = ctx.client_metrics.instance(instance_id, facts_of(ctx, instance_id))
    if not instance.may_ask(ctx.now().mono_ms):
        return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    instance.last_error = ErrorCode.NONE
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(COMPRESSION_TYPES),
        push_interval_ms=instance.wanted.interval_ms,
        telemetry_max_bytes=ctx.config.int("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=list(instance.wanted.metrics),
    )
