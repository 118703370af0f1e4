"""InitProducerId: a producer id for an idempotent producer, or id and epoch of a transactional one. (§6)"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import REFUSED_WITH, Checked, Needs, Verdict, refused
from partita.broker.api.served import Errors, Served
from partita.broker.handlers._transactions import answered_with, code_for
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from partita.security.rights.operations import Operation, ResourceType
from partita.transactions.contract import InitProducer, Outcome

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    InitProducerIdRequest,
    rights=(
        Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", optional=True),
        Checked("else IDEMPOTENT_WRITE CLUSTER, or WRITE on some TOPIC", "CLUSTER_AUTHORIZATION_FAILED"),
    ),
    errors=Errors(fields={"producer_id": -1, "producer_epoch": -1}),
    last=5,
)

_FENCED_FROM = 4


def handle(ctx: RequestContext, request: InitProducerIdRequest) -> Answer:
    """Answer every idempotent producer with a new id at epoch 0; an id it already has does not matter, as in Kafka.

    The answer waits until the block of ids that the id belongs to is durably taken, or a power loss would give it out
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


def check_rights(asking: Asking, request: InitProducerIdRequest) -> Verdict | None:
    """Require, without a transactional id, the right to write to any topic."""
    if request.transactional_id is not None or asking.may(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, is_logged=False
    ):
        return None
    if asking.may_some(Operation.WRITE, ResourceType.TOPIC):
        return None
    asking.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)  # for the audit log
    return refused(asking, request, REFUSED_WITH[ResourceType.CLUSTER])
