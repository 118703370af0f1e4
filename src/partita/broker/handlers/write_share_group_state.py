"""WriteShareGroupState: a leader stores what became of records."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import BROKERS_ONLY, answered
from partita.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from partita.protocol.primitives import Message

API = Served(WriteShareGroupStateRequest, rights=BROKERS_ONLY)


def handle(ctx: RequestContext, request: WriteShareGroupStateRequest) -> Steps[Message]:
    """Merge each share partition's batches into its state."""
    return answered(ctx, request)
