"""What KIP-848 groups allow with their offsets: who may commit and fetch, what stays, what ends with the group.

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
    """May this be committed? An older epoch will do for partitions that the member has had since then (KIP-1251)."""
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
    """May this member read the group's offsets? Whoever names no member may."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else epoch_error(member, epoch)


def transaction_error(group: ConsumerGroup, member_id: str, epoch: int) -> ErrorCode:
    """May a transaction commit for this member? What a stale epoch is called is as old as the API."""
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.ILLEGAL_GENERATION if epoch_error(member, epoch) else ErrorCode.NONE


def epoch_error(member: ConsumerMember, epoch: int) -> ErrorCode:
    """What is said of an epoch that is not the member's."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def is_subscribed(group: ConsumerGroup, topic: str) -> bool:
    """Does any member subscribe to the topic, by its name or by a regular expression?"""
    return topic in group.names or any(
        topic in resolved.topics for regex, resolved in group.regexes.items() if regex in group.patterns
    )
