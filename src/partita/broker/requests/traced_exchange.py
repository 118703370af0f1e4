"""A request of a group and its answer as the fields of notes: what `partita groups trace` shows of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.offset_fetch import OffsetFetchResponse
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from partita.protocol.primitives import Buffer, MalformedRequest, Message

if TYPE_CHECKING:
    from partita.broker.requests.dispatch import Exchange

REQUEST_FIELDS = (
    "member_id", "group_instance_id", "generation_id", "generation_id_or_member_epoch", "session_timeout_ms", "reason",
    "member_epoch", "subscribed_topic_names", "subscribed_topic_regex",
)  # fmt: skip
ANSWER_FIELDS = ("member_id", "generation_id", "leader", "protocol_name", "node_id", "member_epoch")
NameOf = Callable[[bytes], str | None]
GROUP_KEY = 0
"""The key type of a FindCoordinator request for a group; others are for a transactional id."""
_GENERATION = frozenset({"generation_id", "generation_id_or_member_epoch"})


def group_of(request: Message) -> str:
    """The group that a request names: by itself, or first in a list; "" for none."""
    direct = getattr(request, "group_id", None)
    if isinstance(direct, str) and direct:
        return direct
    if isinstance(request, FindCoordinatorRequest):
        keys = request.coordinator_keys or [request.key]
        return keys[0] if request.key_type == GROUP_KEY else ""
    for group in getattr(request, "groups", None) or ():
        name = group if isinstance(group, str) else getattr(group, "group_id", "")
        return str(name)
    return ""


def asked(exchange: Exchange, name_of: NameOf) -> dict[str, Any]:
    """The request's part: API, client, member, and what it says of topics, partitions and offsets."""
    request, ctx = exchange.request, exchange.ctx
    facts: dict[str, Any] = {"api": exchange.api.name, "version": ctx.version, "client_id": ctx.client_id}
    for name in REQUEST_FIELDS:
        value = getattr(request, name, None)
        if value not in (None, ""):
            facts["generation" if name in _GENERATION else name] = value
    if hasattr(request, "assignments"):
        facts["assignments"] = len(request.assignments)
    if hasattr(request, "members"):
        facts["member_id"] = ", ".join(member.member_id for member in request.members)
    if isinstance(request, JoinGroupRequest):
        facts["protocols"] = [protocol.name for protocol in request.protocols]
        facts["topics"] = next((topics for p in request.protocols if (topics := _topics(p.metadata)) is not None), None)
    if isinstance(request, SyncGroupRequest):
        facts["shares"] = {each.member_id: _share(each.assignment) for each in request.assignments}
    if isinstance(request, OffsetCommitRequest):
        facts["offsets"] = _offsets(request.topics, name_of)
    if isinstance(request, ConsumerGroupHeartbeatRequest) and request.topic_partitions is not None:
        facts["owned"] = _named(request.topic_partitions, name_of)
    if isinstance(request, StreamsGroupHeartbeatRequest) and request.active_tasks is not None:
        facts["owned"] = _tasks(request)
    return facts


def _topics(metadata: Buffer) -> list[str] | None:
    """The topics of a subscription; None if its client uses a format of its own."""
    try:
        return list(decode_subscription(metadata).topics)
    except MalformedRequest:
        return None


def _share(assignment: Buffer) -> list[str] | None:
    """The partitions of an assignment; None if its client uses a format of its own."""
    try:
        return [f"{topic}-{number}" for topic, number in decode_assignment(assignment)[0]]
    except MalformedRequest:
        return None


def _offsets(topics: Iterable[Any], name_of: NameOf) -> list[str]:
    """Each partition with its committed offset; versions since 10 name topics by their ids."""
    named = ((topic.name or name_of(topic.topic_id), topic.partitions) for topic in topics)
    return [
        f"{name}-{p.partition_index}: {p.committed_offset if p.committed_offset >= 0 else 'none'}"
        for name, parts in named
        for p in parts
    ]


def _named(topics: Iterable[Any], name_of: NameOf) -> list[str]:
    names = ((name_of(topic.topic_id) or "a topic that is gone", topic.partitions) for topic in topics)
    return [f"{name}-{number}" for name, numbers in names for number in numbers]


def told(answer: Message | None, name_of: NameOf) -> dict[str, Any]:
    """The answer's part: its first error, and what it gives to the member."""
    if answer is None:
        return {"error": "no answer"}
    facts: dict[str, Any] = {"error": _first_error(answer).name}
    for name in ANSWER_FIELDS:
        value = getattr(answer, name, None)
        if value not in (None, ""):
            facts["generation" if name in _GENERATION else name] = value
    for found in getattr(answer, "coordinators", ()):
        facts["node_id"] = found.node_id
    if getattr(answer, "members", None):
        facts["members"] = len(answer.members)  # type: ignore[attr-defined]  # JoinGroup's, and LeaveGroup's
    if isinstance(answer, JoinGroupResponse) and answer.members:
        facts["joined"] = [member.member_id for member in answer.members]
    if isinstance(answer, SyncGroupResponse) and not answer.error_code:
        facts["share"] = _share(answer.assignment)
    if isinstance(answer, OffsetFetchResponse):
        facts["offsets"] = [text for group in answer.groups for text in _offsets(group.topics, name_of)]
    if isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.assignment is not None:
        facts["assignment"] = _named(answer.assignment.topic_partitions, name_of)
    if isinstance(answer, StreamsGroupHeartbeatResponse):
        facts |= {} if answer.active_tasks is None else {"assignment": _tasks(answer)}
        facts |= {"status": [status.status_detail for status in answer.status]} if answer.status else {}
    return facts


def _tasks(beat: StreamsGroupHeartbeatRequest | StreamsGroupHeartbeatResponse) -> list[str]:
    """Each task as Kafka Streams writes it, "0_1", with its role unless it is active."""
    roles = (("", beat.active_tasks), (" standby", beat.standby_tasks), (" warm-up", beat.warmup_tasks))
    return [
        f"{each.subtopology_id}_{number}{role}"
        for role, tasks in roles
        for each in tasks or ()
        for number in each.partitions
    ]


def _first_error(answer: Any) -> ErrorCode:
    """The first error in an answer of any group API, however deep it stands. `Any`: answers have no common fields."""
    code = getattr(answer, "error_code", 0)
    if code:
        return ErrorCode(code)
    for name in ("groups", "topics", "partitions", "members", "coordinators"):
        for item in getattr(answer, name, None) or ():
            found = _first_error(item)
            if found:
                return found
    return ErrorCode.NONE
