"""A transaction coordinator with a log that a test may hold, refuse and reload."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from partita.protocol.error_codes import ErrorCode
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    Outcome,
    Record,
    Request,
    SendMarkers,
    Step,
    VerifyPartitions,
    Write,
)
from partita.transactions.coordinator import TransactionCoordinator
from partita.transactions.log_records import read_record
from partita.transactions.model import State, TopicPartition, Transaction
from support.clock import ManualClock

T0: TopicPartition = ("t", 0)
T1: TopicPartition = ("t", 1)
U0: TopicPartition = ("u", 0)


class World:
    """One shard. Appends are durable at once, and markers written at once, unless told otherwise."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock()
        self.config = TransactionConfig(**settings)
        self._ids = count(4000)
        self._tokens = count()
        self.log: list[Record] = []
        self.waiting: list[Write] = []
        self.orders: list[SendMarkers] = []
        self.markers: list[tuple[int, int, TopicPartition, bool]] = []
        """Written: producer id, epoch, partition, whether it commits."""
        self.notes: list[Any] = []
        self.answers: dict[object, Outcome] = {}
        self.holds_appends = self.holds_markers = False
        self._is_appending = False
        self.refuses: ErrorCode | None = None
        self.coordinator = self._new()

    def _new(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.config, lambda: next(self._ids))

    def reload(self, *, restored_ms: int = -1) -> None:
        """Drop the coordinator; another one reads the log, which is a copy of that time if one is given."""
        self.take(self.coordinator.unload())
        self.waiting.clear()
        self.orders.clear()
        self.coordinator = self._new()
        for record in self.log:
            self.coordinator.replay(record)
        self.take(self.coordinator.resume(self.clock.now(), restored_ms=restored_ms))

    def ask(self, request: Request) -> Outcome | None:
        """The answer, or None while it waits."""
        token = next(self._tokens)
        self.last_token = token
        self.take(self.coordinator.handle(token, request, self.clock.now()))
        return self.answers.get(token)

    def take(self, step: Step) -> None:
        """Do what the step says."""
        for token, outcome in step.replies:
            assert token not in self.answers, f"token {token} is answered twice"
            self.answers[token] = outcome
        self.notes += step.notes
        self.orders += step.orders
        self.waiting += step.writes
        if not self.holds_appends and not self._is_appending:
            self.append()
        if not self.holds_markers:
            self.write_markers()

    def append(self) -> None:
        """Make what waits durable, or refuse it."""
        self._is_appending = True
        while self.waiting:
            write = self.waiting.pop(0)
            if self.refuses is not None:
                self.take(self.coordinator.refused(write.move, self.refuses, self.clock.now()))
                continue
            self.log.append(write.record)
            self.take(self.coordinator.stored(write.move, self.clock.now()))
        self._is_appending = False

    def write_markers(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Write what is ordered: all, or the markers of these partitions."""
        for order in list(self.orders):
            chosen = [one for one in order.partitions if partitions is None or one in partitions]
            if order not in self.orders:
                continue  # the news of another order's markers led here already
            if partitions is None:
                self.orders.remove(order)
            decided = order.transaction
            commits = decided.state is State.PREPARE_COMMIT
            self.markers += [(decided.producer_id, decided.epoch, one, commits) for one in chosen]
            self.take(self.coordinator.markers_done(decided, chosen, self.clock.now()))

    def advance(self, ms: int) -> None:
        """Let time pass and do what is due."""
        self.clock.advance(ms)
        while (due := self.coordinator.next_deadline_ms()) is not None and due <= self.clock.now().mono_ms:
            self.take(self.coordinator.on_deadline(self.clock.now()))

    # requests in a few words

    def init(self, name: str = "p", given: tuple[int, int] = (-1, -1), timeout_ms: int = 60_000) -> Any:
        """(code, producer id, epoch) of an InitProducerId."""
        outcome = self.ask(InitProducer(name, timeout_ms, *given))
        return None if outcome is None else outcome[:3]

    def add(self, given: tuple[int, int], *partitions: TopicPartition, name: str = "p", version: int = 0) -> Any:
        """The code of an AddPartitionsToTxn."""
        outcome = self.ask(AddPartitions(name, *given, frozenset(partitions), version))
        return None if outcome is None else outcome.code

    def verify(self, given: tuple[int, int], *partitions: TopicPartition, name: str = "p") -> Any:
        """The code of a question, or its verdicts."""
        outcome = self.ask(VerifyPartitions(name, *given, frozenset(partitions)))
        assert outcome is not None, "a question never waits"
        return outcome.code or outcome.verdicts

    def end(self, given: tuple[int, int], committed: bool = True, version: int = 0, name: str = "p") -> Any:
        """The code of an EndTxn; of version 2 (code, producer id, epoch)."""
        outcome = self.ask(EndTransaction(name, *given, committed, version))
        return None if outcome is None else outcome[:3] if version else outcome.code

    def known(self, name: str = "p") -> Transaction:
        """The stored value of an id."""
        return self.coordinator.entries[name].transaction

    def logged(self, name: str = "p") -> list[tuple[str, int]]:
        """State and epoch of every record of an id; ("-", -1) for a tombstone."""
        found = []
        for record in self.log:
            loaded = read_record(record)
            assert loaded is not None
            if loaded.transactional_id == name:
                of = loaded.transaction
                found.append(("-", -1) if of is None else (of.state.text, of.epoch))
        return found
