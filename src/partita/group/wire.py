"""Splits wire requests for several groups into requests for one, and merges the answers into one response.

The pure part of the broker's work around its shards.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.group.requests import FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_MANY_GROUPS_FROM = 8
_TOP_LEVEL_ERROR_FROM = 2


def split_offset_fetch(request: OffsetFetchRequest, version: int) -> list[FetchOffsets]:
    """Return one request per group, in order, with topic names or ids as the version has them."""
    if version >= _MANY_GROUPS_FROM:
        return [FetchOffsets(group, require_stable=request.require_stable) for group in request.groups]
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    return [FetchOffsets(group, require_stable=request.require_stable)]


def merge_offset_fetch(
    request: OffsetFetchRequest, answers: Iterable[OffsetFetchResponseGroup], version: int
) -> OffsetFetchResponse:
    """Build the response of `version`. Version 1 has no top-level error: each requested partition carries it."""
    if version >= _MANY_GROUPS_FROM:
        return OffsetFetchResponse(groups=list(answers))
    (answer,) = answers
    topics = answer.topics
    if answer.error_code and version < _TOP_LEVEL_ERROR_FROM:
        topics = [_failed(t.name, t.partition_indexes, answer.error_code) for t in request.topics or ()]
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(name=topic.name, partitions=[_old_form(p) for p in topic.partitions])
            for topic in topics
        ],
        error_code=answer.error_code,
    )


def _failed(name: str, partitions: list[int], error: int) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=name, partitions=[no_offset(partition, ErrorCode(error)) for partition in partitions]
    )


def no_offset(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    """Return the entry for a partition without offset, or with an error."""
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=error
    )


def _old_form(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )
