"""Crash at every disk operation, by every model, and again during recovery: what was promised is there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from partita.log.compaction import plan_compaction
from partita.log.log_config import Durability, LogConfig
from partita.log.partition_log import PartitionLog
from partita.log.storage import StorageError, StorageFull
from partita.records.batch import iter_batches
from support.log.faulty_storage import CrashModel, FaultyStorage, SimulatedCrash
from support.log.logs import DIRECTORY, at, install_compacted, open_log, pairs, recovered, served

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100)
MODELS = [model for model in CrashModel if model is not CrashModel.COLD_FLIP]


@dataclass
class Promises:
    """What clients were told: `sent` may be there, `acknowledged` must be."""

    sent: list[tuple[int, str]] = field(default_factory=list)
    acknowledged: int = 0
    log_start: int = 0
    keys: dict[str, str | None] = field(default_factory=dict)


def work(storage: FaultyStorage, promises: Promises, durability: Durability, *, compacted: bool) -> None:
    """Appends, syncs, rolls, an epoch change, deleted records, retention or compaction, a clean stop."""
    config = CONFIG._replace(compact=compacted, delete=not compacted, delete_retention_ms=0)
    log = open_log(storage, config, durability)
    for i in range(14):
        key, value = f"k{i % 3}", None if compacted and i == 9 else f"v{i}"
        promises.sent.append((i, value or ""))
        log.append(pairs((key, value), ms=i), i // 5, at(i))
        promises.keys[key] = value
        if durability is Durability.OS or i % 3 == 2:
            log.flush(at(i))
            promises.acknowledged = i + 1
        if i == 10:
            _tidy_up(log, promises, compacted=compacted)
    log.close()
    promises.acknowledged = 14


def _tidy_up(log: PartitionLog, promises: Promises, *, compacted: bool) -> None:
    if compacted:
        compact(log)
    else:
        log.delete_records_before(5)
        log.flush(at(10))
        promises.log_start = 5
        log.delete_old_segments(at(10))


def operations(durability: Durability, *, compacted: bool) -> int:
    storage = FaultyStorage()
    work(storage, Promises(), durability, compacted=compacted)
    return storage.operations


def check(storage: FaultyStorage, promises: Promises, durability: Durability) -> None:
    log = recovered(storage, CONFIG, durability)
    found = dict(served(log, log.log_start_offset))
    sent = dict(promises.sent)
    # D2: a prefix of what was sent, cut at a batch boundary.
    assert all(sent[offset] == (value or "") for offset, value in found.items())
    end = log.log_end_offset
    assert promises.acknowledged <= end <= len(promises.sent)
    assert log.log_start_offset >= min(promises.log_start, end)
    # Every acknowledged offset can be asked for, and the epochs tell where they ended.
    assert list(range(log.log_start_offset, end)) == sorted(found)
    headers = [h for h, _ in iter_batches(log.read(log.log_start_offset, 1 << 20))]
    assert all(header.partition_leader_epoch == header.base_offset // 5 for header in headers)
    for epoch in {header.partition_leader_epoch for header in headers}:
        assert log.epoch_end_offset(epoch) == (epoch, min(5 * (epoch + 1), end))


@pytest.mark.parametrize("model", MODELS)
def test_after_a_crash_at_any_operation_acknowledged_records_are_there(model: CrashModel) -> None:
    """D1, D2, D3, D5: policy sync, every operation, every model; recovery is interrupted too."""
    choose = Random(f"sync {model}").randrange
    for at_operation in range(1, operations(Durability.SYNC, compacted=False) + 1):
        storage, promises = FaultyStorage(), Promises()
        storage.crash_at = at_operation
        with pytest.raises(SimulatedCrash):
            work(storage, promises, Durability.SYNC, compacted=False)
        survived = storage.after_crash(model, choose)
        again = crash_during_recovery(survived, model, choose)
        check(survived, promises, Durability.SYNC)
        check(again, promises, Durability.SYNC)


def crash_during_recovery(survived: FaultyStorage, model: CrashModel, choose: object) -> FaultyStorage:
    """Start on a copy of this disk, crash somewhere in recovery, and return what is left then."""
    pick = choose if callable(choose) else None
    assert pick is not None
    copy = survived.after_crash(CrashModel.EVERYTHING, pick)
    copy.crash_at = 1 + pick(6)
    with contextlib.suppress(SimulatedCrash):
        recovered(copy, CONFIG, Durability.SYNC)
    return copy.after_crash(model, pick)


def test_after_a_kill_everything_written_is_there() -> None:
    """D1 under `os`: a killed process loses nothing that was acknowledged."""
    choose = Random("os").randrange
    for at_operation in range(1, operations(Durability.OS, compacted=False) + 1):
        storage, promises = FaultyStorage(), Promises()
        storage.crash_at = at_operation
        with pytest.raises(SimulatedCrash):
            work(storage, promises, Durability.OS, compacted=False)
        check(storage.after_crash(CrashModel.EVERYTHING, choose), promises, Durability.OS)


@pytest.mark.parametrize("model", MODELS)
def test_compaction_survives_a_crash_at_each_step(model: CrashModel) -> None:
    """D11, S29: the newest value of a key is never lost, and nothing deleted comes back."""
    choose = Random(f"compaction {model}").randrange
    for at_operation in range(1, operations(Durability.SYNC, compacted=True) + 1):
        storage, promises = FaultyStorage(), Promises()
        storage.crash_at = at_operation
        with pytest.raises(SimulatedCrash):
            work(storage, promises, Durability.SYNC, compacted=True)
        log = recovered(storage.after_crash(model, choose), CONFIG._replace(compact=True), Durability.SYNC)
        replayed: dict[str, str | None] = {}
        for offset, value in served(log):
            replayed[f"k{offset % 3}"] = value
        durable: dict[str, str | None] = {}
        for offset, value in promises.sent[: log.log_end_offset]:
            durable[f"k{offset % 3}"] = value or None
        assert log.log_end_offset >= promises.acknowledged
        assert {k: v for k, v in replayed.items() if v} == {k: v for k, v in durable.items() if v}


class NarrowDisk(FaultyStorage):
    """A disk that has no room, or no file descriptor, for the operation `refused`, whatever it is."""

    refused = 0

    def step(self, what: str, name: str, *, room_for: int = 0) -> None:
        if self.operations + 1 == self.refused:
            self.operations += 1
            raise StorageFull(f"{name}: no room to {what}")
        super().step(what, name, room_for=room_for)

    def refuse(self, number: int, then: Callable[[], object]) -> bool:
        """Run this with its operation of this number (from 1) refused; whether it got there."""
        last, self.refused = self.operations + number, self.operations + number
        with contextlib.suppress(StorageFull):
            then()
        self.refused = 0
        return self.operations >= last


@pytest.mark.parametrize("goes_on", [False, True], ids=["then a crash", "then more compactions"])
def test_a_compaction_that_a_full_disk_stops_at_any_step_loses_nothing(*, goes_on: bool) -> None:
    """D8, D11: a swap half done is finished before anything else, by the next compaction or the next start.

    The second segment becomes empty, and the first ends with a gap, which must not look like a lost end.
    """
    config = CONFIG._replace(compact=True, delete=False, delete_retention_ms=0)
    choose, stopped = Random("full").randrange, 0
    for first in range(1, 60):
        disk = NarrowDisk()
        log, promised = open_log(disk, config, Durability.SYNC), Newest()
        for i in range(12):
            promised.write(log, "kept" if i == 0 else f"k{i % 2}", i)
        log.roll(at(12))
        log.flush(at(12))
        stopped += disk.refuse(first, partial(compact, log))
        promised.check(log)
        if goes_on:
            for i in range(12, 20):
                promised.write(log, "late" if i == 12 else f"k{i % 2}", i)
            log.flush(at(20))
            disk.refuse(1 + choose(20), partial(compact, log))
            promised.check(log)
            compact(log)
            promised.check(log)
            assert not [name for name in disk.list(DIRECTORY) if name.endswith(".swap")]
        for model in MODELS:
            again = NarrowDisk(disk.after_crash(model, choose).live)
            again.refuse(1 + choose(12), partial(recovered, again, config, Durability.SYNC))
            after = recovered(again, config, Durability.SYNC)
            promised.check(after)
            compact(after)
            promised.check(after)
    assert 10 < stopped < 59, "every step was refused"


class Newest:
    """The newest value of each key that was written."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[int, str]] = {}

    def write(self, log: PartitionLog, key: str, number: int) -> None:
        self.of[key] = (log.append(pairs((key, f"v{number}")), 0, at(number)).base_offset, f"v{number}")

    def check(self, log: PartitionLog) -> None:
        found = dict(served(log))
        assert [found.get(offset) for offset, _ in self.of.values()] == [value for _, value in self.of.values()]


