"""EndTxn: commit or abort; answered when the decision is stored, before the markers are written. (§9)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import WRITE_ID
from partita.broker.api.served import Served
from partita.broker.handlers._transactions import answered_with, code_for
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from partita.transactions.contract import EndTransaction, Outcome
from partita.transactions.model import NO_PRODUCER_ID

API = Served(EndTxnRequest, rights=(WRITE_ID,))

_FENCED_FROM, _VERSION_2_FROM = 2, 5


def handle(ctx: RequestContext, request: EndTxnRequest) -> Answer:
    """End the transaction. From version 5 on the answer has the producer id and epoch to be used next.

    A new producer id is sent once its block of ids is durably taken.
    """
    version = 2 if ctx.version >= _VERSION_2_FROM else 0
    asked = EndTransaction(
        request.transactional_id, request.producer_id, request.producer_epoch, request.committed, version
    )

    def response(outcome: Outcome) -> Answer:
        code = code_for(outcome.code, ctx.version, _FENCED_FROM)
        if code is not ErrorCode.NONE:
            return EndTxnResponse(error_code=code)
        told = EndTxnResponse(producer_id=outcome.producer_id, producer_epoch=outcome.epoch)
        is_new = outcome.producer_id not in (NO_PRODUCER_ID, request.producer_id)
        return ctx.when_durable(told) if is_new else told

    return answered_with(ctx, ctx.transactions.ask(asked, ctx.node_id), response)
