"""Which share partitions get their state in the share coordinator, and what became of that. (Kafka: KIP-932, section 7)

A partition may be assigned once its state exists. So a heartbeat that finds partitions without state has them
initialized after its answer, and a later heartbeat assigns them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.group.records import share_log
from partita.group.records.share_group import SharedTopic, ShareGroup, StateTopics
from partita.group.share.asking import AskStates, ask, codes_of, initialize_request
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode

UNKNOWN_START = -1
"""The leader chooses the start offset by the group's setting."""


def is_settled(turn: Turn, group: ShareGroup) -> bool:
    """Whether no subscribed partition lacked state at the last look, and no topic has changed since."""
    return turn.state.shares[group.group_id].settled == (turn.state.topics.version, group.topics)


def initialize_missing(turn: Turn, group: ShareGroup) -> None:
    """Begin the state of subscribed partitions that have none, and whose last attempt is not under way."""
    timers, now_ms = turn.state.shares[group.group_id], turn.now.mono_ms
    retry_ms = turn.state.config.group_share_initialize_retry_interval_ms
    missing: dict[bytes, SharedTopic] = {}
    settled: tuple[int, StateTopics] | None = turn.state.topics.version, group.topics
    for name in group.names:
        facts = turn.state.topics.get(name)
        if facts is None:
            continue
        topic_id = facts.topic_id
        known = _numbers(group.topics.initialized, topic_id)
        if len(known) == facts.partitions:
            continue
        settled = None
        since_ms = timers.initializing_ms.get(topic_id)
        if since_ms is not None and now_ms - since_ms < retry_ms:
            known |= _numbers(group.topics.initializing, topic_id)
        if len(known) < facts.partitions:
            missing[topic_id] = SharedTopic(name, frozenset(range(facts.partitions)) - known)
    timers.settled = settled
    if missing:
        starts = {topic_id: dict.fromkeys(topic.partitions, UNKNOWN_START) for topic_id, topic in missing.items()}
        begin(turn, group, missing, starts, None)


def begin(
    turn: Turn,
    group: ShareGroup,
    topics: Mapping[bytes, SharedTopic],
    starts: Mapping[bytes, Mapping[int, int]],
    question: AskStates | None,
) -> None:
    """Record the partitions as initializing, and ask for their state; `question` says what follows, if not `done`."""
    timers = turn.state.shares[group.group_id]
    for topic_id in topics:
        timers.initializing_ms[topic_id] = turn.now.mono_ms
    deleting = {topic_id: name for topic_id, name in group.topics.deleting.items() if topic_id not in topics}
    initializing = with_added(group.topics.initializing, topics)
    turn.write(
        [share_log.topics_record(group.group_id, group.topics._replace(initializing=initializing, deleting=deleting))]
    )
    message = initialize_request(group.group_id, group.epoch, starts)
    asked = question or AskStates(group.group_id, message, done)
    ask(turn, asked._replace(message=message))


def done(turn: Turn, asked: AskStates, response: Any) -> None:
    """Record what has state now. After an error nothing of the question has, and the next heartbeat tries again."""
    group = turn.state.share_group(asked.group_id)
    if group is not None:
        record_outcome(turn, group, asked, response)


def record_outcome(turn: Turn, group: ShareGroup, asked: AskStates, response: Any) -> None:
    """Move the partitions of the question out of those that are initializing."""
    codes = codes_of(response)
    message: Any = asked.message
    wanted = {bytes(topic.topic_id): frozenset(part.partition for part in topic.partitions) for topic in message.topics}
    pending = {
        topic_id: SharedTopic(group.topics.initializing[topic_id].name, mine)
        for topic_id, numbers in wanted.items()
        if topic_id in group.topics.initializing and (mine := numbers & group.topics.initializing[topic_id].partitions)
    }
    if not pending:
        return
    timers = turn.state.shares[group.group_id]
    for topic_id in pending:
        timers.initializing_ms.pop(topic_id, None)
    is_fine = len(codes) == sum(map(len, wanted.values())) and not any(codes.values())
    topics = group.topics._replace(initializing=without(group.topics.initializing, pending))
    if is_fine:
        topics = topics._replace(initialized=with_added(topics.initialized, pending))
    turn.write([share_log.topics_record(group.group_id, topics)])


def forget_topics_gone(turn: Turn, group: ShareGroup) -> None:
    """Take topics that no longer exist out of the group's record."""
    exists = turn.state.topics.name_of
    topics = group.topics
    kept = StateTopics(
        {topic_id: topic for topic_id, topic in topics.initializing.items() if exists(topic_id) is not None},
        {topic_id: topic for topic_id, topic in topics.initialized.items() if exists(topic_id) is not None},
        {topic_id: name for topic_id, name in topics.deleting.items() if exists(topic_id) is not None},
    )
    if kept != topics:
        turn.write([share_log.topics_record(group.group_id, kept)])


def with_added(topics: Mapping[bytes, SharedTopic], more: Mapping[bytes, SharedTopic]) -> dict[bytes, SharedTopic]:
    """Return the topics with these partitions in addition."""
    found = dict(topics)
    for topic_id, topic in more.items():
        found[topic_id] = SharedTopic(topic.name, topic.partitions | _numbers(found, topic_id))
    return found


def without(topics: Mapping[bytes, SharedTopic], gone: Mapping[bytes, SharedTopic]) -> dict[bytes, SharedTopic]:
    """Return the topics less these partitions."""
    found = {}
    for topic_id, topic in topics.items():
        left = topic.partitions - _numbers(gone, topic_id)
        if left:
            found[topic_id] = SharedTopic(topic.name, left)
    return found


def _numbers(topics: Mapping[bytes, SharedTopic], topic_id: bytes) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def first_error(codes: Mapping[tuple[bytes, int], ErrorCode]) -> ErrorCode:
    """Return the first error among these codes; NONE if there is none."""
    return next((code for code in codes.values() if code), ErrorCode.NONE)
