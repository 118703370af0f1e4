"""Common part of the five handlers that leaders ask for stored state: each share partition is answered for itself."""

from __future__ import annotations

import asyncio

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import Needs
from partita.broker.handlers._transactions import may_act_as_broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message
from partita.security.rights.operations import Operation, ResourceType
from partita.share.coordinator.requests import Outcome
from partita.share.coordinator.wire import merge, split

BROKERS_ONLY = (Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),)


def answered(ctx: RequestContext, message: Message) -> Steps[Message]:
    """Ask the shard of every share partition; the answer leaves once all of it is durable."""
    may = may_act_as_broker(ctx)
    asked: list[Outcome | asyncio.Future[Outcome]] = []
    for request in split(message):
        yield None
        if request is not None:
            asked.append(ctx.share_states.ask(request, ctx.node_id) if may else _NOT_A_BROKER)
    outcomes = []
    for one in asked:
        outcomes.append((yield from settled(one)))
        yield None
    return merge(message, outcomes)


_NOT_A_BROKER = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
