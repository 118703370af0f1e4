"""Safety rules of transactions, checked after every turn of the broker and for every answer.

Numbers are those of the rules: TI5 one decision, TI6 markers follow decisions, TI7 known partitions, TI8 the last
stable offset and the aborted index, TI9 epochs, TI10 replay, TI12 answers.
"""

from __future__ import annotations

from partita.broker.topics.catalogue import Partition, Topic
from partita.log.partition_log import PartitionLog
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from partita.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from partita.records.header import iter_batches
from partita.sim.rules.rule import must
from partita.sim.shell.process import Process
from partita.sim.transactions.ledger import Ledger, TopicPartition
from partita.sim.transactions.model import End, Entry, LogModel
from partita.sim.transactions.producer import SimProducer
from partita.transactions.contract import Record
from partita.transactions.log_records import read_record
from partita.transactions.model import EPOCH_MAX, State, Transaction

STATE_TOPIC, OFFSETS_TOPIC = "__transaction_state", "__consumer_offsets"
BRIEF: TopicPartition = ("brief", 0)
"""The partition whose topic may be deleted."""
_REPLAYED_EVERY = 200
_READ_BYTES = 1 << 24


class Watch:
    """Looks at the logs of a process after every turn. Raises RuleBroken."""

    def __init__(self, process: Process, ledger: Ledger) -> None:
        self._process = process
        self._ledger = ledger
        self.models: dict[TopicPartition, LogModel] = {}
        self._states: list[tuple[int, Transaction | None, str]] = []
        """Contents of the state topic: offset, value, transactional id."""
        self._by_producer: dict[int, list[tuple[int, Transaction]]] = {}
        """The same by producer id: offset and value."""
        self._stable: dict[TopicPartition, tuple[int, int]] = {}
        self._seen: dict[TopicPartition, tuple[int, int, int, int]] = {}
        self._known_partitions: list[tuple[TopicPartition, Partition]] = []
        self._durable_end = 0
        """End of the part of the state topic that was on disk when this process started."""
        self._turns = 0
        self.was_deleted = False
        """Whether `BRIEF` was deleted; then its records are not expected to be there."""
        self.forged: dict[tuple[TopicPartition, int, int], bool] = {}
        """Markers that no coordinator sent, by partition, producer id and epoch: whether they may end a transaction."""

    def model(self, partition: TopicPartition) -> LogModel:
        """Facts about a partition's log."""
        return self.models.setdefault(partition, LogModel())

    def turned(self) -> None:
        """A turn of the broker is over."""
        process = self._process
        must(not process.loop.failures, "E", f"raised and lost: {process.loop.failures[:1]}")
        for name, partition in self._partitions():
            log = partition.opened_log
            if log is not None:
                seen = (log.log_end_offset, log.high_watermark, log.log_start_offset, partition.leader_epoch)
                if self._seen.get(name) != seen:
                    self._seen[name] = seen
                    self._look(name, log, partition.leader_epoch)
        self._turns += 1
        if self._turns % _REPLAYED_EVERY == 0:
            self.check_replay()

    def crashed(self) -> None:
        """The process is gone; what it knew of last stable offsets, too."""
        self._stable.clear()
        self._seen.clear()
        self._durable_end = -1
        self._known_partitions.clear()

    def recovered(self) -> None:
        """The next process has begun: look at what is left of every log before anything is added to it."""
        catalogue = self._process.cluster.catalogue
        catalogue.on_created(lambda _: self._known_partitions.clear())
        catalogue.on_deleted(self._deleted)
        for _, partition in self._partitions():
            assert partition.log.log_end_offset >= 0, "the log is opened"
        self.turned()

    def _deleted(self, topics: list[Topic]) -> None:
        self._known_partitions.clear()
        for topic in topics:
            self.was_deleted = True
            for partition in topic.partitions:
                for known in (self.models, self._stable, self._seen):
                    known.pop((topic.name, partition.index), None)

    def log_start(self, name: TopicPartition) -> int:
        """The first offset that is kept of a partition."""
        partition = self._process.cluster.catalogue.partition(*name)
        return 0 if partition is None else partition.log.log_start_offset

    def committed(self, group: str, where: TopicPartition) -> int:
        """Return a group's committed offset from its shard; -1 while there is no shard to ask."""
        runner = self._process.services.groups().runners.get(0) if self._process.is_up else None
        found = None if runner is None else runner.coordinator.hard_state.committed(group, where)
        return -1 if found is None else found.offset

    def _partitions(self) -> list[tuple[TopicPartition, Partition]]:
        """Every partition of this life of the process."""
        if not self._known_partitions:
            catalogue = self._process.cluster.catalogue
            self._known_partitions = [((t.name, p.index), p) for t in catalogue for p in t.partitions]
        return self._known_partitions

    def _look(self, name: TopicPartition, log: PartitionLog, leader_epoch: int) -> None:
        model = self.model(name)
        if log.log_end_offset < model.next_offset:
            model.truncate(log.log_end_offset)
            if name[0] == STATE_TOPIC:
                self._forget_states(log.log_end_offset)
        if name[0] == STATE_TOPIC and self._durable_end < 0:
            self._durable_end = log.log_end_offset
        if log.log_end_offset > model.next_offset:
            self._read(name, log, model)
        if name[0] != STATE_TOPIC:
            self._check_stable(name, log, model, leader_epoch)

    def _read(self, name: TopicPartition, log: PartitionLog, model: LogModel) -> None:
        offset = max(model.next_offset, log.log_start_offset)
        while offset < log.log_end_offset:
            view = log.read(offset, _READ_BYTES, up_to=log.log_end_offset)
            for header, batch in iter_batches(view):
                if header.base_offset < offset:
                    continue
                for item in model.add(header, batch):
                    self._judge(name, item)
                offset = header.next_offset

    def _judge(self, name: TopicPartition, item: Entry | End) -> None:
        if name[0] == STATE_TOPIC:
            assert isinstance(item, Entry), "the state topic has no markers"
            loaded = read_record(Record(item.key or b"", item.value))
            assert loaded is not None, "every record of the state topic can be read"
            value = loaded.transaction
            self._states.append((item.offset, value, loaded.transactional_id))
            if value is not None:
                self._by_producer.setdefault(value.producer_id, []).append((item.offset, value))
                if value.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT):
                    self._ledger.ends.append((value.producer_id, value.epoch))
        elif isinstance(item, End):
            self._check_decided(name, item)
        elif item.is_transactional:
            known = self._durable(item.producer_id)
            is_known = any(t.epoch == item.epoch and name in t.partitions and t.state is State.ONGOING for t in known)
            must(is_known, "TI7", f"{name} has a batch of producer {item.producer_id} at epoch {item.epoch}: not added")

    def _check_decided(self, name: TopicPartition, end: End) -> None:
        wanted = State.PREPARE_COMMIT if end.is_commit else State.PREPARE_ABORT
        decided = [t for t in self._durable(end.producer_id) if t.state is wanted and t.epoch == end.epoch]
        may_end = self.forged.get((name, end.producer_id, end.epoch))
        is_forged = may_end is not None and not end.is_commit and (may_end or not end.has_ended)
        must(
            is_forged or any(name in t.partitions for t in decided),
            "TI6",
            f"{name} has a marker of producer {end.producer_id} at epoch {end.epoch}: {wanted.text} is not durable",
        )

    def _durable(self, producer_id: int) -> list[Transaction]:
        """Durable values of the state topic that are of a producer id."""
        log = self._process.cluster.catalogue.by_name[STATE_TOPIC].partitions[0].log
        end = max(log.high_watermark, self._durable_end)
        return [value for offset, value in self._by_producer.get(producer_id, ()) if offset < end]

    def _forget_states(self, end: int) -> None:
        self._states = [one for one in self._states if one[0] < end]
        for producer_id, known in self._by_producer.items():
            self._by_producer[producer_id] = [one for one in known if one[0] < end]

    def _check_stable(self, name: TopicPartition, log: PartitionLog, model: LogModel, leader_epoch: int) -> None:
        stable, high = log.last_stable_offset, log.high_watermark
        before = self._stable.get(name)
        must(stable <= high, "TI8", f"{name}: the last stable offset {stable} is above the high watermark {high}")
        first = min(model.open.values(), default=None)
        if first is not None and first >= log.log_start_offset:
            must(stable <= first, "TI8", f"{name}: {stable} is above {first}, where a transaction is open")
        if before is not None and before[1] == leader_epoch:
            must(stable >= before[0], "TI8", f"{name}: the last stable offset went back from {before[0]} to {stable}")
        self._stable[name] = (stable, leader_epoch)

    def check_replay(self) -> None:
        """TI10: what is durable gives what the coordinator has in memory."""
        process = self._process
        runner = process.services.transactions().runners.get(0)
        if runner is None or runner.error is not ErrorCode.NONE:
            return
        high = runner.partition.log.high_watermark
        by_log = {name: value for offset, value, name in self._states if offset < high}
        for transactional_id, entry in runner.coordinator.entries.items():
            stored = by_log.get(transactional_id)
            if stored is None or entry.has_failed_fence:
                continue  # its first record is under way, or the epoch was raised before its record
            mine, theirs = _lasting(entry.transaction), _lasting(stored)
            must(mine == theirs, "TI10", f"{transactional_id}: in memory {mine}, by the log {theirs}")
        gone = [one for one, value in by_log.items() if value is not None and one not in runner.coordinator.entries]
        must(not gone, "TI10", f"by the log there are {gone}")

    # Answers

    def answered(self, producer: SimProducer, asked: InitProducerIdRequest | EndTxnRequest, answer: object) -> None:
        """Record that a client received a producer id and epoch, the end of a transaction, or None: no answer to it."""
        match answer:
            case None:
                assert isinstance(asked, EndTxnRequest), "only missing answers to EndTxn are of interest"
                self._ledger.unanswered.add((asked.producer_id, asked.producer_epoch))
            case InitProducerIdResponse():
                self._told(producer, asked.transactional_id or "", answer.producer_id, answer.producer_epoch)
                if isinstance(asked, InitProducerIdRequest) and asked.transactional_id and asked.producer_id < 0:
                    self._took_over(asked.transactional_id, answer.producer_id, answer.producer_epoch)
            case EndTxnResponse():
                assert isinstance(asked, EndTxnRequest), "only EndTxn is answered so"
                self._check_end(asked)
                if answer.producer_id >= 0:
                    self._told(producer, asked.transactional_id, answer.producer_id, answer.producer_epoch)

    def _told(self, producer: SimProducer, transactional_id: str, producer_id: int, epoch: int) -> None:
        must(epoch < EPOCH_MAX, "TI9", f"{transactional_id}: a client was told epoch {epoch}")
        owner, last, life = self._ledger.epochs.get(producer_id, (transactional_id, -1, ""))
        who = producer.client.name
        must(bool(transactional_id) or last < 0, "TI9", f"producer id {producer_id} is given to {life} and {who}")
        must(
            owner == transactional_id,
            "TI9",
            f"producer id {producer_id} is that of {owner!r}, not {transactional_id!r}",
        )
        is_new = epoch > last or (epoch == last and life == who)
        is_late = epoch < last and life != who
        must(is_new or is_late, "TI9", f"{transactional_id}: {who} was told epoch {epoch}, {life} {last}")
        if is_new:
            self._ledger.epochs[producer_id] = (transactional_id, epoch, who)

    def _took_over(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """TI4: from now on nothing more of lower epochs is decided."""
        old = [
            value
            for told in self._ledger.transactions
            if told.transactional_id == transactional_id
            and told.producer is not None
            and told.producer[0] == producer_id
            and told.producer[1] < epoch
            for where, value in told.records
            if where != BRIEF
        ]
        committed = self.values_committed()
        self._ledger.fenced += [(value, value in committed) for value in old]

    def values_committed(self) -> set[str]:
        """The values of every committed record."""
        return {
            entry.value.decode()
            for (topic, _), model in self.models.items()
            if not topic.startswith("__")
            for entry in model.committed()
            if entry.value is not None
        }

    def _check_end(self, asked: EndTxnRequest) -> None:
        wanted = State.PREPARE_COMMIT if asked.committed else State.PREPARE_ABORT
        epochs = (asked.producer_epoch, asked.producer_epoch + 1)
        if self._process.is_up:
            found = [t for t in self._durable(asked.producer_id) if t.state is wanted and t.epoch in epochs]
            must(bool(found), "TI12", f"{asked.transactional_id}: an end was answered, {wanted.text} is not durable")


def _lasting(transaction: Transaction) -> tuple[object, ...]:
    """Return the part of a transaction that the log keeps."""
    of = transaction
    return (of.producer_id, of.epoch, of.state, of.partitions, of.start_ms, of.timeout_ms, of.updated_ms)
