"""InitializeShareGroupState: the share coordinator begins the state of share partitions, or begins it anew."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import BROKERS_ONLY, answered
from partita.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from partita.protocol.primitives import Message

API = Served(InitializeShareGroupStateRequest, rights=BROKERS_ONLY)


def handle(ctx: RequestContext, request: InitializeShareGroupStateRequest) -> Steps[Message]:
    """Initialize each share partition."""
    return answered(ctx, request)
