"""WriteShareGroupState: a leader stores what became of records."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import answered
from partita.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from partita.protocol.primitives import Message
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    WriteShareGroupStateRequest,
    rights=(Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),),
)


def handle(ctx: RequestContext, request: WriteShareGroupStateRequest) -> Steps[Message]:
    """Merge each share partition's batches into its state."""
    return answered(ctx, request)
