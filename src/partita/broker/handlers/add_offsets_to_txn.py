"""AddOffsetsToTxn: the partition of `__consumer_offsets` that holds the group joins the transaction. (§8.1)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext
from partita.broker.api.needs import READ_GROUP, WRITE_ID
from partita.broker.api.served import Served
from partita.broker.handlers._transactions import answered_with, code_for
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from partita.transactions.contract import AddPartitions, Outcome

API = Served(
    AddOffsetsToTxnRequest,
    rights=(
        WRITE_ID,
        READ_GROUP,
    ),
)

_FENCED_FROM = 2


def handle(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> Answer:
    """The group need not exist; the topic of the offsets is created if it has to be."""
    ctx.cluster.ensure_state_topic(OFFSETS_TOPIC)
    partition = ctx.groups.partition_of(request.group_id)
    if partition is None:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    added = frozenset({(OFFSETS_TOPIC, partition.index)})
    asked = AddPartitions(request.transactional_id, request.producer_id, request.producer_epoch, added)

    def response(outcome: Outcome) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=code_for(outcome.code, ctx.version, _FENCED_FROM))

    return answered_with(ctx, ctx.transactions.ask(asked, ctx.node_id), response)
