"""ListPartitionReassignments: none is ever under way, since a move is over when its answer leaves.

(Kafka: ReplicationControlManager.listPartitionReassignments.)
"""

from __future__ import annotations

from partita.broker.requests.context import RequestContext
from partita.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(ctx: RequestContext, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """An empty list: a reassignment is complete when its own answer leaves."""
    return ListPartitionReassignmentsResponse(error_message=None)
