"""Run one shard of the transaction coordinator: load, append, report durable records, one timer.

The coordinator decides, this shell acts. A record is appended at once, as a batch of its own; the coordinator learns
when it is durable, and only then changes, answers, and orders markers. It also learns refusals of the log. (Kafka:
TransactionStateManager.)
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from partita.broker.shard_life import ACTIVE, CLOSED, LOADING, ShardLife, State, Wording
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import iter_records
from partita.records.builder import build_batch
from partita.records.header import BatchHeader
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import Move, Outcome, Record, Request, SendMarkers, Step, Write
from partita.transactions.coordinator import TransactionCoordinator, first_check
from partita.transactions.model import TopicPartition, Transaction
from partita.transactions.notes import TransactionsLoaded

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.broker.topics.catalogue import Partition
    from partita.broker.wire.turns import Turns

log = logging.getLogger("partita.broker")

_TOLD_EVERY_MS = 10_000


class Call:
    """One caller's token: its answer at once, or a future of it."""

    __slots__ = ("future", "outcome")

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.future: asyncio.Future[Outcome] | None = None

    def answer(self, outcome: Outcome) -> None:
        """Give the caller its answer."""
        if self.future is None:
            self.outcome = outcome
        elif not self.future.done():
            self.future.set_result(outcome)


