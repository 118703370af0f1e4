"""ShareGroupDescribe: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.features import serves_share_groups
from partita.broker.api.needs import Checked, NeedsEach, Verdict
from partita.broker.api.served import Served
from partita.broker.handlers._described_groups import described, hide, not_served
from partita.group.requests import DescribeShareGroup
from partita.protocol.messages.share_group_describe import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    ShareGroupDescribeRequest,
    rights=(
        NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", "groups"),
        Checked("DESCRIBE on each TOPIC of its members", "TOPIC_AUTHORIZATION_FAILED for the group, without members"),
    ),
)


def handle(ctx: RequestContext, request: ShareGroupDescribeRequest) -> Steps[Answer]:
    """Ask the shard of each group; one that is named repeatedly is described once."""
    if not serves_share_groups(ctx.config):
        return ShareGroupDescribeResponse(groups=not_served(request, DescribedShareGroup))
    groups = yield from described(ctx, request.group_ids, DescribeShareGroup, request)
    return ShareGroupDescribeResponse(groups=groups)


def check_rights(asking: Asking, request: ShareGroupDescribeRequest) -> Verdict | None:
    """A group is shown with all its topics, or nothing of it is."""
    return hide(asking, DescribedShareGroup, _topics_of)


def _topics_of(group: Any) -> Iterator[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        yield from (part.topic_name for part in member.assignment.topic_partitions)
