"""Notices partitions that stand still although data waits for them.

A partition makes progress when its position moves. If it has not for `progress_timeout_ms` while the broker holds
more, a Note says so, once per standstill.
"""

from __future__ import annotations

from typing import Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.request import Event, Poll, Request
from partita.consumer.subscription import Subscription
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.wording import Note


class Watchdog:
    """`stalled` lists the partitions that stand still now, with the time since they moved."""

    def __init__(self, config: ConsumerConfig, subscription: Subscription, events: list[Event]) -> None:
        self._timeout_ms = config.progress_timeout_ms
        self._read_committed = config.read_committed
        self._subscription = subscription
        self._events = events
        self._moved: dict[TopicPartition, tuple[int, int]] = {}
        self._told: set[TopicPartition] = set()

    def poll(self, now: Now, poll: Poll) -> None:
        """Note every partition that has just begun to stand still. It sends nothing."""
        if self._timeout_ms == 0:
            return
        for tp, since_ms in self.stalled(now).items():
            if tp not in self._told:
                self._told.add(tp)
                state = self._subscription.assignment[tp]
                offset = state.consumed[0] if state.consumed is not None else None
                text = f"{tp} has not moved for {since_ms} ms at {offset}, though there is more to read"
                fields = {"topic": tp.topic, "partition": tp.partition, "since_ms": since_ms, "position": offset}
                self._events.append(Note("no_progress", text, fields))
        poll.wake_in(max(1, self._timeout_ms // 4))

    def stalled(self, now: Now) -> dict[TopicPartition, int]:
        """Partitions with data ahead whose position has not moved for the time-out; value: since when, in ms."""
        found: dict[TopicPartition, int] = {}
        moved: dict[TopicPartition, tuple[int, int]] = {}
        for tp, state in self._subscription.assignment.items():
            offset = state.consumed[0] if state.consumed is not None else -1
            before = self._moved.get(tp)
            lag = state.lag(read_committed=self._read_committed)
            if before is None or before[0] != offset or lag == 0 or state.is_paused:
                moved[tp] = (offset, now.mono_ms)
                self._told.discard(tp)
                continue
            moved[tp] = before
            since = now.mono_ms - before[1]
            if since >= self._timeout_ms > 0:
                found[tp] = since
        self._moved = moved
        return found

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Never called: the watchdog sends no requests."""
        raise AssertionError("the watchdog asks nobody")

    def on_disconnect(self, request: Request, now: Now) -> None:
        """Never called: the watchdog sends no requests."""
        raise AssertionError("the watchdog asks nobody")
