"""ConsumerGroupDescribe: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from partita.broker.api.apis import serves_consumer_groups
from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Checked, NeedsEach, Verdict
from partita.broker.api.served import Served
from partita.broker.handlers._operations import group_operations
from partita.group.requests import DescribeConsumerGroup
from partita.protocol.error_codes import ErrorCode
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


def handle(ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> Answer | Steps[Answer]:
    """Ask the shard of each group; groups are answered in the order asked.

    A group that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """
    if not serves_consumer_groups(ctx.config):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [DescribedConsumerGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=groups)
    return _asked(ctx, request)


def _asked(ctx: RequestContext, request: ConsumerGroupDescribeRequest) -> Steps[ConsumerGroupDescribeResponse]:
    groups: list[DescribedConsumerGroup] = []
    for group_id in dict.fromkeys(request.group_ids):
        yield None
        described = ctx.groups.ask(ctx, DescribeConsumerGroup(group_id), group_id)
        group = (yield described) if isinstance(described, asyncio.Future) else described
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(ctx, group_id)
        groups.append(group)
    return ConsumerGroupDescribeResponse(groups=groups)


def check_rights(asking: Asking, request: ConsumerGroupDescribeRequest) -> Verdict | None:
    """A group is shown with all its topics, or nothing of it is."""

    message = "The described group uses topics that the client is not authorized to describe."

    def shown(group: Any) -> Any:
        topics = [name for member in group.members for name in _topics_of(member)]
        if len(asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, topics)) == len(set(topics)):
            return group
        return DescribedConsumerGroup(
            group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message
        )

    def complete(answer: ConsumerGroupDescribeResponse) -> None:
        answer.groups = [shown(group) for group in answer.groups]

    return Verdict(complete=complete)


def _topics_of(member: Any) -> list[str]:
    parts = (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
    return [*member.subscribed_topic_names, *(part.topic_name for part in parts)]
