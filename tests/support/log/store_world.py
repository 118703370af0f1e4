"""A store with its catalogue on the simulated disk, a ledger of what clients were told, and the checks of a restart."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from partita.broker.config import BrokerConfig
from partita.broker.options import Value
from partita.broker.storage.data_dir import DiskStore
from partita.broker.storage.upkeep import SyncRound
from partita.broker.topics.catalogue import Partition, Topic, TopicCatalogue
from partita.log.compaction import plan_compaction
from partita.log.log_config import Durability
from partita.log.partition_log import PartitionLog
from partita.log.storage import StorageError
from support.log.faulty_storage import FaultyStorage
from support.log.logs import at, install_compacted, pairs, served

SETTINGS: dict[str, Value] = {"internal.segment.bytes": 300, "index.interval.bytes": 100, "retention.ms": -1}
COMPACTED: dict[str, Value] = {**SETTINGS, "cleanup.policy": ("compact",), "delete.retention.ms": 0}
State = tuple[int, Value | None] | None
"""Of a topic: its partitions and its retention.bytes; None while there is no such topic."""
Log = tuple[str, int]
"""Topic id and partition."""


class SimulatedStore(DiskStore):
    """A data directory on the simulated disk. Nobody else can lock it."""

    _at_once = 1

    def __init__(self, disk: FaultyStorage, durability: Durability) -> None:
        self.root = "/simulated"
        self.description = "simulated"
        self._lock = os.open(os.devnull, os.O_RDONLY)
        self._small = self._groups = self._data = disk  # type: ignore[assignment]  # has what the store uses
        super(DiskStore, self).__init__(disk, disk, durability)
        self._begin("format" not in disk.list(""))

    def close(self) -> None:
        with suppress(OSError):
            super().close()


@dataclass
class Ledger:
    """What was tried, and what of that was promised."""

    states: dict[str, list[State]] = field(default_factory=dict)
    """Per topic name: absent, and every state it was given since."""
    promised_state: dict[str, int] = field(default_factory=dict)
    sent: dict[Log, list[tuple[str, str | None]]] = field(default_factory=dict)
    """(key, value) by offset; the last one may never have been written."""
    written: dict[Log, int] = field(default_factory=dict)
    """How many were taken by the log: after a kill they are there."""
    durable: dict[Log, int] = field(default_factory=dict)
    """How many the broker calls durable: after a power loss they are there."""
    starts: dict[Log, int] = field(default_factory=dict)
    """Log start offsets that were promised."""
    highest_starts: dict[Log, int] = field(default_factory=dict)
    """Log start offsets that were asked for."""
    epochs: dict[tuple[Log, int, int], tuple[str, str | None]] = field(default_factory=dict)
    """What was written at (log, leader epoch, offset)."""
    producer_ids: set[int] = field(default_factory=set)
    topics: int = 0

    def copy(self) -> Ledger:
        """Another one that says the same; what is written into it changes nothing here."""
        fields = {name: _copied(value) for name, value in vars(self).items()}
        return Ledger(**fields)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: list(each) if isinstance(each, list) else each for key, each in value.items()}
    return set(value) if isinstance(value, set) else value


class StoreWorld:
    """One life of a broker's disk side, moved step by step. What the disk refuses is refused, as handlers do."""

    def __init__(self, disk: FaultyStorage, durability: Durability, ledger: Ledger) -> None:
        self.disk = disk
        self.ledger = ledger
        self.ms = 0
        self.refused = 0
        self.is_in_worker = False
        """Whether what happens now happens on the thread of the syncs."""
        self.store = SimulatedStore(disk, durability)
        self.catalogue = TopicCatalogue(self.store, BrokerConfig({}), self._new_topic_id)

    def _new_topic_id(self) -> bytes:
        self.ledger.topics += 1
        return self.ledger.topics.to_bytes(16, "big")

    # -- what clients ask for --------------------------------------------------------------------------------------

    def create(self, name: str, partitions: int, settings: dict[str, Value]) -> None:
        self.ledger.states.setdefault(name, [None])
        if self._topic(name) is not None:
            return
        state = (partitions, settings.get("retention.bytes"))
        self._change(name, state, lambda: self.catalogue.create(name, [[1]] * partitions, settings))

    def create_unsynced(self, count: int) -> None:
        """Topics whose lines are longer than a sector together, and nobody waits for them."""
        for i in range(count):
            name = f"unsynced-{i}-" + "x" * 200
            if self._topic(name) is not None:
                continue
            self.ledger.states.setdefault(name, [None]).append((1, None))
            self._try(partial(self.catalogue.create, name, [[1]], {}))

    def grow(self, name: str, more: int) -> None:
        topic = self._topic(name)
        if topic is not None:
            state = (len(topic.partitions) + more, topic.config.own.get("retention.bytes"))
            self._change(name, state, lambda: self.catalogue.add_partitions(topic, [[1]] * more))

    def configure(self, name: str, retention_bytes: int) -> None:
        topic = self._topic(name)
        if topic is not None:
            own = {**topic.config.own, "retention.bytes": retention_bytes}
            self._change(name, (len(topic.partitions), retention_bytes), lambda: self.catalogue.configure(topic, own))

    def delete(self, name: str) -> None:
        topic = self._topic(name)
        if topic is not None:
            self._change(name, None, lambda: self.catalogue.delete([topic]))

    def _change(self, name: str, state: State, act: Callable[[], object]) -> None:
        history = self.ledger.states[name]
        history.append(state)
        if self._try(act) and self.sync():
            self.ledger.promised_state[name] = len(history) - 1

    def elect(self, name: str, index: int) -> None:
        partition = self._partition(name, index)
        if partition is not None:
            self._try(lambda: self.catalogue.elect(partition, 1, [1]))
            self.sync()

    def producer_id(self) -> None:
        """Told once it is durable."""
        given: list[int] = []
        if self._try(lambda: given.append(self.catalogue.allocate_producer_id())) and self.sync():
            self.ledger.producer_ids.update(given)

    def produce(self, name: str, index: int, key: str, value: str | None) -> None:
        partition = self._partition(name, index)
        if partition is None:
            return
        log_id = _log_id(partition)
        sent = self.ledger.sent.setdefault(log_id, [])
        del sent[self.ledger.written.get(log_id, 0) :]
        sent.append((key, value))
        self.ledger.epochs[log_id, partition.leader_epoch, len(sent) - 1] = (key, value)
        self.ms += 1
        was_failed = self.store.failure is not None
        batch = pairs((key, value), ms=self.ms)
        if self._try(lambda: partition.log.append(batch, partition.leader_epoch, at(self.ms))):
            self.ledger.written[log_id] = len(sent)
        elif was_failed or self.store.failure is None:
            del self.ledger.epochs[log_id, partition.leader_epoch, len(sent) - 1]

    def delete_records(self, name: str, index: int, before: int) -> None:
        partition = self._partition(name, index)
        if partition is None or partition.is_untouched or partition.log.high_watermark < before:
            return
        log_id = _log_id(partition)
        self.ledger.highest_starts[log_id] = max(before, self.ledger.highest_starts.get(log_id, 0))
        if self._try(lambda: partition.log.delete_records_before(before)) and self.sync():
            self.ledger.starts[log_id] = before

    # -- what upkeep does ------------------------------------------------------------------------------------------

    def sync(self) -> bool:
        """One round; whether everything written so far is durable now."""
        if self.store.failure is not None:
            return False
        chores, self.store.chores = self.store.chores, []
        logs = list(self.store.logs.items())
        begun = [(log, ticket) for _, log in logs if (ticket := log.begin_sync(at(self.ms))) is not None]
        work = SyncRound(chores, begun)
        self.is_in_worker = True
        work.run()
        self.is_in_worker = False
        for _ in work.finish(self.store):
            pass
        for directory, log in logs:
            _, topic_id, index = directory.split("/")
            if self.store.failure is None:
                self.ledger.durable[topic_id, int(index)] = log.durable_offset
        has_more = self.store.chores or any(log.has_chores for _, log in logs)
        return self.store.failure is None and not has_more

    def retain(self) -> None:
        self.store.refresh_configs(self.store.logs.values())
        for directory, log in tuple(self.store.logs.items()):
            _, topic_id, index = directory.split("/")
            if log.failure is None:
                self._try(partial(log.delete_old_segments, at(self.ms)))
                self.ledger.highest_starts[topic_id, int(index)] = log.log_start_offset
        self.sync()

    def compact(self, name: str) -> None:
        partition = self._partition(name, 0)
        if partition is None or partition.opened_log is None or partition.log.failure is not None:
            return
        log = partition.log

        def act() -> None:
            plan = plan_compaction(log, at(self.ms), force=True)
            if plan is not None and self.sync():
                plan.run()
                install_compacted(log, plan)

        self._try(act)

    def close(self) -> None:
        if self.store.failure is None:
            self.sync()
        self.catalogue.close()

    # ------------------------------------------------------------------------------------------------------------

    def _try(self, act: Callable[[], object]) -> bool:
        try:
            act()
        except StorageError as error:
            self.store.note_error(error)
            self.refused += 1
            return False
        return True

    def _topic(self, name: str) -> Topic | None:
        return self.catalogue.get(name)

    def _partition(self, name: str, index: int) -> Partition | None:
        return self.catalogue.partition(name, index)