class TransactionRunner(ShardLife):
    """One shard on the node that leads its partition.

    `send` is given the orders of markers; `markers_done` is to be called for each partition that has its marker.
    """

    wording = Wording("transactions of shard", "its ids", "transactions: ", "transaction.state.log.load.buffer.size")

    def __init__(
        self,
        cluster: Cluster,
        partition: Partition,
        config: TransactionConfig,
        *,
        ids_held: Callable[[], int],
        send: Callable[[TransactionRunner, SendMarkers], None],
        turns: Turns,
    ) -> None:
        super().__init__(cluster, partition)
        self._config = config
        self._ids_held = ids_held
        self._send = send
        self._turns = turns
        self.coordinator = self._new_coordinator()
        self._waiting: deque[tuple[int, Move]] = deque()
        """Moves whose records are in the log: the offset that must be durable, oldest first."""
        self._is_settling = False
        self._without_ids_ms: int | None = None
        """When the log last had a line about missing producer ids."""
        self.refuse_next_append: ErrorCode | None = None
        """The code with which a test has the next append refused."""

    # -- life ------------------------------------------------------------------------------------------------------

    def resign(self) -> None:
        """Give the shard up: waiting callers get NOT_COORDINATOR, and the next leader goes on from the log."""
        self._drop(CLOSED)

    def configure(self, config: TransactionConfig) -> None:
        """Go on with these settings."""
        self._config = self.coordinator.config = config

    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> None:
        if not header.is_control:
            for record in iter_records(batch, check_crcs=False):
                self.coordinator.replay(Record(_bytes(record.key) or b"", _bytes(record.value)))

    def _loaded(self) -> None:
        """Go on once all that was replayed is durable: no marker rests on less."""
        opened = self.partition.opened_log
        if self.state is not LOADING:
            return
        if opened is not None and opened.high_watermark < self._end_offset:
            if opened.failure is not None:
                self.fail(opened.failure)
            else:
                opened.watch(self._loaded)
            return
        if opened is not None:
            opened.unwatch(self._loaded)
        self._failed_in_a_row = 0
        self.state = ACTIVE
        step = self.coordinator.resume(self._cluster.clock.now(), restored_ms=self._cluster.store.copied_ms)
        kept = tuple(n for n in step.notes if not isinstance(n, TransactionsLoaded) or n.transactional_ids or n.skipped)
        self.take(step._replace(notes=kept))

    def _dropped(self, was: State) -> None:
        self._waiting.clear()
        opened = self.partition.opened_log
        if opened is not None:
            opened.unwatch(self._settle)
            opened.unwatch(self._loaded)
        _release(self.coordinator.unload(ErrorCode.NOT_COORDINATOR))

    def _renew(self) -> None:
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(self._config, self._new_producer_id, self._ids_held)

    def _new_producer_id(self) -> int | None:
        """None where the disk has no room for another block of ids; the log says so now and then."""
        try:
            return self._cluster.catalogue.allocate_producer_id()
        except StorageError as error:
            now_ms = self._cluster.clock.mono_ms()
            if self._without_ids_ms is None or now_ms - self._without_ids_ms >= _TOLD_EVERY_MS:
                self._without_ids_ms = now_ms
                log.warning("transactions of shard %d: no producer id can be taken: %s", self.partition.index, error)
            return None

    # -- requests --------------------------------------------------------------------------------------------------

    def decide(self, request: Request) -> Outcome | asyncio.Future[Outcome]:
        """Answer a request of one transactional id: at once where nothing has to be waited for."""
        if self.state is not ACTIVE:
            refused = first_check(request, self._config)
            return Outcome(refused if refused is not ErrorCode.NONE else self.error)
        call = Call()
        self.take(self.coordinator.handle(call, request, self._cluster.clock.now()))
        if call.outcome is not None:
            return call.outcome
        call.future = self._loop.create_future()
        return call.future

    def markers_done(self, decided: Transaction, partitions: Iterable[TopicPartition]) -> None:
        """Note partitions that have the marker of the decision, or need none."""
        if self.state is ACTIVE:
            self.take(self.coordinator.markers_done(decided, partitions, self._cluster.clock.now()))

    def take(self, step: Step) -> None:
        """Carry out a step of the coordinator."""
        if step.notes:
            self._cluster.notes.publish(step.notes)
        _release(step)
        for write in step.writes:
            self._append(write)
        for order in step.orders:
            self._send(self, order)
        self._settle()
        self._arm()

    # -- the log ---------------------------------------------------------------------------------------------------

    def _append(self, write: Write) -> None:
        if self.state is not ACTIVE:
            return  # an append of the same step has failed, and all who wait are answered
        now = self._cluster.clock.now()
        batch = build_batch([(now.wall_ms, write.record.key, write.record.value, ())])
        refused, self.refuse_next_append = self.refuse_next_append, None
        if refused is None and len(batch) > self._config.max_message_bytes:
            refused = ErrorCode.UNKNOWN_SERVER_ERROR
        if refused is None:
            try:
                appended = self.partition.log.append(batch, self.leader_epoch, now)
            except StorageError as error:
                failure = self._failure()
                if failure is not None:
                    self.fail(failure)
                    return
                log.warning("transactions of shard %d: append refused: %s", self.partition.index, error)
                refused = ErrorCode.NOT_COORDINATOR
            else:
                self._waiting.append((appended.last_offset + 1, write.move))
                return
        self.take(self.coordinator.refused(write.move, refused, now))

    def _settle(self) -> None:
        """Report durable records to the coordinator, and watch the log while steps wait."""
        if self._is_settling or self.state is not ACTIVE:
            return
        self._is_settling = True
        try:
            while self._waiting and self._waiting[0][0] <= self.partition.log.high_watermark:
                _, move = self._waiting.popleft()
                self.take(self.coordinator.stored(move, self._cluster.clock.now()))
        finally:
            self._is_settling = False
        if self.state is not ACTIVE:
            return
        opened = self.partition.opened_log
        if opened is None:
            return
        if not self._waiting:
            opened.unwatch(self._settle)
        elif opened.failure is not None:
            self.fail(opened.failure)
        else:
            opened.watch(self._settle)

    # -- time ------------------------------------------------------------------------------------------------------

    def on_timer(self) -> None:
        """Do all that is due, since the broker's clock has jumped; the timer was set for the time before."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._do_one_step():
            pass
        self._arm()

    def _come_in_turn(self) -> None:
        """Do one step of due work when it is this shard's turn; the next one waits in line again."""
        self._turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        self._timer = None
        self._do_one_step()
        self._arm()

    def _do_one_step(self) -> bool:
        """Whether something was due, and is done."""
        now = self._cluster.clock.now()
        due = self.coordinator.next_deadline_ms() if self.state is ACTIVE else None
        if due is None or due > now.mono_ms:
            return False
        self.take(self.coordinator.on_deadline(now))
        return True

    def _arm(self) -> None:
        """Keep one timer, at or before the next deadline."""
        due = self.coordinator.next_deadline_ms() if self.state is ACTIVE else None
        if due is None:
            return
        self._arm_at(due, self._come_in_turn)


def _release(step: Step) -> None:
    for token, outcome in step.replies:
        assert isinstance(token, Call), "tokens are calls of the runner"
        token.answer(outcome)


def _bytes(field: object) -> bytes | None:
    assert field is None or isinstance(field, bytes), f"raw records hold bytes, not {type(field)}"
    return field
