"""TxnOffsetCommit: check that topics and partitions exist, ask the shard, merge.

Deviation: TxnOffsetCommit is accepted without a check that the producer's transaction is open, since there is no
transaction coordinator yet.
"""

from __future__ import annotations

from partita.broker.groups.across_shards import when_all
from partita.broker.handlers._partitions import merged, take_out_missing
from partita.broker.requests.context import Answer, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def handle(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Answer:
    """As OffsetCommit; topics have names in every version."""
    refused: dict[str, TxnOffsetCommitResponseTopic] = {}
    asked = request.topics
    request.topics = [topic for topic in asked if _keep_existing(ctx, topic, refused)]
    if asked and not request.topics:
        return TxnOffsetCommitResponse(topics=list(refused.values()))
    return when_all([ctx.groups.ask(ctx, request, request.group_id)], lambda parts: _merge(refused, parts[0]))


def _keep_existing(
    ctx: RequestContext, asked: TxnOffsetCommitRequestTopic, refused: dict[str, TxnOffsetCommitResponseTopic]
) -> bool:
    missing = take_out_missing(ctx.catalogue.get(asked.name), asked)
    if missing or not asked.partitions:
        entry = refused.setdefault(asked.name, TxnOffsetCommitResponseTopic(name=asked.name))
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        entry.partitions += [TxnOffsetCommitResponsePartition(partition_index=i, error_code=code) for i in missing]
    return bool(asked.partitions)


def _merge(
    refused: dict[str, TxnOffsetCommitResponseTopic], response: TxnOffsetCommitResponse
) -> TxnOffsetCommitResponse:
    response.topics = merged(refused, response.topics, lambda topic: topic.name)
    return response
