"""Transactional producers, a coordinator and partitions under faults: the real rules and logs, everything else by dice.

Producers share transactional ids, so they fence each other. Records of the state topic become durable late or are
refused; the coordinator moves; markers are late, refused, doubled and lost with their coordinator; answers are lost;
batches come late and twice, from the dead as well; time jumps; partitions are recovered from their batches. When the
faults have stopped, every record of a committed transaction must be seen once and no other one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from partita.log.guards import Guard
from partita.log.partition_log import AppendRefused, PartitionLog
from partita.log.producer_state import Refusal
from partita.log.storage import MemoryStorage
from partita.log.transaction_markers import bytes_of, read_marker
from partita.now import ManualClock
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import ABORT, COMMIT, build_batch, build_marker, iter_batches, iter_records
from partita.records.header import BatchHeader, read_header
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
from partita.transactions.markers import Verdict, verdict_of
from partita.transactions.model import State, TopicPartition, Transaction
from support.log.logs import open_log

PARTITIONS: tuple[TopicPartition, ...] = (("t", 0), ("t", 1), ("t", 2))
NONE = ErrorCode.NONE
AGAIN = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
TIMEOUT_MS = 60_000
Steps = Generator[None, None, Any]


class Broken(AssertionError):
    """A promise is broken."""


@dataclass(slots=True)
class Told:
    """One transaction as its producer knows it."""

    records: list[str] = field(default_factory=list)
    outcome: bool | None = None
    """True: told committed; False: told aborted; None: told nothing."""


@dataclass(slots=True)
class Delivery:
    """A marker on its way; `life` is the coordinator's that sent it."""

    order: SendMarkers
    partition: TopicPartition
    life: int


def _same(stored: Transaction | None, decided: Transaction) -> bool:
    """Version 0 of a record does not hold every field."""
    return stored is not None and (stored.producer_id, stored.epoch, stored.state, stored.partitions) == (
        decided.producer_id,
        decided.epoch,
        decided.state,
        decided.partitions,
    )


