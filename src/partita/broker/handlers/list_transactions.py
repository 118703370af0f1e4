"""ListTransactions: the transactional ids of every shard that this node leads. Clients ask each node. (§17)"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import InHandler
from partita.broker.api.served import Served
from partita.broker.shard_life import State
from partita.expressions import InvalidExpression
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from partita.security.rights.operations import Operation, ResourceType
from partita.transactions.contract import Filters
from partita.transactions.coordinator import TransactionCoordinator
from partita.transactions.describe import pattern_of
from partita.transactions.model import STATES_BY_TEXT

API = Served(
    ListTransactionsRequest,
    rights=(InHandler("DESCRIBE on each TRANSACTIONAL_ID", "left out"),),
)


def handle(ctx: RequestContext, request: ListTransactionsRequest) -> Answer | Steps[Answer]:
    """List the ids; none while a shard loads, when the list would be incomplete. Many ids are looked at in slices."""
    runners = ctx.transactions.led_by(ctx.node_id)
    if any(runner.state is State.LOADING for runner in runners):
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        matches = pattern_of(request.transactional_id_pattern)
    except InvalidExpression:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    filters = Filters(
        frozenset(request.state_filters), frozenset(request.producer_id_filters), request.duration_filter, matches
    )
    coordinators = [runner.coordinator for runner in runners if runner.state is State.ACTIVE]
    return _listed(ctx, request, filters, coordinators)


def _listed(
    ctx: RequestContext,
    request: ListTransactionsRequest,
    filters: Filters,
    coordinators: list[TransactionCoordinator],
) -> Steps[ListTransactionsResponse]:
    asking, now = ctx.asking, ctx.now()
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATES_BY_TEXT]
    )
    for coordinator in coordinators:
        for one in coordinator.list(filters, now):
            if one is not None and (
                asking is None
                or asking.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one.transactional_id, is_logged=False)
            ):
                response.transaction_states.append(
                    ListedTransaction(
                        transactional_id=one.transactional_id,
                        producer_id=one.producer_id,
                        transaction_state=one.state.text,
                    )
                )
            yield None
    return response
