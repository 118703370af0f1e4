"""ShareGroupDescribe: the shard of each group is asked, and each group is answered separately."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from partita.broker.api.apis import serves_share_groups
from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import Checked, NeedsEach, Verdict
from partita.broker.api.served import Served
from partita.broker.handlers._operations import group_operations
from partita.group.requests import DescribeShareGroup
from partita.protocol.error_codes import ErrorCode
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


def handle(ctx: RequestContext, request: ShareGroupDescribeRequest) -> Answer | Steps[Answer]:
    """Ask the shard of each group; one that is named repeatedly is described once."""
    if not serves_share_groups(ctx.config):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [DescribedShareGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
        return ShareGroupDescribeResponse(groups=groups)
    return _asked(ctx, request)


def _asked(ctx: RequestContext, request: ShareGroupDescribeRequest) -> Steps[ShareGroupDescribeResponse]:
    groups: list[DescribedShareGroup] = []
    for group_id in dict.fromkeys(request.group_ids):
        yield None
        described = ctx.groups.ask(ctx, DescribeShareGroup(group_id), group_id)
        group = (yield described) if isinstance(described, asyncio.Future) else described
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(ctx, group_id)
        groups.append(group)
    return ShareGroupDescribeResponse(groups=groups)


def check_rights(asking: Asking, request: ShareGroupDescribeRequest) -> Verdict | None:
    """A group is shown with all its topics, or nothing of it is."""

    message = "The described group uses topics that the client is not authorized to describe."

    def shown(group: Any) -> Any:
        topics = [name for member in group.members for name in _topics_of(member)]
        if len(asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, topics)) == len(set(topics)):
            return group
        return DescribedShareGroup(
            group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message
        )

    def complete(answer: ShareGroupDescribeResponse) -> None:
        answer.groups = [shown(group) for group in answer.groups]

    return Verdict(complete=complete)


def _topics_of(member: Any) -> list[str]:
    return [*member.subscribed_topic_names, *(part.topic_name for part in member.assignment.topic_partitions)]
