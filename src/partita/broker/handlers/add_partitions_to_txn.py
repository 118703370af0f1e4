"""AddPartitionsToTxn: partitions join a transaction, all or none; from version 4 on a request of brokers. (§7)"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import REFUSED_WITH, Checked, InHandler, Verdict, refused
from partita.broker.api.served import Served
from partita.broker.handlers._transactions import code_for, may_act_as_broker
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
from partita.security.rights.operations import Operation, ResourceType
from partita.transactions.contract import AddPartitions, Outcome, VerifyPartitions
from partita.transactions.model import TopicPartition

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    AddPartitionsToTxnRequest,
    rights=(
        Checked(
            "WRITE TRANSACTIONAL_ID; from version 4 on CLUSTER_ACTION CLUSTER",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED; CLUSTER_AUTHORIZATION_FAILED",
        ),
        InHandler(
            "up to version 3 WRITE on each TOPIC",
            "TOPIC_AUTHORIZATION_FAILED for it, OPERATION_NOT_ATTEMPTED for the others",
        ),
    ),
)

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


def handle(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> Steps[AddPartitionsToTxnResponse]:
    """Answer each transaction by itself, with a code on each of its partitions."""
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
    found = []
    for one in asked:
        yield None
        found.append((yield from _ask(ctx, one)))
    outcomes: list[Codes | Outcome] = []
    for outcome in found:
        outcomes.append((yield from settled(outcome)))
    return (yield from _response(ctx, asked, outcomes))


def _ask(ctx: RequestContext, asked: _Transaction) -> Steps[Codes | Outcome | asyncio.Future[Outcome]]:
    refused = yield from _not_to_be_added(ctx, asked)
    if refused:
        others = ErrorCode.OPERATION_NOT_ATTEMPTED
        return {one: refused.get(one, others) for one in asked.partitions}
    producer = (asked.transactional_id, asked.producer_id, asked.epoch)
    partitions = frozenset(asked.partitions)
    if asked.verify_only:
        return ctx.transactions.ask(VerifyPartitions(*producer, partitions), ctx.node_id)
    version = 2 if ctx.version >= _OF_BROKERS_FROM else 0
    return ctx.transactions.ask(AddPartitions(*producer, partitions, version), ctx.node_id)


def _not_to_be_added(ctx: RequestContext, asked: _Transaction) -> Steps[Codes]:
    """Return partitions that do not exist or that the client may not write to; for clients also internal ones."""
    is_client = ctx.version < _OF_BROKERS_FROM
    asking = ctx.asking if is_client else None
    names = list(dict.fromkeys(topic.name for topic in asked.topics))
    allowed = None if asking is None else asking.may_all(Operation.WRITE, ResourceType.TOPIC, names)
    refused = {}
    for name, index in asked.partitions:
        yield None
        topic = ctx.catalogue.get(name)
        if (allowed is not None and name not in allowed) or (is_client and topic is not None and topic.is_internal):
            refused[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or topic.partition(index) is None:
            refused[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _response(
    ctx: RequestContext, asked: list[_Transaction], found: list[Codes | Outcome]
) -> Steps[AddPartitionsToTxnResponse]:
    response = AddPartitionsToTxnResponse()
    if ctx.version < _OF_BROKERS_FROM:
        for topic in asked[0].topics:
            yield None
            of_topic = V3AndBelowTopicResult(name=topic.name)
            response.results_by_topic_v3_and_below.append(of_topic)
            for index in topic.partitions:
                yield None
                code = _code(ctx, found[0], (topic.name, index))
                of_topic.results_by_partition.append(
                    V3AndBelowPartitionResult(partition_index=index, partition_error_code=code)
                )
        return response
    for one, codes in zip(asked, found, strict=True):
        of_transaction = AddPartitionsToTxnResult(transactional_id=one.transactional_id)
        response.results_by_transaction.append(of_transaction)
        for topic in one.topics:
            yield None
            added = AddPartitionsToTxnTopicResult(name=topic.name)
            of_transaction.topic_results.append(added)
            for index in topic.partitions:
                yield None
                code = _code(ctx, codes, (topic.name, index))
                added.results_by_partition.append(
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                )
    return response


def _code(ctx: RequestContext, found: Codes | Outcome, partition: TopicPartition) -> ErrorCode:
    if not isinstance(found, Outcome):
        return found[partition]
    code = found.code
    if code is ErrorCode.NONE and found.verdicts:
        code = found.verdicts.get(partition, ErrorCode.NONE)
    return code_for(code, ctx.version, _FENCED_FROM)


def check_rights(asking: Asking, request: AddPartitionsToTxnRequest) -> Verdict | None:
    """A client needs the right to write with the transactional id, a broker the right to act as one."""
    kind, name = ResourceType.CLUSTER, ""
    if asking.version < _OF_BROKERS_FROM:
        kind, name = ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id
        is_allowed = asking.may(Operation.WRITE, kind, name)
    else:
        is_allowed = asking.may(Operation.CLUSTER_ACTION, kind)
    return None if is_allowed else refused(asking, request, REFUSED_WITH[kind])
