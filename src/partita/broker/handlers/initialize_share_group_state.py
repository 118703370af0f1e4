"""InitializeShareGroupState: the share coordinator begins the state of share partitions, or begins it anew."""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import Needs
from partita.broker.api.served import Served
from partita.broker.handlers._share_states import answered
from partita.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from partita.protocol.primitives import Message
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    InitializeShareGroupStateRequest,
    rights=(Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),),
)


def handle(ctx: RequestContext, request: InitializeShareGroupStateRequest) -> Steps[Message]:
    """Initialize each share partition."""
    return answered(ctx, request)
