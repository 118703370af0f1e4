"""FindCoordinator: which node leads the partition that a group, a transactional id, or a share partition hashes to.

They are in `__consumer_offsets`, `__transaction_state` and `__share_group_state`. The first question makes the topic,
unless fewer nodes are alive than it needs replicas. (Kafka: KafkaApis, AutoTopicCreationManager.)

Deviation: Partita creates the coordinator's topic with the first FindCoordinator and answers it at once, where Kafka
answers COORDINATOR_NOT_AVAILABLE and clients ask again after up to 1 s; `--kafka-defaults` does the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import REFUSED_WITH, Checked, Needs, NeedsEach, Verdict, refused
from partita.broker.api.served import Errors, Served
from partita.broker.topics.catalogue import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    FindCoordinatorRequest,
    rights=(
        Checked(
            "DESCRIBE on each GROUP or TRANSACTIONAL_ID; for share partitions CLUSTER_ACTION CLUSTER",
            "GROUP_, TRANSACTIONAL_ID_ or CLUSTER_AUTHORIZATION_FAILED for the key",
        ),
    ),
    errors=Errors(fields={"error_message": "", "node_id": -1, "port": -1}),
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
_TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTION_TOPIC, SHARE: SHARE_STATE_TOPIC}
_SHARE_FROM = 6
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}").fullmatch
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}").fullmatch
_NOT_AVAILABLE_TEXT = "The coordinator is not available."


class Found(NamedTuple):
    """The answer for one key."""

    code: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


def handle(ctx: RequestContext, request: FindCoordinatorRequest) -> Answer | Steps[Answer]:
    """Up to version 3 one key, from 4 on a list; versions 1 to 3 carry the error's text."""
    key_type = GROUP if ctx.version == 0 else request.key_type
    if ctx.version >= 4:
        return _rows(ctx, request.coordinator_keys, key_type)
    found = _find(ctx, request.key, key_type)
    return FindCoordinatorResponse(
        error_code=found.code,
        error_message=_text(found.code),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _rows(ctx: RequestContext, keys: list[str], key_type: int) -> Steps[FindCoordinatorResponse]:
    rows = []
    for key in keys:
        yield None
        rows.append(_row(key, _find(ctx, key, key_type)))
    return FindCoordinatorResponse(coordinators=rows)


_INVALID = Found(ErrorCode.INVALID_REQUEST)
_NOT_AVAILABLE = Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _find(ctx: RequestContext, key: str, key_type: int) -> Found:
    if key_type not in _TOPICS:
        return _INVALID
    if key_type == SHARE and (ctx.version < _SHARE_FROM or not _names_share_partition(key)):
        return _INVALID
    cluster, name = ctx.cluster, _TOPICS[key_type]
    is_new = cluster.catalogue.get(name) is None
    cluster.ensure_state_topic(name)
    partition = ctx.services.coordinators[name]().partition_of(key)
    if is_new and cluster.config.kafka_defaults:
        return _NOT_AVAILABLE
    node = None if partition is None else cluster.nodes.get(partition.leader)
    if node is None or not node.is_alive:
        return _NOT_AVAILABLE
    return Found(ErrorCode.NONE, node.node_id, *ctx.endpoint(node))


def _names_share_partition(key: str) -> bool:
    """Whether the key is group:topicId:partition; the group may hold colons."""
    group_id, *rest = key.rsplit(":", 2)
    return bool(group_id) and len(rest) == 2 and _TOPIC_ID(rest[0]) is not None and _is_int32(rest[1])


def _is_int32(text: str) -> bool:
    return _NUMBER(text) is not None and -(1 << 31) <= int(text) < 1 << 31


def _row(key: str, found: Found) -> Coordinator:
    return Coordinator(
        key=key, node_id=found.node_id, host=found.host, port=found.port, error_code=found.code, error_message=""
    )


def _text(code: ErrorCode) -> str:
    if code == ErrorCode.NONE:
        return "NONE"
    return _NOT_AVAILABLE_TEXT if code == ErrorCode.COORDINATOR_NOT_AVAILABLE else code.meaning


def check_rights(asking: Asking, request: FindCoordinatorRequest) -> Verdict | None:
    """Each key needs DESCRIBE on the group or the transactional id that it names."""
    if request.key_type == SHARE and asking.version:
        return _BROKER(asking, request)
    each = {0: _GROUP_KEYS, 1: _TRANSACTION_KEYS}.get(request.key_type if asking.version else 0)
    if each is None:
        return None
    if asking.version >= 4:
        return each(asking, request)
    is_allowed = asking.may(each.operation, each.kind, request.key)
    return None if is_allowed else refused(asking, request, REFUSED_WITH[each.kind])


_GROUP_KEYS = NeedsEach(Operation.DESCRIBE, ResourceType.GROUP, "coordinator_keys", "coordinators")

_BROKER = Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)

_TRANSACTION_KEYS = NeedsEach(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "coordinator_keys", "coordinators")
