"""DescribeTransactions: what the coordinator of each transactional id knows of it. (§17)"""

from __future__ import annotations

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, sliced
from partita.broker.shard_leadership import State
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribedTransactionTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from partita.security.rights.acls import Operation, ResourceType
from partita.transactions.contract import Described


def handle(ctx: RequestContext, request: DescribeTransactionsRequest) -> Answer:
    """An entry for each id, in order; of partitions those whose topics the asker may describe.

    An id that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """
    return answered(ctx, _answer(ctx, request))


def _answer(ctx: RequestContext, request: DescribeTransactionsRequest) -> Steps[DescribeTransactionsResponse]:
    described = []
    for name, others_turn in sliced(dict.fromkeys(request.transactional_ids), ctx.stopwatch):
        if others_turn:
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
