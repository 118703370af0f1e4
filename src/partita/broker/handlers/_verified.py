"""Verification of Produce: a transaction begins in a partition only if its coordinator knows of it. (§13.1, KIP-890)

Up to version 11 the coordinator is asked whether the partition belongs to the transaction; from version 12 on the
partition is added by the question. The guard that the partition gives out before is shown with the append.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from partita.broker.api.context import RequestContext, Steps
from partita.broker.handlers._partitions import find
from partita.broker.handlers._transactions import NOT_NOW
from partita.broker.topics.catalogue import Topic
from partita.log.producer_state import Guard, Refusal
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.records.header import BatchHeader
from partita.transactions.contract import AddPartitions, Outcome, VerifyPartitions
from partita.transactions.model import TopicPartition

_ABORTABLE_FROM, _ADDS_FROM = 11, 12
_EMPTY_ID = "a transactional batch needs a transactional id"


class Transactional(Protocol):
    """One partition's batch on its way."""

    header: BatchHeader | None
    topic: Topic | None
    guard: Guard | None
    needs_guard: bool

    @property
    def index(self) -> int:
        """The partition's number."""


def verify(
    ctx: RequestContext,
    transactional_id: str | None,
    batches: Sequence[Transactional],
    refuse: Callable[[Transactional, ErrorCode, str | None], None],
) -> Steps[None]:
    """Ask for every batch that begins a transaction in its partition; refuse those that may not be appended."""
    found = [batch for batch in batches if batch.header is not None and batch.header.is_transactional]
    if not found:
        return
    if transactional_id is None:
        for batch in batches:
            refuse(batch, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _EMPTY_ID)
        return
    producers = {(batch.header.producer_id, batch.header.producer_epoch) for batch in found if batch.header is not None}
    if len(producers) > 1:
        for batch in batches:
            refuse(batch, ErrorCode.INVALID_PRODUCER_ID_MAPPING, "one request, several producers in transactions")
        return
    adds = ctx.version >= _ADDS_FROM
    if not adds and not ctx.config.bool("transaction.partition.verification.enable"):
        return
    asked = yield from _begin(ctx, found, refuse, adds=adds)
    if asked:
        outcome = yield from _ask(ctx, transactional_id, *producers.pop(), frozenset(asked), adds=adds)
        for name, batch in asked.items():
            code = _verdict(ctx, outcome, name)
            if code is not ErrorCode.NONE:
                refuse(batch, code, None)


def _begin(
    ctx: RequestContext,
    found: list[Transactional],
    refuse: Callable[[Transactional, ErrorCode, str | None], None],
    *,
    adds: bool,
) -> Steps[dict[TopicPartition, Transactional]]:
    """Batches whose transaction is not open in their partition, each with the guard that the partition gave it."""
    asked: dict[TopicPartition, Transactional] = {}
    wall_ms = ctx.now().wall_ms
    for batch in found:
        yield None
        assert batch.header is not None, "only batches with a header are looked at"
        partition = find(ctx, batch.topic, batch.index)
        if isinstance(partition, ErrorCode):
            continue  # the append says so
        batch.needs_guard = True
        try:
            guard = partition.log.producers.ask(batch.header, is_version_2=adds, wall_ms=wall_ms)
        except StorageError:
            continue  # the append says so
        if isinstance(guard, Refusal):
            refuse(batch, guard.code, guard.reason)
        elif guard is not None:
            batch.guard = guard
            asked[partition.topic.name, partition.index] = batch
    return asked


def _ask(
    ctx: RequestContext,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: frozenset[TopicPartition],
    *,
    adds: bool,
) -> Steps[Outcome]:
    """The coordinator's answer. While another step of the id is under way, an adding question is asked again."""
    producer = (transactional_id, producer_id, epoch)
    left_ms = ctx.config.int("add.partitions.to.txn.retry.backoff.max.ms")
    pause_ms = ctx.config.int("add.partitions.to.txn.retry.backoff.ms")
    while True:
        request = AddPartitions(*producer, partitions, 2) if adds else VerifyPartitions(*producer, partitions)
        answer = ctx.transactions.ask(request)
        outcome = (yield answer) if isinstance(answer, asyncio.Future) else answer
        if not adds or outcome.code is not ErrorCode.CONCURRENT_TRANSACTIONS or left_ms < pause_ms:
            return outcome
        left_ms -= pause_ms
        yield asyncio.sleep(pause_ms / 1000)


def _verdict(ctx: RequestContext, outcome: Outcome, name: TopicPartition) -> ErrorCode:
    """Return the client's code: by the version of its own request, whichever others ask at the same time. (TX-I20)"""
    code = outcome.code
    if code is ErrorCode.NONE and outcome.verdicts:
        code = outcome.verdicts.get(name, ErrorCode.NONE)
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and ctx.version < _ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    if code in NOT_NOW or (code is ErrorCode.CONCURRENT_TRANSACTIONS and ctx.version < _ADDS_FROM):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
