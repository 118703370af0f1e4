"""Shared parts of the descriptions of KIP-848, share and streams groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import RequestContext, Steps, settled
from partita.broker.api.needs import Verdict
from partita.broker.handlers._operations import group_operations
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Structure
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

_HIDDEN = "The described group uses topics that the client is not authorized to describe."


def described(
    ctx: RequestContext, group_ids: Iterable[str], ask: Callable[[str], Structure], request: Any
) -> Steps[Any]:
    """Ask the shard of each group, in the order asked.

    A group that is named repeatedly is described once, so that a small request makes no huge answer in memory.
    """
    groups: list[Any] = []
    for group_id in dict.fromkeys(group_ids):
        yield None
        group = yield from settled(ctx.groups.ask(ctx, ask(group_id), group_id))
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = group_operations(ctx, group_id)
        groups.append(group)
    return groups


def not_served(request: Any, kind: Callable[..., Any]) -> list[Any]:
    """The answers of a broker on which this type of group is switched off; `kind` makes one."""
    return [kind(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids]


def hide(asking: Asking, kind: Callable[..., Any], topics_of: Callable[[Any], Iterable[str]]) -> Verdict:
    """A group is shown with all its topics, or nothing of it is. `kind` makes what is shown in its place."""

    def shown(group: Any) -> Any:
        topics = list(topics_of(group))
        if len(asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, topics)) == len(set(topics)):
            return group
        return kind(group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=_HIDDEN)

    def complete(answer: Any) -> None:
        answer.groups = [shown(group) for group in answer.groups]

    return Verdict(complete=complete)