def compact(log: PartitionLog) -> None:
    plan = plan_compaction(log, at(20), force=True)
    if plan is not None:
        log.flush(at(20))
        plan.run()
        install_compacted(log, plan)


def test_a_failed_sync_ends_the_log() -> None:
    """D7: no retry; the kernel may have dropped the pages. What was served before stays readable."""
    storage = FaultyStorage()
    log = open_log(storage, CONFIG, Durability.SYNC)
    log.append(pairs(("a", "1")), 0, at(0))
    log.flush(at(0))
    log.append(pairs(("a", "2")), 0, at(0))
    storage.fail_syncs = {storage.syncs + 1}
    with pytest.raises(StorageError):
        log.flush(at(0))
    assert log.failure is not None
    assert served(log) == [(0, "1")]
    with pytest.raises(StorageError):
        log.append(pairs(("a", "3")), 0, at(0))
    log.close()
    assert served(open_log(storage.after_crash(CrashModel.NOTHING, lambda n: 0), CONFIG)) == [(0, "1")]


def test_a_full_disk_refuses_appends_until_there_is_room_again() -> None:
    """D8: nothing is half written, reads go on, and no restart is needed."""
    storage = FaultyStorage()
    log = open_log(storage, CONFIG)
    log.append(pairs(("a", "1")), 0, at(0))
    storage.capacity_bytes = 100
    for _ in range(3):
        with pytest.raises(StorageFull):
            log.append(pairs(("a", "2")), 0, at(0))
        assert served(log) == [(0, "1")]
    storage.capacity_bytes = None
    assert log.append(pairs(("a", "3")), 0, at(0)).base_offset == 1


