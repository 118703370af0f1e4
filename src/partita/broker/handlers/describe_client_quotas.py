"""DescribeClientQuotas: the quotas of the entities that a filter means. (Kafka: ClientQuotasImage.)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from partita.security.quotas import Component, UnknownEntityType, check_filter, is_selected
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    DescribeClientQuotasRequest,
    rights=(Needs(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),),
    errors=Errors(says_why=True, fields={"entries": None}),
)


def handle(ctx: RequestContext, request: DescribeClientQuotasRequest) -> Steps[DescribeClientQuotasResponse]:
    """Entities stand in the order in which they got their first quota."""
    components = []
    for each in request.components:
        yield None
        components.append(Component(each.entity_type, each.match_type, each.match))
    try:
        check_filter(components)
    except UnknownEntityType as error:
        return _refused(ErrorCode.UNSUPPORTED_VERSION, str(error))
    except ValueError as error:
        return _refused(ErrorCode.INVALID_REQUEST, str(error))
    quotas = ctx.quotas
    entries = []
    for entity, values in () if quotas is None else tuple(quotas.table):
        yield None
        if is_selected(entity, components, strict=request.strict):
            entries.append(
                EntryData(
                    entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    values=[ValueData(key=key, value=value) for key, value in values.items()],
                )
            )
    return DescribeClientQuotasResponse(entries=entries)


def _refused(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
