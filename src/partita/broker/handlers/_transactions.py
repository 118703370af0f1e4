"""Common parts of the transaction handlers: codes of old versions, the broker-only right, waiting for outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from partita.broker.api.context import Answer, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message
from partita.transactions.contract import Outcome

NOT_NOW = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Codes of a coordinator that cannot be asked now. Clients get them as codes that their request's version knows."""


def code_for(code: ErrorCode, version: int, fenced_from: int) -> ErrorCode:
    """Return PRODUCER_FENCED from version `fenced_from` on, INVALID_PRODUCER_EPOCH before. (TX-C03, TX-C07)"""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def answered_with(
    ctx: RequestContext, outcome: Outcome | asyncio.Future[Outcome], response: Callable[[Outcome], Answer]
) -> Answer:
    """The response made of the outcome, at once or when it is there; later requests of the connection wait."""
    if isinstance(outcome, Outcome):
        return response(outcome)
    ctx.holds_back = True
    return _later(outcome, response)


async def _later(outcome: asyncio.Future[Outcome], response: Callable[[Outcome], Answer]) -> Message | None:
    answer = response(await outcome)
    return await answer if isinstance(answer, Awaitable) else answer


def may_act_as_broker(ctx: RequestContext) -> bool:
    """Whether requests that brokers send each other are taken from this client.

    With an authorizer its rights decide, and were looked at before.

    Deviation: Partita without an authorizer accepts WriteTxnMarkers, AddPartitionsToTxn from version 4 on, and the
    requests that read and write the state of share partitions from the same machine alone, where Kafka accepts them
    from every client.
    """
    if ctx.rights is not None:
        return True
    try:
        return ip_address(ctx.host).is_loopback
    except ValueError:
        return False
