"""ReadShareGroupState: a leader that begins to serve share partitions asks for their stored state."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import BROKERS_ONLY, answered
from partita.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from partita.protocol.primitives import Message

API = Served(ReadShareGroupStateRequest, rights=BROKERS_ONLY)


def handle(ctx: RequestContext, request: ReadShareGroupStateRequest) -> Steps[Message]:
    """Answer with the state of each share partition; a newer leader epoch is stored."""
    return answered(ctx, request)
