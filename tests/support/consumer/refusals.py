"""Answers of a broker that refuses."""

from __future__ import annotations

from collections.abc import Iterable

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def commit_refused(topics: Iterable[OffsetCommitRequestTopic], code: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition of a commit of these topics."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=int(code))
                    for p in topic.partitions
                ],
            )
            for topic in topics
        ]
    )
