"""OffsetDelete: refuse unknown partitions, ask the shard about the rest (also when nothing is left), merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.broker.api.context import Answer, RequestContext, Steps, when_all
from partita.broker.api.needs import OTHERS_GO_ON, Checked, Needs, Verdict
from partita.broker.api.served import Served
from partita.broker.handlers._partitions import merged, take_out_missing
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    OffsetDeleteRequest,
    rights=(
        Needs(Operation.DELETE, ResourceType.GROUP, "group_id"),
        Checked("READ on each TOPIC", OTHERS_GO_ON),
    ),
)


def handle(ctx: RequestContext, request: OffsetDeleteRequest) -> Steps[Answer]:
    """Ask the group's shard about partitions that exist; refuse the others here."""
    refused: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in request.topics:
        yield None
        yield from _keep_existing(ctx, topic, refused)
    request.topics = [topic for topic in request.topics if topic.partitions]
    return when_all([ctx.groups.ask(ctx, request, request.group_id)], lambda parts: _merge(refused, parts[0]))


def _keep_existing(
    ctx: RequestContext, asked: OffsetDeleteRequestTopic, refused: dict[str, OffsetDeleteResponseTopic]
) -> Steps[None]:
    missing = yield from take_out_missing(ctx.catalogue.get(asked.name), asked)
    if missing:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        entry = refused.setdefault(asked.name, OffsetDeleteResponseTopic(name=asked.name))
        entry.partitions += [OffsetDeleteResponsePartition(partition_index=i, error_code=code) for i in missing]


def _merge(refused: dict[str, OffsetDeleteResponseTopic], response: OffsetDeleteResponse) -> OffsetDeleteResponse:
    """A top-level error stands alone."""
    if response.error_code:
        return response
    response.topics = merged(refused, response.topics, lambda topic: topic.name)
    return response


def check_rights(asking: Asking, request: OffsetDeleteRequest) -> Verdict | None:
    """Require READ on each topic. An error of the group comes first."""

    allowed = asking.may_all(Operation.READ, ResourceType.TOPIC, [topic.name for topic in request.topics])
    entries = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=p.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
        if topic.name not in allowed
    ]
    if not entries:
        return None
    request.topics = [topic for topic in request.topics if topic.name in allowed]

    def complete(answer: OffsetDeleteResponse) -> None:
        if not answer.error_code:
            answer.topics = [*answer.topics, *entries]

    return Verdict(complete=complete)
