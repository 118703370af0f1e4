"""TxnOffsetCommit: check that topics and partitions exist, ask the transaction's coordinator, then the group's. (§8.2)

Up to version 4 the partition of `__consumer_offsets` must belong to the transaction; version 5 adds it.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from partita.broker.api.context import Answer, RequestContext, Steps, when_all
from partita.broker.api.needs import READ_GROUP, WRITE_ID, NeedsEach
from partita.broker.api.served import Served
from partita.broker.handlers._partitions import merged, take_out_missing
from partita.broker.handlers._transactions import NOT_NOW
from partita.broker.shard_life import State
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.group.state.answers import txn_offset_commit_error
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from partita.security.rights.operations import Operation, ResourceType
from partita.transactions.contract import AddPartitions, Outcome, VerifyPartitions

BY_ID_FROM = 6
API = Served(
    TxnOffsetCommitRequest,
    rights=(
        WRITE_ID,
        READ_GROUP,
        NeedsEach(Operation.READ, ResourceType.TOPIC, "topics", "topics", "name", ids_from=BY_ID_FROM),
    ),
)

_LOADING_FROM, _ADDS_FROM = 2, 5
Refused: TypeAlias = dict[tuple[str, bytes], TxnOffsetCommitResponseTopic]
"""The answers to partitions that do not exist, by name and id of their topics."""
_NOT_ASKED = Outcome(ErrorCode.NONE)


def handle(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Steps[Answer]:
    """As OffsetCommit: what does not exist is refused here."""
    refused: Refused = {}
    asked = request.topics
    for topic in asked:
        yield None
        yield from _keep_existing(ctx, topic, refused)
    request.topics = [topic for topic in asked if topic.partitions]
    if not request.topics:
        return TxnOffsetCommitResponse(topics=list(refused.values()))
    outcome = _verified(ctx, request)
    if isinstance(outcome, asyncio.Future):
        ctx.holds_back = True
        return _later(ctx, request, refused, outcome)
    return when_all([_ask_group(ctx, request, outcome)], lambda parts: _merge(refused, parts[0]))


async def _later(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    refused: Refused,
    outcome: asyncio.Future[Outcome],
) -> TxnOffsetCommitResponse:
    added = await outcome
    if added.code is ErrorCode.NONE:
        added = _still_open(ctx, request)
    answer = _ask_group(ctx, request, added)
    return _merge(refused, await answer if isinstance(answer, asyncio.Future) else answer)


def _verified(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Outcome | asyncio.Future[Outcome]:
    """Return the outcome of the transaction's coordinator; NONE where the group's shard refuses anyway."""
    runner = ctx.groups.runner_of(request.group_id)
    is_served = runner is not None and runner.node_id == ctx.node_id and runner.state is State.ACTIVE
    if runner is None or not is_served or not request.group_id:
        return _NOT_ASKED
    if request.producer_epoch < runner.coordinator.hard_state.producer_epochs.get(request.producer_id, -1):
        return Outcome(ErrorCode.PRODUCER_FENCED)
    partition = frozenset({(OFFSETS_TOPIC, runner.partition.index)})
    producer = (request.transactional_id, request.producer_id, request.producer_epoch)
    if ctx.version >= _ADDS_FROM:
        return ctx.transactions.ask(AddPartitions(*producer, partition, 2))
    if not ctx.config.bool("transaction.partition.verification.enable"):
        return _NOT_ASKED
    return ctx.transactions.ask(VerifyPartitions(*producer, partition))


def _still_open(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Outcome:
    """Return the coordinator's outcome as of now: the transaction may have ended since the partition was added.

    A commit that came after the marker would wait for ever. This answer needs no log, so nothing comes between.
    """
    runner = ctx.groups.runner_of(request.group_id)
    if runner is None:
        return _NOT_ASKED
    partition = frozenset({(OFFSETS_TOPIC, runner.partition.index)})
    producer = (request.transactional_id, request.producer_id, request.producer_epoch)
    outcome = ctx.transactions.ask(VerifyPartitions(*producer, partition))
    assert isinstance(outcome, Outcome), "a question never waits"
    return Outcome(ErrorCode.TRANSACTION_ABORTABLE) if outcome.verdicts else outcome


def _ask_group(ctx: RequestContext, request: TxnOffsetCommitRequest, outcome: Outcome) -> Any:
    if any(_is_gone(ctx, topic) for topic in request.topics):
        return txn_offset_commit_error(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if outcome.code is ErrorCode.NONE:
        return ctx.groups.ask(ctx, request, request.group_id, transaction_open=not outcome.verdicts)
    code = outcome.code
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code in NOT_NOW:
        old = ctx.version < _LOADING_FROM
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if old else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return txn_offset_commit_error(request, code)


def _is_gone(ctx: RequestContext, asked: TxnOffsetCommitRequestTopic) -> bool:
    """Whether a topic that was there has been deleted while others had their turn."""
    topic = ctx.catalogue.get(asked.name)
    return topic is None or (ctx.version >= BY_ID_FROM and topic.topic_id != asked.topic_id)


def _keep_existing(ctx: RequestContext, asked: TxnOffsetCommitRequestTopic, refused: Refused) -> Steps[None]:
    by_id = ctx.version >= BY_ID_FROM
    topic = ctx.catalogue.by_id.get(asked.topic_id) if by_id else ctx.catalogue.get(asked.name)
    if by_id and topic is not None:
        asked.name = topic.name
    missing = yield from take_out_missing(topic, asked)
    if missing or not asked.partitions:
        entry = TxnOffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
        entry = refused.setdefault(_key(entry), entry)
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        entry.partitions += [TxnOffsetCommitResponsePartition(partition_index=i, error_code=code) for i in missing]


def _key(topic: TxnOffsetCommitResponseTopic) -> tuple[str, bytes]:
    return topic.name, topic.topic_id


def _merge(refused: Refused, response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
    response.topics = merged(refused, response.topics, _key)
    return response
