"""ShareAcknowledge: a member says what became of the records that it acquired. (Kafka: KafkaApis, KIP-932.)"""

from __future__ import annotations

from partita.broker.api.context import RequestContext, Steps
from partita.broker.api.needs import OTHERS_GO_ON, InHandler
from partita.broker.api.served import PARTITIONS_MAX, Served
from partita.broker.handlers._share import (
    READ_SHARE_GROUP,
    end_session,
    first_error,
    leader,
    node_endpoints,
    partitions_of,
)
from partita.broker.share.acknowledging import Acknowledging, Partitions
from partita.broker.share.verdicts import Asked
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_acknowledge import (
    ShareAcknowledgePartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareLeaderIdAndEpoch,
    ShareNodeEndpoint,
)
from partita.share.sessions import Key

API = Served(
    ShareAcknowledgeRequest,
    rights=(READ_SHARE_GROUP, InHandler("READ on each TOPIC", OTHERS_GO_ON)),
    elements_max=PARTITIONS_MAX,
)


def handle(ctx: RequestContext, request: ShareAcknowledgeRequest) -> Steps[ShareAcknowledgeResponse]:
    """Do it within the member's session; the answer says what is stored."""
    error = first_error(ctx, request)
    if error:
        return ShareAcknowledgeResponse(error_code=error)
    node, group_id, member_id = ctx.share, request.group_id or "", request.member_id or ""
    asked = Asked()
    yield from asked.read(request.topics, ctx.version, renews=request.is_renew_ack)
    plan = node.sessions.acknowledge((group_id, member_id), request.share_session_epoch)
    if isinstance(plan, ErrorCode):
        return ShareAcknowledgeResponse(error_code=plan)
    partitions = partitions_of(ctx)
    acknowledging = Acknowledging(node, partitions, group_id, member_id)
    yield from acknowledging.run(asked.verdicts)
    outcomes = yield from acknowledging.settled()
    yield from end_session(node, plan)
    return _response(ctx, partitions, outcomes, node.settings.lock_ms(group_id))


def _response(
    ctx: RequestContext, partitions: Partitions, outcomes: dict[Key, ErrorCode], lock_ms: int
) -> ShareAcknowledgeResponse:
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    leaders: list[int] = []
    for key, code in outcomes.items():
        topic = topics.get(key[0])
        if topic is None:
            topic = topics[key[0]] = ShareAcknowledgeTopicResponse(topic_id=key[0])
        topic.partitions.append(
            ShareAcknowledgePartitionData(
                partition_index=key[1],
                error_code=code,
                current_leader=leader(partitions, key, code, ShareLeaderIdAndEpoch, leaders),
            )
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=list(topics.values()),
        node_endpoints=node_endpoints(ctx, leaders, ShareNodeEndpoint),
    )
