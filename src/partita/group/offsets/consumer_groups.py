"""Rules for the offsets of KIP-848 and streams groups: who may commit and fetch, and which topics are in use.

(Kafka: validateOffsetCommit, validateOffsetFetch, isSubscribedToTopic of ConsumerGroup and StreamsGroup; specification
section 20.10.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from partita.group.records.streams_group import StreamsGroup, StreamsMember

_KNOWS_EPOCHS = 9


class CommittedTo(NamedTuple):
    """A partition to which a commit refers."""

    name: str
    topic_id: bytes
    number: int


def commit_error(
    group: ConsumerGroup | StreamsGroup, member_id: str, epoch: int, version: int, partitions: Iterable[CommittedTo]
) -> ErrorCode:
    """Return the error of a commit. An older epoch is accepted for partitions owned since then (KIP-1251)."""
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if version < _KNOWS_EPOCHS and not (isinstance(member, ConsumerMember) and member.is_classic):
        return ErrorCode.UNSUPPORTED_VERSION
    if not isinstance(group, ConsumerGroup):
        return _streams_error(group, group.members[member_id], epoch, partitions)
    owner = group.members[member_id]
    has_had_them = not owner.is_classic and 0 <= epoch < owner.epoch
    if has_had_them and all(owner.assigned.get((p.topic_id, p.number), epoch + 1) <= epoch for p in partitions):
        return ErrorCode.NONE
    return epoch_error(owner, epoch)


def _streams_error(
    group: StreamsGroup, member: StreamsMember, epoch: int, partitions: Iterable[CommittedTo]
) -> ErrorCode:
    """Accept an older epoch for partitions whose task runs there since then, or is about to be revoked."""
    if not 0 <= epoch < member.epoch:
        return epoch_error(member, epoch)
    subtopologies = group.source_topics
    for partition in partitions:
        task = (subtopologies.get(partition.name, ""), partition.number)
        given = member.held.active.get(task, member.revoking.active.get(task))
        if given is None or epoch < given:
            return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def fetch_error(group: ConsumerGroup | StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Return the error of a fetch; a request without member id and epoch is always allowed."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else epoch_error(member, epoch)


def transaction_error(
    group: ConsumerGroup | StreamsGroup,
    member_id: str,
    epoch: int,
    partitions: Iterable[CommittedTo],
    *,
    names_epochs: bool,
) -> ErrorCode:
    """Return the error of a transactional commit. Before version 6 a stale epoch is ILLEGAL_GENERATION. (KIP-1319)"""
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not isinstance(group, ConsumerGroup):
        error = _streams_error(group, group.members[member_id], epoch, partitions)
    else:
        error = epoch_error(member, epoch)
    return ErrorCode.ILLEGAL_GENERATION if error and not names_epochs else error


def epoch_error(member: ConsumerMember | StreamsMember, epoch: int) -> ErrorCode:
    """Return the error for an epoch that differs from the member's."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    is_classic = isinstance(member, ConsumerMember) and member.is_classic
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


def is_subscribed(group: ConsumerGroup | StreamsGroup, topic: str) -> bool:
    """Whether any member subscribes to the topic, by name or by a regular expression."""
    if not isinstance(group, ConsumerGroup):
        return topic in group.subscribed_topics()
    return topic in group.names or any(
        topic in resolved.topics for regex, resolved in group.regexes.items() if regex in group.patterns
    )