def _log_id(partition: Partition) -> Log:
    return partition.topic.topic_id.hex(), partition.index


def work(world: StoreWorld) -> None:
    """About sixty steps: topics come, grow, change and go; segments roll; retention, compaction, elections; a stop."""
    world.create("plain", 1, SETTINGS)
    world.create("compact", 1, COMPACTED)
    world.create("gone", 2, SETTINGS)
    world.producer_id()
    for i in range(10):
        world.produce("plain", 0, f"k{i}", f"v{i}")
        world.produce("compact", 0, f"k{i % 3}", None if i == 6 else f"v{i}")
        if i < 3:
            world.produce("gone", 1, "k", f"v{i}")
        if i % 3 == 2:
            world.sync()
        if i == 4:
            world.elect("plain", 0)
            world.grow("plain", 1)
            world.configure("compact", 1 << 20)
    world.create_unsynced(3)
    world.produce("plain", 0, "k", "with unsynced topics")
    world.delete("gone")
    world.compact("compact")
    world.delete_records("plain", 0, 4)
    world.create("gone", 1, SETTINGS)
    world.produce("gone", 0, "k", "new")
    world.produce("plain", 1, "k", "other")
    world.configure("plain", 400)
    world.retain()
    for i in range(10, 13):
        world.produce("plain", 0, f"k{i}", f"v{i}")
        world.produce("compact", 0, f"k{i % 3}", f"v{i}")
    world.producer_id()
    world.close()


