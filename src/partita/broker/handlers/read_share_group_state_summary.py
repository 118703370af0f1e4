"""ReadShareGroupStateSummary: where share partitions stand, without their batches."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import BROKERS_ONLY, answered
from partita.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from partita.protocol.primitives import Message

API = Served(ReadShareGroupStateSummaryRequest, rights=BROKERS_ONLY)


def handle(ctx: RequestContext, request: ReadShareGroupStateSummaryRequest) -> Steps[Message]:
    """Answer with epochs, start offset and count of each share partition."""
    return answered(ctx, request)
