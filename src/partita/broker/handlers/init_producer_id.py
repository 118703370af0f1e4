"""InitProducerId: a producer id for an idempotent producer, or id and epoch of a transactional one. (§6)"""

from __future__ import annotations

from functools import partial

from partita.broker.handlers._transactions import answered_with, code_for
from partita.broker.requests.context import Answer, RequestContext
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from partita.transactions.contract import InitProducer, Outcome

_FENCED_FROM = 4


def handle(ctx: RequestContext, request: InitProducerIdRequest) -> Answer:
    """Every idempotent producer gets a new id at epoch 0; an id it already has is of no interest, as in Kafka.

    A producer is told once the block of ids that its id belongs to is durably taken, or a power loss would give it out
    again.
    """
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    try:
        return _asked(ctx, request)
    except StorageError:
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # no block of ids could be taken now (TX-B12)


def _asked(ctx: RequestContext, request: InitProducerIdRequest) -> Answer:
    if request.transactional_id is None:
        given = InitProducerIdResponse(producer_id=ctx.catalogue.allocate_producer_id(), producer_epoch=0)
        return ctx.when_durable(given)
    asked = InitProducer(
        request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
    )
    return answered_with(ctx, ctx.transactions.ask(asked, ctx.node_id), partial(_response, ctx))


def _response(ctx: RequestContext, outcome: Outcome) -> Answer:
    if outcome.code is not ErrorCode.NONE:
        return _refused(code_for(outcome.code, ctx.version, _FENCED_FROM))
    return ctx.when_durable(InitProducerIdResponse(producer_id=outcome.producer_id, producer_epoch=outcome.epoch))


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