def check(world: StoreWorld, *, power_lost: bool) -> None:
    """A restarted world keeps every promise of its ledger: D1 to D5, D11, and the catalogue is whole."""
    ledger = world.ledger.copy()
    for log in filter(None, world.catalogue.every_log()):
        assert log.failure is None
    assert world.sync(), world.store.failure
    for name, history in ledger.states.items():
        topic = world.catalogue.get(name)
        state = None if topic is None else (len(topic.partitions), topic.config.own.get("retention.bytes"))
        assert state in history[ledger.promised_state.get(name, 0) :], (name, state, history)
    for topic in world.catalogue:
        for partition in topic.partitions:
            promised = ledger.durable if power_lost else ledger.written
            check_log(world, ledger, partition, promised.get(_log_id(partition), 0))
    given = world.catalogue.allocate_producer_id()
    assert given not in ledger.producer_ids


def check_log(world: StoreWorld, ledger: Ledger, partition: Partition, promised: int) -> None:
    """A prefix of what was sent, with all that was promised, under a leader epoch that nobody has seen. (D2, D5)"""
    log_id = _log_id(partition)
    sent = ledger.sent.get(log_id, [])
    if partition.is_untouched:
        assert promised == 0, f"{log_id}: nothing is left of {promised} records"
        return
    log = partition.log
    found = dict(served(log))
    ends = f"{log.log_start_offset} to {log.log_end_offset}"
    facts = f"{log_id}: {ends}, {promised} of {len(sent)} promised, {sorted(found)} served"
    assert promised <= log.log_end_offset <= len(sent), facts
    assert all(value == sent[offset][1] for offset, value in found.items())
    start = log.log_start_offset
    assert min(ledger.starts.get(log_id, 0), log.log_end_offset) <= start, facts
    # A new log whose names were never synced may have lost its first one; it is no prefix, and nothing was promised.
    assert start <= ledger.highest_starts.get(log_id, 0) or not promised, facts
    if log.config.compact:
        newest = {key: (offset, value) for offset, (key, value) in enumerate(sent[: log.log_end_offset])}
        kept = {sent[offset][0]: (offset, value) for offset, value in found.items()}
        assert {k: v for k, v in kept.items() if v[1]} == {k: v for k, v in newest.items() if v[1]}
    else:
        assert sorted(found) == list(range(start, log.log_end_offset)), facts
    check_next_append(ledger, partition, log, len(sent))


def check_next_append(ledger: Ledger, partition: Partition, log: PartitionLog, sent: int) -> None:
    """The next record gets the next offset, under an epoch under which no other record had it."""
    offset = log.append(pairs(("next", "next"), ms=0), partition.leader_epoch, at(0)).base_offset
    assert offset <= sent
    told = ledger.epochs.get((_log_id(partition), partition.leader_epoch, offset))
    assert told is None, f"{_log_id(partition)}: offset {offset} at epoch {partition.leader_epoch} was {told} before"
