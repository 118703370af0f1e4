"""Rules for the offsets of KIP-848 groups: who may commit and fetch, and which topics are in use.

(Kafka: ConsumerGroup.validateOffsetCommit, validateOffsetFetch, isSubscribedToTopic; specification section 20.10.)
"""

from __future__ import annotations

from collections.abc import Collection

from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember, Partition
from partita.protocol.error_codes import ErrorCode

_KNOWS_EPOCHS = 9


def commit_error(
    group: ConsumerGroup, member_id: str, epoch: int, version: int, partitions: Collection[Partition]
) -> ErrorCode:
    """Return the error of a commit. An older epoch is accepted for partitions owned since then (KIP-1251)."""
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not member.is_classic and version < _KNOWS_EPOCHS:
        return ErrorCode.UNSUPPORTED_VERSION
    has_had_them = not member.is_classic and 0 <= epoch < member.epoch
    if has_had_them and all(member.assigned.get(partition, epoch + 1) <= epoch for partition in partitions):
        return ErrorCode.NONE
    return epoch_error(member, epoch)


def fetch_error(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Return the error of a fetch; a request without member id and epoch is always allowed."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else epoch_error(member, epoch)


def transaction_error(group: ConsumerGroup, member_id: str, epoch: int, *, names_epochs: bool) -> ErrorCode:
    """Return the error of a transactional commit. Before version 6 a stale epoch is ILLEGAL_GENERATION. (KIP-1319)"""
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = epoch_error(member, epoch)
    return ErrorCode.ILLEGAL_GENERATION if error and not names_epochs else error


def epoch_error(member: ConsumerMember, epoch: int) -> ErrorCode:
    """Return the error for an epoch that differs from the member's."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def is_subscribed(group: ConsumerGroup, topic: str) -> bool:
    """Whether any member subscribes to the topic, by name or by a regular expression."""
    return topic in group.names or any(
        topic in resolved.topics for regex, resolved in group.regexes.items() if regex in group.patterns
    )
