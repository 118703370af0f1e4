"""The seam between the leaders of share partitions and the share coordinator, which stores their state.

Its calls take and return the messages of the protocol. A call may be slow, and may fail: an answer holds an error for
each share partition, and a broken coordinator may raise. State counts as stored once a write was answered without an
error; calls about one share partition take effect in the order in which they were made. (Kafka: Persister.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from partita.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
    )
    from partita.protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
    )
    from partita.protocol.messages.read_share_group_state import (
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
    )
    from partita.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
    )
    from partita.protocol.messages.write_share_group_state import (
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
    )


class Persister(Protocol):
    """The share coordinator, as the leaders of partitions and the group coordinator see it."""

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
        """Begin the state of share partitions, or begin it anew."""
        ...

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        """The stored state; a newer leader epoch is stored with it and fences the older leaders."""
        ...

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        """Merge new state into what is stored."""
        ...

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
        """Forget the state of share partitions."""
        ...

    async def summarize(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
        """Where share partitions stand, without their batches."""
        ...
