"""FindCoordinator: which node leads the partition of `__consumer_offsets` that a group hashes to.

The first question makes the topic, unless fewer nodes are alive than it needs replicas. (Kafka: KafkaApis,
AutoTopicCreationManager.)

Deviation: the first FindCoordinator request creates `__consumer_offsets` and is answered at once. With
`--kafka-defaults` it gets COORDINATOR_NOT_AVAILABLE, as in Kafka, whose clients then wait up to 1 s before they ask
again.

Deviation: FindCoordinator for a transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, since there
is no transaction coordinator yet; after any other error librdkafka repeats the request for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, sliced
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1
_NOT_AVAILABLE_TEXT = "The coordinator is not available."
_NO_TRANSACTIONS_TEXT = "This broker has no transactions."


class Found(NamedTuple):
    """The answer for one key."""

    code: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


def handle(ctx: RequestContext, request: FindCoordinatorRequest) -> Answer:
    """Up to version 3 one key, from 4 on a list; versions 1 to 3 carry the error's text."""
    is_group = ctx.version == 0 or request.key_type == GROUP
    refused = _NO_TRANSACTIONS if request.key_type == TRANSACTION else _NO_SUCH_TYPE
    if ctx.version >= 4:
        return answered(ctx, _rows(ctx, request.coordinator_keys, None if is_group else refused))
    found = _find(ctx, request.key) if is_group else refused
    return FindCoordinatorResponse(
        error_code=found.code,
        error_message=_text(found.code),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _rows(ctx: RequestContext, keys: list[str], refused: Found | None) -> Steps[FindCoordinatorResponse]:
    rows = []
    for key, others_turn in sliced(keys):
        if others_turn:
            yield None
        rows.append(_row(key, refused or _find(ctx, key)))
    return FindCoordinatorResponse(coordinators=rows)


_NO_SUCH_TYPE = Found(ErrorCode.INVALID_REQUEST)
_NO_TRANSACTIONS = Found(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
_NOT_AVAILABLE = Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _find(ctx: RequestContext, group_id: str) -> Found:
    cluster = ctx.cluster
    if cluster.catalogue.get(OFFSETS_TOPIC) is None:
        made = cluster.ensure_offsets_topic()
        if made is None or cluster.config.kafka_defaults:
            return _NOT_AVAILABLE
    partition = ctx.groups.partition_of(group_id)
    node = None if partition is None else cluster.nodes.get(partition.leader)
    if node is None or not node.is_alive:
        return _NOT_AVAILABLE
    return Found(ErrorCode.NONE, node.node_id, *ctx.endpoint(node))


def _row(key: str, found: Found) -> Coordinator:
    text = _NO_TRANSACTIONS_TEXT if found is _NO_TRANSACTIONS else ""
    return Coordinator(
        key=key, node_id=found.node_id, host=found.host, port=found.port, error_code=found.code, error_message=text
    )


def _text(code: ErrorCode) -> str:
    if code == ErrorCode.NONE:
        return "NONE"
    if code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return _NO_TRANSACTIONS_TEXT
    return _NOT_AVAILABLE_TEXT if code == ErrorCode.COORDINATOR_NOT_AVAILABLE else code.meaning
