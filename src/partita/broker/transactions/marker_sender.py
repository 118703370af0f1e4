"""Writes the markers of decided transactions into their partitions, each until it is there.

Nodes of one process need no request for that: a marker is a call. It has a life of its own all the same: it may be
refused while leadership moves, and is tried again, with pauses that grow, until it is written or not needed any more.
(Kafka: TransactionMarkerChannelManager.)
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from partita.broker.shard_life import State
from partita.broker.transactions.marker_writing import EndMarker, Shards, write_marker
from partita.broker.wire.turns import SLICE_SECONDS
from partita.protocol.error_codes import ErrorCode
from partita.transactions.contract import SendMarkers
from partita.transactions.markers import Verdict, verdict_of
from partita.transactions.model import State as TransactionState
from partita.transactions.model import TopicPartition

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import Partition
    from partita.broker.transactions.runner import TransactionRunner

log = logging.getLogger("partita.broker")

_PAUSE_MS, _PAUSE_MS_MAX = 20, 1000
_NOTED_AFTER_MS = 10_000


class MarkerSender:
    """The markers of all shards that are under way."""

    def __init__(self, shards: Shards) -> None:
        self._cluster = shards.cluster
        self.turns = shards.turns
        self.under_way: dict[_Sending, None] = {}
        self.write: Callable[[Partition, EndMarker], ErrorCode | asyncio.Future[ErrorCode]] = partial(
            write_marker, shards
        )
        """Writes one marker at the partition's leader; the simulator puts delays and losses here."""

    def send(self, runner: TransactionRunner, order: SendMarkers) -> None:
        """Write the markers of the order when it is their turn; report each that is done to the runner."""
        sending = _Sending(self, runner, order)
        self.under_way[sending] = None
        sending.begin()

    def count_waiting(self) -> int:
        """Number of partitions that wait for a marker."""
        return sum(len(sending.left) for sending in self.under_way)

    def partition(self, name: TopicPartition) -> Partition | None:
        """The partition, if its topic is still there."""
        return self._cluster.catalogue.partition(*name)

    def later(self, pause_ms: int, sending: _Sending) -> None:
        """Go on with an order after a pause."""
        self._cluster.loop.call_later(pause_ms / 1000, sending.begin)

    def note(self, sending: _Sending, waited_ms: int) -> None:
        """Say that the markers of a transaction have been waiting for long."""
        decided = sending.order.transaction
        waits = [f"{topic}-{index}" for topic, index in list(sending.left)[:10]]
        log.warning("%s: markers have waited for %d ms: %s", decided.transactional_id, waited_ms, ", ".join(waits))
        self._cluster.notes.control(
            "markers wait",
            transactional_id=decided.transactional_id,
            partitions=waits,
            errors={f"{t}-{p}": code.name for (t, p), code in list(sending.errors.items())[:10]},
        )

    @property
    def mono_ms(self) -> int:
        """This instant."""
        return self._cluster.clock.mono_ms()


class _Sending:
    """One order on its way, a slice at each of its turns. `left` are the partitions without marker."""

    def __init__(self, sender: MarkerSender, runner: TransactionRunner, order: SendMarkers) -> None:
        self._sender = sender
        self._runner = runner
        self.order = order
        self.left: dict[TopicPartition, None] = dict.fromkeys(order.partitions)
        self._todo: deque[TopicPartition] = deque()
        """Those of `left` that are still to be tried this time."""
        self._answers: deque[tuple[TopicPartition, ErrorCode]] = deque()
        """Answers that came later and are still to be taken."""
        self._asked: set[TopicPartition] = set()
        self._is_in_line = self._is_resting = False
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self._pause_ms = _PAUSE_MS
        self._since_ms = self._noted_ms = sender.mono_ms

    def begin(self) -> None:
        """Get in line to try every partition that is left and not being asked."""
        self._is_resting = False
        if not self._todo:
            self._todo.extend(name for name in self.left if name not in self._asked)
        self._wait()

    def _wait(self) -> None:
        if not self._is_in_line:
            self._is_in_line = True
            self._sender.turns.wait(self._go_on)

    def _go_on(self) -> None:
        """Take the answers that came and try the next partitions, for a slice."""
        self._is_in_line = False
        turns, is_active = self._sender.turns, self._runner.state is State.ACTIVE
        end = turns.clock() + SLICE_SECONDS
        while is_active and (self._answers or self._todo):
            if self._answers:
                self._take(*self._answers.popleft())
            else:
                self._try(self._todo.popleft())
            is_active = self._runner.state is State.ACTIVE
            if turns.is_over(end):
                break
        if not is_active or not self.left:
            self._sender.under_way.pop(self, None)
        elif self._answers or self._todo:
            self._wait()
        elif not self._is_resting:
            self._again_later()

    def _again_later(self) -> None:
        self._is_resting = True
        self._sender.later(self._pause_ms, self)
        self._pause_ms = min(2 * self._pause_ms, _PAUSE_MS_MAX)
        now_ms = self._sender.mono_ms
        if now_ms - self._noted_ms >= _NOTED_AFTER_MS:
            self._noted_ms = now_ms
            self._sender.note(self, now_ms - self._since_ms)

    def _try(self, name: TopicPartition) -> None:
        partition = self._sender.partition(name)
        if partition is None:
            self._take(name, ErrorCode.NONE)  # the topic was deleted, and nobody reads it any more
            return
        decided = self.order.transaction
        marker = EndMarker(
            producer_id=decided.producer_id,
            producer_epoch=decided.epoch,
            committed=decided.state is TransactionState.PREPARE_COMMIT,
            coordinator_epoch=self._runner.leader_epoch,
            version=decided.client_version,
        )
        answer = self._sender.write(partition, marker)
        if isinstance(answer, ErrorCode):
            self._take(name, answer)
            return
        self._asked.add(name)
        answer.add_done_callback(lambda done: self._answered(name, done))

    def _answered(self, name: TopicPartition, done: asyncio.Future[ErrorCode]) -> None:
        self._asked.discard(name)
        failed = done.cancelled() or done.exception() is not None
        self._answers.append((name, ErrorCode.UNKNOWN_SERVER_ERROR if failed else done.result()))
        self._wait()

    def _take(self, name: TopicPartition, code: ErrorCode) -> None:
        if verdict_of(code) is Verdict.AGAIN:
            self.errors[name] = code
            return
        self.errors.pop(name, None)
        if name in self.left:
            del self.left[name]
            self._runner.markers_done(self.order.transaction, [name])
