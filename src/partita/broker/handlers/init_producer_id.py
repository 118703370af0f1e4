"""InitProducerId: an id for an idempotent producer.

Deviation: InitProducerId with a transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, since there
is no transaction coordinator yet.
"""

from __future__ import annotations

from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(ctx: RequestContext, request: InitProducerIdRequest) -> Answer:
    """Every idempotent producer gets a new id at epoch 0; an id it already has is of no interest, as in Kafka.

    It is told once the block of ids that it belongs to is durably taken, or a power loss would give it out again.
    """
    if request.transactional_id is not None:
        empty = request.transactional_id == ""
        code = ErrorCode.INVALID_REQUEST if empty else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    given = InitProducerIdResponse(producer_id=ctx.catalogue.allocate_producer_id(), producer_epoch=0)
    return ctx.when_durable(given)
