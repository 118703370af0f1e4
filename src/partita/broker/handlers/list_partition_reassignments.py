"""ListPartitionReassignments: none is ever under way, since a move is over when its answer leaves.

(Kafka: ReplicationControlManager.listPartitionReassignments.)
"""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.needs import Needs
from partita.broker.api.served import Errors, Served
from partita.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    ListPartitionReassignmentsRequest,
    rights=(Needs(Operation.DESCRIBE, ResourceType.CLUSTER),),
    errors=Errors(fields={"error_message": ""}),
    deviation="Partita lists no reassignment, since each completes at once, where Kafka lists those under way",
)


def handle(ctx: RequestContext, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """An empty list: a reassignment is complete when its own answer leaves."""
    return ListPartitionReassignmentsResponse(error_message=None)
