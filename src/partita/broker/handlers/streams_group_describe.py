"""StreamsGroupDescribe: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.features import serves_streams_groups
from partita.broker.api.needs import Checked, NeedsEach, Verdict
from partita.broker.api.served import Served
from partita.broker.handlers._described_groups import described, hide, not_served
from partita.group.requests import DescribeStreamsGroup
from partita.protocol.messages.streams_group_describe import (
    StreamsDescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    StreamsGroupDescribeRequest,
    rights=(
        NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", "groups"),
        Checked("DESCRIBE on each TOPIC of its topology", "TOPIC_AUTHORIZATION_FAILED for the group, without members"),
    ),
)

_NOT_STORED = 1
"""Status of a topology description: no plugin of the broker stores any."""


def handle(ctx: RequestContext, request: StreamsGroupDescribeRequest) -> Steps[Answer]:
    """Ask the shard of each group; one that is named repeatedly is described once."""
    if not serves_streams_groups(ctx.config, ctx.catalogue):
        return StreamsGroupDescribeResponse(groups=not_served(request, StreamsDescribedGroup))
    groups = yield from described(ctx, request.group_ids, DescribeStreamsGroup, request)
    for group in groups:
        if request.include_topology_description and not group.error_code:
            group.topology_description_status = _NOT_STORED
    return StreamsGroupDescribeResponse(groups=groups)


def check_rights(asking: Asking, request: StreamsGroupDescribeRequest) -> Verdict | None:
    """A group is shown with all its topics, or nothing of it is."""
    return hide(asking, StreamsDescribedGroup, _topics_of)


def _topics_of(group: Any) -> Iterator[str]:
    for sub in () if group.topology is None else group.topology.subtopologies or ():
        yield from (*sub.source_topics, *sub.repartition_sink_topics)
        yield from (info.name for info in (*sub.repartition_source_topics, *sub.state_changelog_topics))
