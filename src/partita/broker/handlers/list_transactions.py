"""ListTransactions: the transactional ids of every shard that this node leads. Clients ask each node. (§17)"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.broker.shard_leadership import State
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from partita.security.rights.acls import Operation, ResourceType
from partita.transactions.contract import Filters
from partita.transactions.model import STATES_BY_TEXT


def handle(ctx: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """While a shard loads nobody knows all ids: then none are listed."""
    runners = ctx.transactions.led_by(ctx.node_id)
    if any(runner.state is State.LOADING for runner in runners):
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    unknown = [name for name in request.state_filters if name not in STATES_BY_TEXT]
    filters = Filters(
        frozenset(request.state_filters),
        frozenset(request.producer_id_filters),
        request.duration_filter,
        request.transactional_id_pattern,
    )
    asking = ctx.asking
    try:
        found = [one for r in runners if r.state is State.ACTIVE for one in r.coordinator.list(filters, ctx.now())]
    except ValueError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    if asking is not None:
        kind = ResourceType.TRANSACTIONAL_ID
        found = [one for one in found if asking.may(Operation.DESCRIBE, kind, one.transactional_id, is_logged=False)]
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            ListedTransaction(
                transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state.text
            )
            for one in found
        ],
    )
