"""StreamsGroupTopologyDescriptionUpdate: refused, since no plugin of this broker stores descriptions of topologies."""

from __future__ import annotations

from partita.broker.api.context import RequestContext
from partita.broker.api.needs import READ_GROUP
from partita.broker.api.served import Served
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

API = Served(StreamsGroupTopologyDescriptionUpdateRequest, rights=(READ_GROUP,))

_TEXT = "The broker has no streams group topology description plugin configured."


def handle(
    ctx: RequestContext, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Answer as a broker of Kafka without such a plugin."""
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=_TEXT)
