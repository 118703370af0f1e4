"""AddPartitionsToTxn: partitions join a transaction, all or none; from version 4 on a request of brokers. (§7)"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from partita.broker.handlers._transactions import code_for, may_act_as_broker
from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    V3AndBelowPartitionResult,
    V3AndBelowTopicResult,
)
from partita.security.rights.acls import Operation, ResourceType
from partita.transactions.contract import AddPartitions, Outcome, VerifyPartitions
from partita.transactions.model import TopicPartition

_FENCED_FROM, _OF_BROKERS_FROM = 2, 4


class AskedTopic(Protocol):
    """A topic of either form of the request."""

    name: str
    partitions: list[int]


class _Transaction(NamedTuple):
    """One transaction of the request."""

    transactional_id: str
    producer_id: int
    epoch: int
    verify_only: bool
    topics: Sequence[AskedTopic]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [(topic.name, index) for topic in self.topics for index in topic.partitions]


Codes = dict[TopicPartition, ErrorCode]


def handle(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> Answer:
    """Each transaction is answered for itself, with a code on each of its partitions."""
    if ctx.version < _OF_BROKERS_FROM:
        asked = [
            _Transaction(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                False,
                request.v3_and_below_topics,
            )
        ]
    elif not may_act_as_broker(ctx):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        asked = [
            _Transaction(t.transactional_id, t.producer_id, t.producer_epoch, t.verify_only, t.topics)
            for t in request.transactions
        ]
    found = [_ask(ctx, one) for one in asked]
    waiting = [outcome for outcome in found if isinstance(outcome, asyncio.Future)]
    if not waiting:
        return _response(ctx, asked, [o for o in found if not isinstance(o, asyncio.Future)])
    ctx.holds_back = True
    return _later(ctx, asked, found)


async def _later(
    ctx: RequestContext, asked: list[_Transaction], found: list[Codes | Outcome | asyncio.Future[Outcome]]
) -> AddPartitionsToTxnResponse:
    return _response(ctx, asked, [await o if isinstance(o, asyncio.Future) else o for o in found])


def _ask(ctx: RequestContext, asked: _Transaction) -> Codes | Outcome | asyncio.Future[Outcome]:
    refused = _not_to_be_added(ctx, asked)
    if refused:
        others = ErrorCode.OPERATION_NOT_ATTEMPTED
        return {one: refused.get(one, others) for one in asked.partitions}
    producer = (asked.transactional_id, asked.producer_id, asked.epoch)
    partitions = frozenset(asked.partitions)
    if asked.verify_only:
        return ctx.transactions.ask(VerifyPartitions(*producer, partitions), ctx.node_id)
    version = 2 if ctx.version >= _OF_BROKERS_FROM else 0
    return ctx.transactions.ask(AddPartitions(*producer, partitions, version), ctx.node_id)


def _not_to_be_added(ctx: RequestContext, asked: _Transaction) -> Codes:
    """Partitions that are not there or not the client's to write to; of clients also those of internal topics."""
    is_client = ctx.version < _OF_BROKERS_FROM
    asking = ctx.asking if is_client else None
    names = list(dict.fromkeys(topic.name for topic in asked.topics))
    allowed = None if asking is None else asking.may_all(Operation.WRITE, ResourceType.TOPIC, names)
    refused = {}
    for name, index in asked.partitions:
        topic = ctx.catalogue.get(name)
        if (allowed is not None and name not in allowed) or (is_client and topic is not None and topic.is_internal):
            refused[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or topic.partition(index) is None:
            refused[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _response(
    ctx: RequestContext, asked: list[_Transaction], found: list[Codes | Outcome]
) -> AddPartitionsToTxnResponse:
    if ctx.version < _OF_BROKERS_FROM:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                V3AndBelowTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        V3AndBelowPartitionResult(
                            partition_index=index, partition_error_code=_code(ctx, found[0], (topic.name, index))
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in asked[0].topics
            ]
        )
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=one.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=_code(ctx, codes, (topic.name, index))
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in one.topics
                ],
            )
            for one, codes in zip(asked, found, strict=True)
        ]
    )


def _code(ctx: RequestContext, found: Codes | Outcome, partition: TopicPartition) -> ErrorCode:
    if not isinstance(found, Outcome):
        return found[partition]
    code = found.code
    if code is ErrorCode.NONE and found.verdicts:
        code = found.verdicts.get(partition, ErrorCode.NONE)
    return code_for(code, ctx.version, _FENCED_FROM)