def test_a_full_disk_while_rolling_refuses_and_recovers() -> None:
    """D8: creating files may fail just as well."""
    storage = FaultyStorage()
    log = open_log(storage, CONFIG)
    for i in range(3):
        log.append(pairs(("a", str(i))), 0, at(0))
    for first in range(1, 12):
        storage.fail_operations = {storage.operations + first}
        try:
            log.roll(at(0))
        except StorageError:
            assert served(log)[:3] == [(i, str(i)) for i in range(3)]
            log.failure = None
        storage.fail_operations = set()
        offset = log.append(pairs(("a", "x")), 0, at(0)).base_offset
        assert open_log(storage.after_crash(CrashModel.EVERYTHING, lambda n: 0)).log_end_offset == offset + 1


def test_loss_under_os_is_at_most_what_was_not_synced() -> None:
    """D3: after a power loss under `os` the log is a prefix that reaches at least to the last sync."""
    for model in MODELS:
        choose = Random(f"loss {model}").randrange
        for _ in range(20):
            storage = FaultyStorage()
            log = open_log(storage, CONFIG)
            for i in range(3):
                log.append(pairs(("k", f"v{i}")), 0, at(i))
            log.flush(at(3))
            for i in range(3, 9):
                log.append(pairs(("k", f"v{i}")), 0, at(i))
            found = served(open_log(storage.after_crash(model, choose), CONFIG, was_clean=False))
            assert found == [(i, f"v{i}") for i in range(len(found))]
            assert len(found) >= 3


@pytest.mark.case("BM-170")
def test_a_reader_of_the_lost_tail_learns_of_the_cut() -> None:
    """D5, BM-170: after an unclean start the next leader epoch begins at the cut."""
    storage = FaultyStorage()
    log = open_log(storage, LogConfig())
    for i in range(6):
        log.append(pairs(("k", f"old{i}")), 0, at(i))
        if i == 3:
            log.flush(at(i))
    after = open_log(storage.after_crash(CrashModel.NOTHING, lambda n: 0), LogConfig(), was_clean=False)
    assert not after.report.was_clean
    assert after.log_end_offset == 4
    assert after.epoch_end_offset(0, current_epoch=1) == (0, 4)
    for i in range(4):
        after.append(pairs(("k", f"new{i}")), 1, at(i))
    assert after.epoch_end_offset(0, current_epoch=1) == (0, 4)
    assert after.epoch_at(5) == 1


def test_a_directory_without_any_segment_never_gives_an_offset_twice() -> None:
    storage = FaultyStorage()
    log = open_log(storage, CONFIG._replace(retention_bytes=0))
    for i in range(9):
        log.append(pairs(("k", str(i))), 0, at(i))
    log.delete_old_segments(at(9))
    log.flush(at(9))
    for name in storage.list(DIRECTORY):
        if name.endswith(".log"):
            storage.unlink(f"{DIRECTORY}/{name}")
    assert open_log(storage, CONFIG).log_end_offset == 9
