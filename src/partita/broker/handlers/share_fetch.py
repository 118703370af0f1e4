"""ShareFetch: acquire records of a session's partitions for one member, and acknowledge earlier ones. (KIP-932)

Deviation: in ShareFetch a topic with an unknown id has UNKNOWN_TOPIC_ID for its partitions, one that was deleted during
the session UNKNOWN_TOPIC_OR_PARTITION, and the others are served; Kafka 4.3 answers all with UNKNOWN_SERVER_ERROR.

Deviation: a record that a member gives back wakes the fetches that wait for records of its share partition; in Kafka
they get it when their wait is over.
"""

from __future__ import annotations

import asyncio

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
from partita.broker.reading.long_polls import Moved
from partita.broker.share.acknowledging import Acknowledging, Partitions
from partita.broker.share.fetching import Got, ShareFetching, Wanted
from partita.broker.share.node import ShareNode
from partita.broker.share.verdicts import Asked
from partita.broker.wire.contract import ConnectionHandle
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_fetch import (
    AcquiredRecords,
    ShareFetchableTopicResponse,
    ShareFetchPartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareLeaderIdAndEpoch,
    ShareNodeEndpoint,
)
from partita.share.sessions import Key, Plan

API = Served(
    ShareFetchRequest,
    rights=(READ_SHARE_GROUP, InHandler("READ on each TOPIC", OTHERS_GO_ON)),
    elements_max=PARTITIONS_MAX,
)

SharePlan = Plan[ConnectionHandle]
MAX_ANSWER_BYTES = 50 << 20
MAX_WAIT_MS = 30_000
LOAD_WAIT_MS = 2_000
"""A fetch waits so long for share partitions that are loaded, even one that asks not to wait."""
EXACT = 1
"""The acquire mode for exactly as many records as are asked for; otherwise whole batches are given."""


def handle(ctx: RequestContext, request: ShareFetchRequest) -> Steps[ShareFetchResponse]:
    """Acknowledge and fetch within the member's session; the answer comes when both are done."""
    error = first_error(ctx, request) or _renewal_error(request)
    if error:
        return ShareFetchResponse(error_code=error)
    node, group_id, member_id = ctx.share, request.group_id or "", request.member_id or ""
    asked = Asked()
    yield from asked.read(request.topics, ctx.version, renews=request.is_renew_ack)
    plan = yield from _plan(ctx, request, node, asked)
    if plan is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        yield from _wait(ctx, None, _wait_ms(request))
    if isinstance(plan, ErrorCode):
        return ShareFetchResponse(error_code=plan)
    partitions = partitions_of(ctx)
    acknowledging = Acknowledging(node, partitions, group_id, member_id)
    yield from acknowledging.run(asked.verdicts)
    found: dict[Key, Got] = {}
    if not request.is_renew_ack and not plan.is_final:
        wanted = _wanted(ctx, request)
        keys = () if wanted.wants_nothing else plan.fetched
        found = yield from _fetched(ctx, ShareFetching(node, partitions, wanted, keys, plan.added), _wait_ms(request))
    outcomes = yield from acknowledging.settled()
    yield from end_session(node, plan)
    return _response(ctx, partitions, plan, found, outcomes, node.settings.lock_ms(group_id))


def _renewal_error(request: ShareFetchRequest) -> ErrorCode:
    """A request with renewals must not ask for records."""
    asks = request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
    return ErrorCode.INVALID_REQUEST if request.is_renew_ack and asks else ErrorCode.NONE


def _wait_ms(request: ShareFetchRequest) -> int:
    return max(0, min(request.max_wait_ms, MAX_WAIT_MS))


def _wanted(ctx: RequestContext, request: ShareFetchRequest) -> Wanted:
    return Wanted(
        request.group_id or "",
        request.member_id or "",
        is_exact=request.share_acquire_mode == EXACT,
        records_max=request.max_records,
        batch_size=max(1, request.batch_size),
        bytes_min=request.min_bytes,
        bytes_max=min(request.max_bytes, MAX_ANSWER_BYTES, ctx.config.int("fetch.max.bytes")),
    )


def _plan(
    ctx: RequestContext, request: ShareFetchRequest, node: ShareNode, asked: Asked
) -> Steps[SharePlan | ErrorCode]:
    """The request within its session."""
    forgotten: list[Key] = []
    for topic in request.forgotten_topics_data:
        yield None
        for index in topic.partitions:
            yield None
            forgotten.append((topic.topic_id, index))
    plan = node.sessions.fetch(
        (request.group_id or "", request.member_id or ""),
        request.share_session_epoch,
        asked.listed,
        forgotten,
        owner=ctx.connection,
        sessions_max=ctx.config.int("group.share.max.share.sessions"),
        has_acknowledgements=bool(asked.verdicts),
    )
    if not isinstance(plan, ErrorCode) and plan.is_new:
        node.opened(plan)
    return plan


def _fetched(ctx: RequestContext, fetching: ShareFetching, wait_ms: int) -> Steps[dict[Key, Got]]:
    """Return the records of the partitions, as soon as there are enough or when the wait is over."""
    ends_ms = ctx.now().mono_ms + wait_ms
    loads = yield from fetching.load()
    if loads:
        yield asyncio.wait(loads, timeout=max(LOAD_WAIT_MS, wait_ms) / 1000)
    while True:
        left_ms = ends_ms - ctx.now().mono_ms
        found = yield from fetching.attempt(is_final=left_ms <= 0)
        if found is not None:
            return found
        if not fetching.has_moved():
            yield from _wait(ctx, fetching, left_ms)


def _wait(ctx: RequestContext, fetching: ShareFetching | None, wait_ms: int) -> Steps[None]:
    """Wait until one of the partitions may have enough; without any, until the time is over."""

    def look(moved: Moved, is_final: bool) -> ShareFetchResponse | None:
        return ShareFetchResponse() if is_final or (fetching is not None and fetching.is_enough(moved)) else None

    if wait_ms > 0:
        waited_for = [] if fetching is None else fetching.partitions()
        yield ctx.long_polls.wait(waited_for, look, wait_ms, ctx.connection)


def _response(
    ctx: RequestContext,
    partitions: Partitions,
    plan: SharePlan,
    found: dict[Key, Got],
    outcomes: dict[Key, ErrorCode],
    lock_ms: int,
) -> ShareFetchResponse:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    leaders: list[int] = []
    for key in dict.fromkeys((*found, *plan.added, *outcomes)):
        topic = topics.get(key[0])
        if topic is None:
            topic = topics[key[0]] = ShareFetchableTopicResponse(topic_id=key[0])
        got, code = found.get(key, Got()), outcomes.get(key, ErrorCode.NONE)
        moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
        where = leader(partitions, key, moved if moved in (got.code, code) else 0, ShareLeaderIdAndEpoch, leaders)
        topic.partitions.append(
            ShareFetchPartitionData(
                partition_index=key[1],
                error_code=got.code,
                acknowledge_error_code=code,
                current_leader=where,
                records=got.taken.records,
                acquired_records=[
                    AcquiredRecords(first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count)
                    for each in got.taken.acquired
                ],
            )
        )
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=list(topics.values()),
        node_endpoints=node_endpoints(ctx, leaders, ShareNodeEndpoint),
    )
