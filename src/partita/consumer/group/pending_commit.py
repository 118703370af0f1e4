"""One commit under way: what it commits, as whom, and the request that says so (consumer.md 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from partita.consumer.group.member import Generation, Member
from partita.consumer.request import Operation
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
NAMED_VERSION_MAX = 9
"""Version 10 speaks of topic ids; Kafka's own consumer stays with names too."""


class Kind(Enum):
    SYNC = "sync"
    ASYNC = "async"
    AUTO = "auto"
    PREPARE = "prepare"


@dataclass(slots=True, eq=False)
class PendingCommit:
    kind: Kind
    offsets: Offsets
    operation: Operation
    generation: Generation
    number: int
    callback: Callable[..., Any] | None = None
    not_before_ms: int = 0
    lookups_failed: int = 0
    attempts: int = 0


def commit_request(member: Member, commit: PendingCommit) -> OffsetCommitRequest:
    """The request of this commit, in the name of the generation it was made in."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for tp, offset in commit.offsets.items():
        by_topic.setdefault(tp[0], []).append(
            OffsetCommitRequestPartition(
                partition_index=tp[1],
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=member.config.group_id or "",
        generation_id_or_member_epoch=commit.generation.id,
        member_id=commit.generation.member_id,
        group_instance_id=member.config.group_instance_id if member.subscription.is_group else None,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in by_topic.items()],
    )
