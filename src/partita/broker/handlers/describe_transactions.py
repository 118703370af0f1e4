"""DescribeTransactions: each transactional id as its coordinator knows it. (§17)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import InHandler, NeedsEach
from partita.broker.api.served import Served
from partita.broker.shard_life import State
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribedTransactionTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from partita.security.rights.operations import Operation, ResourceType
from partita.transactions.contract import Described

API = Served(
    DescribeTransactionsRequest,
    rights=(
        NeedsEach(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional_ids", "transaction_states"),
        InHandler("to see its partitions: DESCRIBE on each TOPIC", "left out"),
    ),
)


def handle(ctx: RequestContext, request: DescribeTransactionsRequest) -> Steps[DescribeTransactionsResponse]:
    """An entry for each id, in order; of partitions those whose topics the asker may describe.

    An id that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """
    described = []
    for name in dict.fromkeys(request.transactional_ids):
        yield None
        described.append(_describe(ctx, name))
    return DescribeTransactionsResponse(transaction_states=described)


def _describe(ctx: RequestContext, transactional_id: str) -> DescribedTransaction:
    found = _found(ctx, transactional_id)
    transaction = found.transaction
    if found.code is not ErrorCode.NONE or transaction is None:
        return DescribedTransaction(error_code=found.code, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, index in found.partitions:
        topics.setdefault(topic, []).append(index)
    asking = ctx.asking
    allowed = topics if asking is None else asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, list(topics))
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=transaction.state.text,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[
            DescribedTransactionTopic(topic=topic, partitions=indexes)
            for topic, indexes in topics.items()
            if topic in allowed
        ],
    )


def _found(ctx: RequestContext, transactional_id: str) -> Described:
    if not transactional_id:
        return Described(ErrorCode.INVALID_REQUEST)
    runner = ctx.transactions.runner_of(transactional_id)
    if runner is None or runner.node_id != ctx.node_id:
        return Described(ErrorCode.NOT_COORDINATOR)
    if runner.state is not State.ACTIVE:
        return Described(runner.error)
    return runner.coordinator.describe(transactional_id)
