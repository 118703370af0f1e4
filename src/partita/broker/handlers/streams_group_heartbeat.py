"""StreamsGroupHeartbeat: ask the group's shard, then create the internal topics that the application misses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partita.broker.api.context import Answer, RequestContext, Steps, settled
from partita.broker.api.features import serves_streams_groups
from partita.broker.api.needs import READ_GROUP, Checked, InHandler, Verdict, refused
from partita.broker.api.served import Served
from partita.broker.handlers import create_topics
from partita.broker.topics.catalogue import INTERNAL_TOPICS, name_problem
from partita.group.requests import InternalTopic, StreamsBeat
from partita.group.state.topology import Status
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    StreamsGroupHeartbeatRequest,
    rights=(
        READ_GROUP,
        Checked("DESCRIBE on each TOPIC of the topology", "TOPIC_AUTHORIZATION_FAILED"),
        InHandler(
            "to create internal topics: CREATE CLUSTER, or CREATE on each TOPIC",
            "none is created, and the status MISSING_INTERNAL_TOPICS names them",
        ),
    ),
)

_DEFAULT_REPLICATION = -1
_ERRORS_TOLD = 3


def handle(ctx: RequestContext, request: StreamsGroupHeartbeatRequest) -> Answer | Steps[Answer]:
    """Ask the group's shard, unless streams groups are switched off or topics of the topology cannot be."""
    if not serves_streams_groups(ctx.config, ctx.catalogue):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    problem = _problem(topology_topics(request))
    if problem:
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY, error_message=problem)
    return _asked(ctx, request)


def _asked(ctx: RequestContext, request: StreamsGroupHeartbeatRequest) -> Steps[Answer]:
    beat: StreamsBeat = yield from settled(ctx.groups.ask(ctx, request, request.group_id))
    response = beat.response
    if beat.missing:
        detail = yield from _create(ctx, beat.missing, 2 * response.heartbeat_interval_ms)
        for status in response.status or () if detail else ():
            if status.status_code == Status.MISSING_INTERNAL_TOPICS:
                status.status_detail += detail
    return response


def topology_topics(request: StreamsGroupHeartbeatRequest) -> list[str]:
    """Return the names of all topics that the topology reads or writes, each once."""
    names: dict[str, None] = {}
    for sub in () if request.topology is None else request.topology.subtopologies:
        infos = (*sub.repartition_source_topics, *sub.state_changelog_topics)
        names.update(dict.fromkeys((*sub.source_topics, *sub.repartition_sink_topics, *(info.name for info in infos))))
    return list(names)


def _problem(names: list[str]) -> str | None:
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    invalid = [name for name in names if name_problem(name)]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None


def _create(ctx: RequestContext, missing: Mapping[str, InternalTopic], timeout_ms: int) -> Steps[str]:
    """Create the topics; return what to add to the status if the client may not, or if some cannot be created."""
    asking, names = ctx.asking, sorted(missing)
    if asking is not None and not asking.may(Operation.CREATE, ResourceType.CLUSTER, is_logged=False):
        allowed = asking.may_all(Operation.CREATE, ResourceType.TOPIC, names)
        refused_names = [name for name in names if name not in allowed]
        if refused_names:
            return f"; Unauthorized to CREATE on topics {', '.join(refused_names)}."
    topics = [_creatable(missing[name]) for name in names]
    done: Any = yield from create_topics.handle(ctx, CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms))
    failed = [
        f"{each.name} ({each.error_message})"
        for each in done.topics
        if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT)
    ]
    if not failed:
        return ""
    more = f" and {len(failed) - _ERRORS_TOLD} more" if len(failed) > _ERRORS_TOLD else ""
    return f"; Creation failed: {', '.join(failed[:_ERRORS_TOLD])}{more}."


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or _DEFAULT_REPLICATION,
        configs=[CreatableTopicConfig(name=name, value=text) for name, text in topic.settings.items()],
    )


def check_rights(asking: Asking, request: StreamsGroupHeartbeatRequest) -> Verdict | None:
    """Require DESCRIBE on every topic of the topology, unless one of them is refused before."""
    names = topology_topics(request)
    if _problem(names) or len(asking.may_all(Operation.DESCRIBE, ResourceType.TOPIC, names)) == len(names):
        return None
    return refused(asking, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
