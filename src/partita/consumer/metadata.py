"""Keeps the cluster's metadata fresh: when asked to, when it is old, and for new topics at once.

A waiter asks for an update and waits until `updates` has grown. Failures are repeated with back-off. Topics that are
invalid or forbidden are reported once. (Kafka: Metadata, ConsumerMetadata; consumer.md 13.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Operation, Poll, Request
from partita.errors import KafkaError, UnknownTopicOrPartitionError, error_for
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from partita.protocol.metadata_view import MetadataView, TopicView


class Metadata:
    """`view` is the known metadata; `request_update()` asks for more; `updates` counts answers."""

    def __init__(self, config: ConsumerConfig, uniform: Callable[[float, float], float]) -> None:
        self.view = MetadataView()
        self.updates = 0
        self.errors: list[KafkaError] = []
        self.missing: frozenset[str] = frozenset()
        """Topics asked for that do not exist, by the last answer."""
        self._config = config
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._topics: frozenset[str] | None = frozenset()
        self._is_wanted = True
        self._in_flight: Request | None = None
        self._attempts = 0
        self._unresolved = 0
        self._fresh_until_ms = 0
        self._not_before_ms = 0
        self._one_off_ms = 0
        self._one_off_failures = 0
        self._answered: frozenset[str] | None = frozenset()
        self._one_offs: list[tuple[frozenset[str] | None, Operation]] = []

    @property
    def all_topics(self) -> bool:
        """Are all topics asked for, as a pattern subscription needs?"""
        return self._topics is None

    @property
    def knows_all_topics(self) -> bool:
        """Whether an answer has covered all topics, and all are still asked for."""
        return self._topics is None and self._answered is None

    def absence_of(self, tp: TopicPartition) -> UnknownTopicOrPartitionError | None:
        """The error that says so if there is no such topic or partition, by the last answer."""
        if tp.topic in self.missing:
            return UnknownTopicOrPartitionError(f"partition {tp} does not exist: there is no topic {tp.topic}")
        topic = self.view.topics.get(tp.topic)
        if topic is None or not topic.partitions or self.view.partition(*tp) is not None:
            return None
        return UnknownTopicOrPartitionError(
            f"partition {tp} does not exist; topic {tp.topic} has {len(topic.partitions)}"
        )

    def want_topics(self, topics: frozenset[str] | None) -> None:
        """Set the topics to ask for from now on; None is all of them. New ones are asked for at once."""
        if topics == self._topics:
            return
        before = self._topics
        self._topics = topics
        if topics is None or (before is not None and not topics <= before) or (before is None and topics):
            self._not_before_ms = 0
            self._is_wanted = True

    def covers(self, topics: frozenset[str]) -> bool:
        """Has an answer come for all of these, as they are wanted now?"""
        return self._answered is None or topics <= self._answered

    def request_update(self) -> int:
        """Ask for an update; returns the count that `updates` has to exceed for it to have come."""
        self._is_wanted = True
        return self.updates + (1 if self._in_flight is not None else 0)

    def look_up(self, topics: frozenset[str] | None) -> Operation:
        """One answer for the application (partitions_for, list_topics); the cache stays as it is."""
        operation = Operation()
        self._one_offs.append((topics, operation))
        return operation

    def cancel(self, operation: Operation) -> None:
        """The application waits no longer for this answer."""
        self._one_offs = [one for one in self._one_offs if one[1] is not operation]
        operation.is_done = True

    def poll(self, now: Now, poll: Poll) -> None:
        """The metadata requests to send now: for the application's questions, and for the cache when it is due."""
        if self._one_offs and now.mono_ms < self._one_off_ms:
            poll.wake_in(self._one_off_ms - now.mono_ms)
        elif self._one_offs:
            for topics, operation in self._one_offs:
                poll.ask(self._request(topics, operation))
            self._one_offs = []
        if self._in_flight is not None:
            return
        due = self._is_wanted or now.mono_ms >= self._fresh_until_ms
        if due and now.mono_ms >= self._not_before_ms:
            self._in_flight = poll.ask(self._request(self._topics, None))
            self._is_wanted = False
        else:
            poll.wake_in((self._not_before_ms if due else self._fresh_until_ms) - now.mono_ms)

    def on_response(self, request: Request, response: MetadataResponse, now: Now) -> None:
        """Update the cache, or answer the application's question."""
        topics, operation = request.context
        if operation is not None:
            operation.succeed(_views(response, request.version))
            self._one_off_failures = 0
            return
        self._in_flight = None
        if not response.brokers:
            self._retry_later(now)
            return
        self._attempts = 0
        self.view.update(response, request.version, keep=(self._topics or frozenset()) if topics is not None else None)
        self.updates += 1
        self._answered = topics
        self._fresh_until_ms = now.mono_ms + self._config.metadata_max_age_ms
        self._note_errors(response)
        self._unresolved = self._unresolved + 1 if self._is_wanted else 0
        wait = self._backoff.after(self._unresolved - 1) if self._unresolved else self._config.retry_backoff_ms
        self._not_before_ms = now.mono_ms + wait

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: ask again after the back-off."""
        topics, operation = request.context
        if operation is not None:
            if not operation.is_done:
                self._one_offs.append((topics, operation))
                self._one_off_ms = now.mono_ms + self._backoff.after(self._one_off_failures)
                self._one_off_failures += 1
            return
        self._in_flight = None
        self._retry_later(now)

    def _request(self, topics: frozenset[str] | None, operation: Operation | None) -> Request:
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in sorted(topics)]
        create = self._config.allow_auto_create_topics
        message = MetadataRequest(topics=wanted, allow_auto_topic_creation=create and topics is not None)
        return Request(self, message, context=(topics, operation))

    def _retry_later(self, now: Now) -> None:
        self._is_wanted = True
        self._not_before_ms = now.mono_ms + self._backoff.after(self._attempts)
        self._attempts += 1

    def _note_errors(self, response: MetadataResponse) -> None:
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.missing = frozenset(t.name for t in response.topics if t.error_code == missing and t.name)
        raised: dict[int, list[str]] = {}
        for topic in response.topics:
            do = reaction("Metadata, each topic", topic.error_code)
            if do is Reaction.RAISE:
                raised.setdefault(topic.error_code, []).append(topic.name or "")
            if do is Reaction.REFRESH or any(p.leader_id < 0 for p in topic.partitions):
                self._is_wanted = True
        for code, names in raised.items():
            self.errors.append(
                error_for(
                    code,
                    f"{', '.join(sorted(names))}: {ErrorCode(code).meaning}",
                    operation="READ",
                    names=sorted(names),
                )
            )


def _views(response: Any, version: int) -> dict[str, TopicView]:
    view = MetadataView()
    view.update(response, version)
    return view.topics
