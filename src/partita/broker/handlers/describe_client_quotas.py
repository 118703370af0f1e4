"""DescribeClientQuotas: the quotas of the entities that a filter means. (Kafka: ClientQuotasImage.)"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from partita.security.quotas import Component, UnknownEntityType, check_filter, is_selected


def handle(ctx: RequestContext, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Entities stand in the order in which they got their first quota."""
    components = [Component(each.entity_type, each.match_type, each.match) for each in request.components]
    try:
        check_filter(components)
    except UnknownEntityType as error:
        return _refused(ErrorCode.UNSUPPORTED_VERSION, str(error))
    except ValueError as error:
        return _refused(ErrorCode.INVALID_REQUEST, str(error))
    quotas = ctx.services.quotas
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=value) for key, value in values.items()],
        )
        for entity, values in (() if quotas is None else quotas.table)
        if is_selected(entity, components, strict=request.strict)
    ]
    return DescribeClientQuotasResponse(entries=entries)


def _refused(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