class Simulation:
    """One run. `run` raises `Broken` when a promise is broken."""

    def __init__(self, seed: int, clients: int = 4, level: int = 2) -> None:
        self.dice = Random(seed)
        self.clock = ManualClock()
        self.level = level
        self._ids, self._tokens, self._numbers = count(100), count(), count()
        self.config = TransactionConfig(level=level, timeout_check_interval_ms=1000)
        self.durable: list[Record] = []
        self.in_flight: list[Write] = []
        self.deliveries: list[Delivery] = []
        self.answers: dict[object, Outcome] = {}
        self.life = 0
        self.is_faulty = True
        self.told: dict[int, Told] = {}
        self.storages = {name: MemoryStorage() for name in PARTITIONS}
        self.logs: dict[TopicPartition, PartitionLog] = {
            name: open_log(storage) for name, storage in self.storages.items()
        }
        self.coordinator = self._new()
        self.actors: list[Steps] = [self._client(f"id{n % 2}", 2 if n % 3 else 1) for n in range(clients)]

    def _new(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.config, lambda: next(self._ids))

    # -- the run ---------------------------------------------------------------------------------------------------

    def run(self, steps: int = 600) -> None:
        """Let things happen, then let faults stop and everything end; then look."""
        for _ in range(steps):
            self._something()
        self.is_faulty = False
        for _ in range(400):
            self._settle()
            if not self.in_flight and not self.deliveries and self._all_idle():
                break
            self.clock.advance(TIMEOUT_MS // 2)
            self._tick()
        self._check_end()

    def _something(self) -> None:
        roll = self.dice.random()
        if roll < 0.55 and self.actors:
            self._act(self.dice.randrange(len(self.actors)))
        elif roll < 0.80:
            self._append_one()
        elif roll < 0.94:
            self._deliver_one()
        elif roll < 0.96:
            self._move()
        elif roll < 0.975:
            self._recover(self.dice.choice(PARTITIONS))
        else:
            self.clock.advance(self.dice.choice((5, 500, 500, TIMEOUT_MS + 2000)))
            self._tick()

    def _act(self, index: int) -> None:
        try:
            next(self.actors[index])
        except StopIteration:
            del self.actors[index]

    def _settle(self) -> None:
        while self.in_flight or self.deliveries:
            while self.in_flight:
                self._append_one()
            while self.deliveries:
                self._deliver_one()

    def _all_idle(self) -> bool:
        return all(entry.transaction.state.is_idle for entry in self.coordinator.entries.values())

    def _tick(self) -> None:
        while (due := self.coordinator.next_deadline_ms()) is not None and due <= self.clock.now().mono_ms:
            self._take(self.coordinator.on_deadline(self.clock.now()))

    # -- the coordinator -------------------------------------------------------------------------------------------

    def _take(self, step: Step) -> None:
        for token, outcome in step.replies:
            if token in self.answers:
                raise Broken(f"token {token} is answered twice")
            self.answers[token] = outcome
        self.in_flight += step.writes
        for order in step.orders:
            self._check_decided(order.transaction)
            self.deliveries += [Delivery(order, name, self.life) for name in order.partitions]

    def _append_one(self) -> None:
        if not self.in_flight:
            return
        write = self.in_flight.pop(0)
        now = self.clock.now()
        if self.is_faulty and self.dice.random() < 0.04:
            self._take(self.coordinator.refused(write.move, ErrorCode.COORDINATOR_NOT_AVAILABLE, now))
            return
        self.durable.append(write.record)
        if self.is_faulty and self.dice.random() < 0.02:
            self._move()  # durable, and nobody was told
            return
        self._take(self.coordinator.stored(write.move, now))

    def _move(self) -> None:
        """Another coordinator loads what is durable; what was in flight may be lost."""
        self._take(self.coordinator.unload())
        self.in_flight.clear()
        self.life += 1
        self.coordinator = self._new()
        for record in self.durable:
            self.coordinator.replay(record)
        self._take(self.coordinator.resume(self.clock.now()))
        if self.dice.random() < 0.5:
            self.deliveries = [one for one in self.deliveries if one.life == self.life]

    def last_durable(self, producer_id: int) -> list[Transaction]:
        """Every durable value that names the producer id."""
        found = []
        for record in self.durable:
            loaded = read_record(record)
            if loaded is not None and loaded.transaction is not None:
                of = loaded.transaction
                if producer_id in (of.producer_id, of.previous_producer_id):
                    found.append(of)
        return found

    def _check_decided(self, decided: Transaction) -> None:
        """TI6: no marker is sent whose decision is not durable."""
        known = [read_record(record) for record in self.durable]
        if not any(loaded is not None and _same(loaded.transaction, decided) for loaded in known):
            raise Broken(f"markers of {decided} are sent before it is durable")

    # -- markers ---------------------------------------------------------------------------------------------------

    def _deliver_one(self) -> None:
        if not self.deliveries:
            return
        delivery = self.deliveries.pop(self.dice.randrange(len(self.deliveries)))
        if self.is_faulty and self.dice.random() < 0.25:
            self.deliveries.append(delivery)  # refused, or later
            return
        if self.is_faulty and self.dice.random() < 0.1:
            self.deliveries.append(delivery)  # twice
        decided = delivery.order.transaction
        marker = build_marker(
            COMMIT if decided.state is State.PREPARE_COMMIT else ABORT,
            timestamp=self.clock.now().wall_ms,
            producer_id=decided.producer_id,
            producer_epoch=decided.epoch,
            coordinator_epoch=delivery.life,
        )
        code = NONE
        try:
            version = decided.client_version
            self.logs[delivery.partition].append(marker, 0, self.clock.now(), transaction_version=version)
        except AppendRefused as refused:
            code = refused.code
        if delivery.life == self.life and verdict_of(code) is Verdict.DONE:
            self._take(self.coordinator.markers_done(decided, [delivery.partition], self.clock.now()))

    def _recover(self, name: TopicPartition) -> None:
        """The partition's leader dies; what it knew of producers comes from the batches."""
        before = self.logs[name]
        known = {p: (s.epoch, s.transaction_start) for p, s in before.producers.producers.items()}
        self.logs[name] = open_log(self.storages[name], was_clean=False)
        after = {p: (s.epoch, s.transaction_start) for p, s in self.logs[name].producers.producers.items()}
        if known != after or before.last_stable_offset != self.logs[name].last_stable_offset:
            raise Broken(f"{name} is recovered with {after}, known was {known}")

    # -- producers -------------------------------------------------------------------------------------------------

    def _ask(self, request: Request) -> Steps:
        """The outcome; asked again while the answer says so or is lost."""
        while True:
            token = next(self._tokens)
            self._take(self.coordinator.handle(token, request, self.clock.now()))
            for _ in range(60):
                if token in self.answers:
                    break
                yield
            outcome = self.answers.get(token)
            is_lost = self.is_faulty and self.dice.random() < 0.05
            if outcome is not None and outcome.code not in AGAIN and not is_lost:
                return outcome
            yield

    def _client(self, name: str, version: int) -> Steps:
        version = min(version, self.level or 1)
        while True:
            outcome: Outcome = yield from self._ask(InitProducer(name, TIMEOUT_MS))
            if outcome.code is not NONE:
                return
            producer_id, epoch = outcome.producer_id, outcome.epoch
            sequences = dict.fromkeys(PARTITIONS, 0)
            while True:
                told = yield from self._transaction(name, producer_id, epoch, version, sequences)
                if told is None:
                    break
                producer_id, epoch = told
                if self.dice.random() < 0.1:
                    break  # another process takes the id over

    def _transaction(
        self, name: str, producer_id: int, epoch: int, version: int, sequences: dict[TopicPartition, int]
    ) -> Steps:
        """One transaction; the producer id and epoch to go on with, or None when the producer is through."""
        number = next(self._numbers)
        told = self.told[number] = Told()
        producer = (name, producer_id, epoch)
        chosen = self.dice.sample(PARTITIONS, self.dice.randint(1, 3))
        if version == 1:
            outcome: Outcome = yield from self._ask(AddPartitions(*producer, frozenset(chosen)))
            if outcome.code is not NONE:
                return None
        for at, partition in enumerate(chosen * 2):
            value = f"{number}.{at}"
            batch = build_batch(
                [(self.clock.now().wall_ms, None, value.encode(), ())],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequences[partition],
                is_transactional=True,
            )
            if self.dice.random() < 0.15:
                self.actors.append(self._late(name, partition, batch, version))
            code = yield from self._produce(name, partition, batch, version)
            if code is not NONE:
                return None  # the process gives up; its transaction is left to the timeout
            told.records.append(value)
            sequences[partition] += 1
        if self.dice.random() < 0.1:
            return None
        committed = self.dice.random() < 0.7
        outcome = yield from self._ask(EndTransaction(*producer, committed, version if version == 2 else 0))
        if outcome.code is not NONE:
            return None
        told.outcome = committed
        if version == 1:
            return producer_id, epoch
        if outcome.epoch == 32767:
            raise Broken("a client was told the last epoch")
        sequences.update(dict.fromkeys(PARTITIONS, 0))
        return outcome.producer_id, outcome.epoch

    def _late(self, name: str, partition: TopicPartition, batch: bytes, version: int) -> Steps:
        """The same batch once more, at any later time."""
        for _ in range(self.dice.randint(0, 80)):
            yield
        yield from self._produce(name, partition, batch, version)

    def _produce(self, name: str, partition: TopicPartition, batch: bytes, version: int) -> Steps:
        """Verify and append, with time between; the code."""
        header = read_header(batch)
        while True:
            asked = self.logs[partition].producers.ask(
                header, is_version_2=version == 2, wall_ms=self.clock.now().wall_ms
            )
            if isinstance(asked, Refusal):
                return asked.code
            guard: Guard | None = asked
            if guard is not None:
                producer = (name, header.producer_id, header.producer_epoch)
                request: Request = VerifyPartitions(*producer, frozenset({partition}))
                if version == 2:
                    request = AddPartitions(*producer, frozenset({partition}), 2)
                outcome: Outcome = yield from self._ask(request)
                if outcome.code is not NONE or outcome.verdicts:
                    return ErrorCode.INVALID_TXN_STATE
                yield
            try:
                appended = self.logs[partition].append(batch, 0, self.clock.now(), guard=guard, needs_guard=True)
            except AppendRefused as refused:
                return refused.code
            if not appended.is_duplicate:
                self._check_known(header.producer_id, partition)
            if not (self.is_faulty and self.dice.random() < 0.05):
                return NONE
            yield  # the answer is lost: send it again

    def _check_known(self, producer_id: int, partition: TopicPartition) -> None:
        """TI7: the transaction's record with this partition was durable before the batch."""
        if not any(partition in known.partitions for known in self.last_durable(producer_id)):
            raise Broken(f"a batch of producer {producer_id} in {partition}, of which no record knows")

    # -- what must hold --------------------------------------------------------------------------------------------

    def _check_end(self) -> None:
        for name, entry in self.coordinator.entries.items():
            if entry.is_pending or not entry.transaction.state.is_idle:
                raise Broken(f"TL2: {name} ends as {entry.transaction.state.text}")
        for partition, log in self.logs.items():
            if log.last_stable_offset != log.high_watermark:
                raise Broken(f"TL1: {partition} is held at {log.last_stable_offset} of {log.high_watermark}")
        seen = [value for log in self.logs.values() for value in visible(log)]
        for number, told in self.told.items():
            found = [value for value in seen if value.startswith(f"{number}.")]
            if told.outcome is True and sorted(found) != sorted(told.records):
                raise Broken(f"TI1: transaction {number} is committed with {told.records}, seen is {found}")
            if told.outcome is False and found:
                raise Broken(f"TI1: transaction {number} is aborted, seen is {found}")
            if told.outcome is None and found and sorted(set(found)) != sorted(found):
                raise Broken(f"TI3: transaction {number} is seen twice: {found}")
            if told.outcome is None and found and not set(told.records) <= set(found):
                raise Broken(f"TI1: half of transaction {number} is seen: {found} of {told.records}")


def batches_of(log: PartitionLog) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a log, segment by segment."""
    offset = log.log_start_offset
    while len(chunk := log.read(offset, 1 << 20)):
        for header, batch in iter_batches(chunk):
            yield header, memoryview(batch)
            offset = header.next_offset


def visible(log: PartitionLog) -> list[str]:
    """What a read_committed reader gets, by the aborted index; it must agree with the markers."""
    aborted = log.producers.aborted_between(0, log.high_watermark)
    by_index, by_markers = [], []
    waiting: dict[int, list[str]] = {}
    for header, batch in batches_of(log):
        if header.is_control:
            marker = read_marker(batch)
            values = waiting.pop(header.producer_id, [])
            by_markers += values if marker is not None and marker[0] == COMMIT else []
            continue
        values = [bytes_of(record.value).decode() for record in iter_records(batch)]
        waiting.setdefault(header.producer_id, []).extend(values)
        is_dropped = any(
            entry.producer_id == header.producer_id and entry.first_offset <= header.base_offset < entry.last_offset
            for entry in aborted
        )
        by_index += [] if is_dropped else values
    if sorted(by_index) != sorted(by_markers):
        raise Broken(f"TI8: by the index {by_index}, by the markers {by_markers}")
    return by_index
