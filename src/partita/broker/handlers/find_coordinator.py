"""FindCoordinator: which node leads the partition that a group, or a transactional id, hashes to.

They are in `__consumer_offsets` and in `__transaction_state`. The first question makes the topic, unless fewer nodes
are alive than it needs replicas. (Kafka: KafkaApis, AutoTopicCreationManager.)

Deviation: the first FindCoordinator request creates the coordinator's topic and is answered at once. With
`--kafka-defaults` it gets COORDINATOR_NOT_AVAILABLE, as in Kafka, whose clients then wait up to 1 s before they ask
again.
"""

from __future__ import annotations

from typing import NamedTuple

from partita.broker.requests.context import Answer, RequestContext
from partita.broker.requests.slices import Steps, answered, sliced
from partita.broker.topics.catalogue import OFFSETS_TOPIC, TRANSACTION_TOPIC, Partition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1
_NOT_AVAILABLE_TEXT = "The coordinator is not available."


class Found(NamedTuple):
    """The answer for one key."""

    code: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


def handle(ctx: RequestContext, request: FindCoordinatorRequest) -> Answer:
    """Up to version 3 one key, from 4 on a list; versions 1 to 3 carry the error's text."""
    key_type = GROUP if ctx.version == 0 else request.key_type
    if ctx.version >= 4:
        return answered(ctx, _rows(ctx, request.coordinator_keys, key_type))
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
    for key, others_turn in sliced(keys, ctx.stopwatch):
        if others_turn:
            yield None
        rows.append(_row(key, _find(ctx, key, key_type)))
    return FindCoordinatorResponse(coordinators=rows)


_NO_SUCH_TYPE = Found(ErrorCode.INVALID_REQUEST)
_NOT_AVAILABLE = Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _find(ctx: RequestContext, key: str, key_type: int) -> Found:
    if key_type not in (GROUP, TRANSACTION):
        return _NO_SUCH_TYPE
    cluster = ctx.cluster
    partition: Partition | None
    if key_type == GROUP:
        is_new = cluster.catalogue.get(OFFSETS_TOPIC) is None
        cluster.ensure_offsets_topic()
        partition = ctx.groups.partition_of(key)
    else:
        is_new = cluster.catalogue.get(TRANSACTION_TOPIC) is None
        cluster.ensure_transaction_topic()
        partition = ctx.transactions.partition_of(key)
    if is_new and cluster.config.kafka_defaults:
        return _NOT_AVAILABLE
    node = None if partition is None else cluster.nodes.get(partition.leader)
    if node is None or not node.is_alive:
        return _NOT_AVAILABLE
    return Found(ErrorCode.NONE, node.node_id, *ctx.endpoint(node))


def _row(key: str, found: Found) -> Coordinator:
    return Coordinator(
        key=key, node_id=found.node_id, host=found.host, port=found.port, error_code=found.code, error_message=""
    )


def _text(code: ErrorCode) -> str:
    if code == ErrorCode.NONE:
        return "NONE"
    return _NOT_AVAILABLE_TEXT if code == ErrorCode.COORDINATOR_NOT_AVAILABLE else code.meaning
