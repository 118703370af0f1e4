"""DeleteShareGroupState: the share coordinator forgets share partitions."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import BROKERS_ONLY, answered
from partita.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from partita.protocol.primitives import Message

API = Served(DeleteShareGroupStateRequest, rights=BROKERS_ONLY)


def handle(ctx: RequestContext, request: DeleteShareGroupStateRequest) -> Steps[Message]:
    """Remove the state of each share partition."""
    return answered(ctx, request)
