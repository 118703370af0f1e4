"""Run one shard of the share coordinator: load, append, answer what is durable, one timer.

The coordinator decides, this shell acts. A decision's records are appended at once and replayed, and no answer leaves
before every record decided before it is durable. When an append fails the shard is dropped and its log replayed.
(Kafka: CoordinatorRuntime, ShareCoordinatorService.)
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.shard_life import ACTIVE, CLOSED, EXPECTED, LOADING, ShardLife, State, Wording
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import iter_records
from partita.records.builder import build_batch
from partita.records.header import BatchHeader
from partita.share.coordinator.coordinator import ShareConfig, ShareCoordinator
from partita.share.coordinator.log_records import Record
from partita.share.coordinator.requests import Outcome, StateRequest

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.broker.topics.catalogue import Partition

log = logging.getLogger("partita.broker")

_PORTION = 100
"""How many snapshots of the timer are one batch."""


class StateSettings(NamedTuple):
    """Settings of a shard; times in milliseconds, `codec` compresses the batches written."""

    rules: ShareConfig = ShareConfig()
    prune_ms: int = 300_000
    codec: int = 0
    max_message_bytes: int = 1_048_588


class StateRunner(ShardLife):
    """One shard on the node that leads its partition."""

    wording = Wording("share state of shard", "its share groups", "share state: ", "share.coordinator.load.buffer.size")

    def __init__(self, cluster: Cluster, partition: Partition, settings: StateSettings) -> None:
        super().__init__(cluster, partition)
        self.settings = settings
        self.coordinator = self._new_coordinator()
        self._waiting: deque[tuple[int, Outcome, asyncio.Future[Outcome]]] = deque()
        """Answers by the offset that must be durable before they leave, oldest first."""
        self._prune_due_ms = self._cold_due_ms = 0

    # -- life ------------------------------------------------------------------------------------------------------

    def resign(self) -> None:
        """Give the shard up: waiting callers get NOT_COORDINATOR, and the next leader goes on from the log."""
        self._drop(CLOSED)

    def configure(self, settings: StateSettings) -> None:
        """Go on with these settings."""
        self.settings = settings
        self.coordinator.config = settings.rules

    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> None:
        if header.is_control:
            return
        for record in iter_records(batch, check_crcs=False):
            self.coordinator.replay(Record(_bytes(record.key) or b"", _bytes(record.value)), record.offset)

    def _loaded(self) -> None:
        """Serve. What was replayed beyond the high watermark is in no answer before it is durable."""
        if self.state is not LOADING:
            return
        self.state = ACTIVE
        now_ms = self._cluster.clock.mono_ms()
        self._prune_due_ms = now_ms + self.settings.prune_ms
        self._cold_due_ms = now_ms + self.settings.rules.cold_snapshot_ms
        self.forget_topics_gone()
        self._arm()

    def _dropped(self, was: State) -> None:
        opened = self.partition.opened_log
        if opened is not None:
            opened.unwatch(self._settle)
        waiting, self._waiting = self._waiting, deque()
        for _, _, future in waiting:
            if not future.done():
                future.set_result(Outcome(ErrorCode.NOT_COORDINATOR))

    def _renew(self) -> None:
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> ShareCoordinator:
        return ShareCoordinator(self.settings.rules, self._partitions_of)

    def _partitions_of(self, topic_id: bytes) -> int:
        topic = self._cluster.catalogue.by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    # -- requests --------------------------------------------------------------------------------------------------

    def decide(self, request: StateRequest) -> Outcome | asyncio.Future[Outcome]:
        """Answer a request: at once where nothing has to become durable before."""
        if self.state is not ACTIVE:
            return Outcome(self.error)
        outcome, records = self.coordinator.handle(request, self._cluster.clock.now().wall_ms)
        if records and (refused := self._append(records)) is not None:
            return Outcome(refused)
        opened = self.partition.opened_log
        if opened is None or self._end_offset <= opened.high_watermark:
            return outcome
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting.append((self._end_offset, outcome, future))
        self._settle()
        return future

    def forget_topics_gone(self) -> None:
        """Remove the share partitions of topics that no longer exist."""
        if self.state is not ACTIVE:
            return
        known = self._cluster.catalogue.by_id
        gone = frozenset(key.topic_id for key in self.coordinator.states if key.topic_id not in known)
        self._append_all(self.coordinator.forget_topics(gone) if gone else ())

    # -- the log ---------------------------------------------------------------------------------------------------

    def _append(self, records: Sequence[Record]) -> ErrorCode | None:
        """Append the records as one batch and replay them; or return the code of the refusal, and nothing changed."""
        now = self._cluster.clock.now()
        batch = build_batch([(now.wall_ms, r.key, r.value, ()) for r in records], codec=self.settings.codec)
        if len(batch) > self.settings.max_message_bytes:
            log.warning("share state of shard %d: %d bytes are too many for a batch", self.partition.index, len(batch))
            return ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            appended = self.partition.log.append(batch, self.leader_epoch, now)
        except EXPECTED as error:
            self._restart("append failed", error)
            return ErrorCode.NOT_COORDINATOR
        self._failed_in_a_row = 0
        for offset, record in enumerate(records, appended.base_offset):
            self.coordinator.replay(record, offset)
        self._end_offset = appended.last_offset + 1
        self._arm()
        return None

    def _append_all(self, records: Sequence[Record]) -> None:
        """Append records that no caller waits for; the next load finds again what could not be appended."""
        for at in range(0, len(records), _PORTION):
            if self._append(records[at : at + _PORTION]) is not None:
                return

    def _settle(self) -> None:
        """Answer what is durable by now, and watch the log while an answer still waits."""
        opened = self.partition.opened_log
        if opened is None:
            return
        while self._waiting and self._waiting[0][0] <= opened.high_watermark:
            _, outcome, future = self._waiting.popleft()
            if not future.done():
                future.set_result(outcome)
        if not self._waiting:
            opened.unwatch(self._settle)
        elif opened.failure is not None:
            self.fail(opened.failure)
        else:
            opened.watch(self._settle)

    # -- time ------------------------------------------------------------------------------------------------------

    def on_timer(self) -> None:
        """Write snapshots of idle share partitions, and drop the part of the log that no state rests on."""
        self._timer = None
        if self.state is not ACTIVE:
            return
        now = self._cluster.clock.now()
        if self._cold_due_ms <= now.mono_ms:
            self._cold_due_ms = now.mono_ms + self.settings.rules.cold_snapshot_ms
            self._append_all(self.coordinator.cold_snapshots(now.wall_ms))
        if self._prune_due_ms <= now.mono_ms:
            self._prune_due_ms = now.mono_ms + self.settings.prune_ms
            self._prune()
        self._arm()

    def _prune(self) -> None:
        """Delete what lies below every latest snapshot, as far as it is durable."""
        below, opened = self.coordinator.prune_below, self.partition.opened_log
        if self.state is not ACTIVE or below is None or opened is None:
            return
        below = min(below, opened.high_watermark)
        if below <= opened.log_start_offset:
            return
        try:
            opened.delete_records_before(below)
        except EXPECTED as error:
            log.warning("share state of shard %d is not pruned: %s", self.partition.index, error)

    def _arm(self) -> None:
        if self.state is ACTIVE and not self.partition.is_untouched:
            self._arm_at(min(self._prune_due_ms, self._cold_due_ms), self.on_timer)


def _bytes(field: object) -> bytes | None:
    assert field is None or isinstance(field, bytes), f"raw records hold bytes, not {type(field)}"
    return field
