"""ConsumerGroupDescribe: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.features import serves_consumer_groups
from partita.broker.api.needs import Checked, NeedsEach, Verdict
from partita.broker.api.served import Served
from partita.broker.handlers._described_groups import described, hide, not_served
from partita.group.requests import DescribeConsumerGroup
from partita.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    ConsumerGroupDescribeRequest,
    rights=(
        NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", "groups"),
        Checked("DESCRIBE on each TOPIC of its members", "TOPIC_AUTHORIZATION_FAILED for the group, without members"),
    ),
)


def handle(ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> Steps[Answer]:
    """Ask the shard of each group; one that is named repeatedly is described once."""
    if not serves_consumer_groups(ctx.config):
        return ConsumerGroupDescribeResponse(groups=not_served(request, DescribedConsumerGroup))
    groups = yield from described(ctx, request.group_ids, DescribeConsumerGroup, request)
    return ConsumerGroupDescribeResponse(groups=groups)


def check_rights(asking: Asking, request: ConsumerGroupDescribeRequest) -> Verdict | None:
    """A group is shown with all its topics, or nothing of it is."""
    return hide(asking, DescribedConsumerGroup, _topics_of)


def _topics_of(group: Any) -> Iterator[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        for part in (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions):
            yield part.topic_name
