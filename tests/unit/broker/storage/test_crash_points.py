"""Every storage operation of a broker's disk side, crashed at or failed in every way (issue 9.4, faults.md 7.4)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from random import Random

import pytest

from partita.log.log_config import Durability
from partita.log.storage import StorageError
from support.log.faulty_storage import CrashModel, FaultyStorage, SimulatedCrash
from support.log.store_world import Ledger, StoreWorld, check, work

DURABILITIES = [Durability.OS, Durability.SYNC]
Turns = Callable[[Durability, int, int], list[int]]
LOST = {
    "lost": [CrashModel.NOTHING],
    "torn": [CrashModel.PREFIX, CrashModel.TORN],
    "reordered": [CrashModel.SECTORS, CrashModel.ZEROS, CrashModel.NAMES],
    "killed": [CrashModel.EVERYTHING],
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of unclean starts say so; nobody reads it here."""
    caplog.set_level(logging.CRITICAL, "partita.broker")


class FilmedStorage(FaultyStorage):
    """A disk that keeps what a crash at each of its operations would leave: the disk, and what was promised by then."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.crashes: list[tuple[FaultyStorage, Ledger]] = []

    def step(self, what: str, name: str, *, room_for: int = 0) -> None:
        left = FaultyStorage(self.durable)
        left.journal, left.trace = self.journal.copy(), self.trace[-3:]
        self.crashes.append((left, self.ledger.copy()))
        super().step(what, name, room_for=room_for)


def filmed(durability: Durability) -> FilmedStorage:
    """The disk of the whole workload. So what comes before a crash runs once, and not once for each crash."""
    disk = FilmedStorage()
    work(StoreWorld(disk, durability, disk.ledger))
    return disk


@pytest.fixture
def turns(pytestconfig: pytest.Config) -> Turns:
    """Numbers of operations, the last one among them: each meets one durability in turn, with `--slow` both.

    Until an operation fails, all that happens is the same in both.
    """
    is_slow = pytestconfig.getoption("--slow")

    def numbers(durability: Durability, first: int, last: int) -> list[int]:
        turn = durability is Durability.SYNC
        return [k for k in range(first, last + 1) if is_slow or (k + k // 8) % 2 == turn]

    return numbers


def test_the_workload_is_the_same_in_both_durabilities() -> None:
    one, other = map(filmed, DURABILITIES)
    assert (one.trace, one.live, one.durable, one.ledger) == (other.trace, other.live, other.durable, other.ledger)
    assert len(one.crashes) == one.operations == len(one.trace)


def operations(durability: Durability) -> int:
    return len(filmed(durability).crashes)


def restart(disk: FaultyStorage, durability: Durability, ledger: Ledger, *, power_lost: bool) -> None:
    """Start, check, stop in order, and start again: nothing is left to be done or cut. (D10)"""
    world = StoreWorld(disk, durability, ledger.copy())
    check(world, power_lost=power_lost)
    world.close()
    again = StoreWorld(disk, durability, ledger)
    assert not again.store.unclean
    assert [len(topic.partitions) for topic in again.catalogue] == [len(topic.partitions) for topic in world.catalogue]
    for log in filter(None, again.catalogue.every_log()):
        assert (log.report.bytes_cut, log.report.segments_checked) == (0, 0)


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("how", LOST)
def test_a_crash_at_any_operation_keeps_every_promise(
    how: str, durability: Durability, turns: Turns, pytestconfig: pytest.Config
) -> None:
    """D1 to D5, D10, D11: restarted and checked; sometimes it crashes once more, just after the start.

    Each operation meets one of the models in turn, with `--slow` all of them.
    """
    models, is_slow = LOST[how], pytestconfig.getoption("--slow")
    choose = Random(f"{how} {durability}").randrange
    crashes = filmed(durability).crashes
    points = 0
    for k in turns(durability, 1, len(crashes)):
        disk, ledger = crashes[k - 1]
        for model in models if is_slow else [models[(k + k // 4) % len(models)]]:
            power_lost = model is not CrashModel.EVERYTHING
            with at_point(k, model, disk):
                restart(disk.after_crash(model, choose), durability, ledger, power_lost=power_lost)
                if k % 4 == 0:
                    again, told = crash_after_start(disk.after_crash(model, choose), durability, ledger, model, choose)
                    restart(again, durability, told, power_lost=power_lost)
            points += 1
    told_points(how, durability, points, len(crashes))


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_error_of_any_operation_takes_the_directory_offline(durability: Durability, turns: Turns) -> None:
    """D7, B3: EIO. Nothing is acknowledged from then on, no mark of a clean stop is left, and nothing is lost."""
    choose = Random(f"error {durability}").randrange
    count = operations(durability)
    points = 0
    for k in turns(durability, 1, count):
        disk = FaultyStorage()
        disk.fail_operations = {k}
        ledger = Ledger()
        with at_point(k, "EIO", disk):
            try:
                world = StoreWorld(disk, durability, ledger)
                work(world)
            except StorageError:
                assert k <= operations_of_start(durability)
            else:
                assert world.store.failure is not None
                # Syncing the name of the mark is the last operation: everything else is durable by then.
                assert "clean" not in disk.list("") or k == count
            restart(disk.after_crash(CrashModel.EVERYTHING, choose), durability, ledger, power_lost=False)
        points += 1
    told_points("EIO", durability, points, count)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_failed_sync_that_drops_what_was_written_loses_no_promise(durability: Durability, turns: Turns) -> None:
    """D7: the kernel drops the pages and reports success next time; nobody may ask it again."""
    choose = Random(f"sync error {durability}").randrange
    syncs = filmed(durability).syncs
    points = 0
    for k in turns(durability, 1, syncs):
        failing = FaultyStorage()
        failing.fail_syncs = {k}
        ledger = Ledger()
        with at_point(k, "a failed sync", failing):
            with contextlib.suppress(StorageError):
                world = StoreWorld(failing, durability, ledger)
                work(world)
                assert world.store.failure is not None
            restart(failing.after_crash(CrashModel.EVERYTHING, choose), durability, ledger, power_lost=True)
        points += 1
    told_points("failed sync", durability, points, syncs)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_disk_without_room_at_any_operation_is_no_failure(durability: Durability, turns: Turns) -> None:
    """D8, B1: ENOSPC once and for good, in turn. What was promised is there, while the disk is full too."""
    choose = Random(f"full {durability}").randrange
    count = operations(durability)
    points = 0
    for k in turns(durability, 1 + operations_of_start(durability), count):
        lasting = (1, 10_000)[(k // 2 + (durability is Durability.SYNC)) % 2]
        disk = FaultyStorage()
        disk.full_operations = range(k, k + lasting)
        ledger = Ledger()
        with at_point(k, f"no room, {lasting} operations long", disk):
            world = StoreWorld(disk, durability, ledger)
            work(world)
            assert world.store.failure is None
            left = disk.after_crash(CrashModel.EVERYTHING, choose)
            if lasting == 10_000:
                left.full_operations = range(1, 1_000_000)
                full = StoreWorld(left, durability, ledger.copy())
                assert all(log.failure is None for log in filter(None, full.catalogue.every_log()))
                full.close()
                assert full.store.failure is None
                left = left.after_crash(CrashModel.EVERYTHING, choose)
            restart(left, durability, ledger, power_lost=False)
        points += 1
    told_points("no room", durability, points, count)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_comes_while_an_operation_is_slow_is_not_promised_by_it(durability: Durability, turns: Turns) -> None:
    """B10: records and topics that come while the disk works on a sync belong to the next one; then power is lost."""
    choose = Random(f"slow {durability}").randrange
    count = operations(durability)
    points = 0
    for k in turns(durability, 1, count):
        disk, ledger = FaultyStorage(), Ledger()
        with at_point(k, "slow", disk), contextlib.suppress(SimulatedCrash):
            world = StoreWorld(disk, durability, ledger)
            came = slow(disk, world, k, choose)
            work(world)
        for model in (CrashModel.NOTHING, CrashModel.SECTORS, CrashModel.NAMES) if came else ():
            with at_point(k, model, disk):
                restart(disk.after_crash(model, choose), durability, ledger, power_lost=True)
        points += bool(came)
    told_points("slow", durability, points, count)


def slow(disk: FaultyStorage, world: StoreWorld, k: int, choose: Callable[[int], int]) -> list[int]:
    """Let records and topics come during operation `k`, and power go soon after; the list says whether they came."""
    came: list[int] = []

    def meanwhile() -> None:
        if not world.is_in_worker:
            raise SimulatedCrash("nothing can come meanwhile")
        came.append(k)
        world.is_in_worker = False
        for i in range(3):
            world.produce("plain", 0, f"slow{i}", "while the disk was slow")
            world.produce("compact", 0, f"k{i}", "while the disk was slow")
        world.create_unsynced(1)
        world.is_in_worker = True
        disk.crash_at = disk.operations + 1 + choose(20)

    disk.slow_operation = k
    disk.meanwhile = meanwhile
    return came


def told_points(how: str, durability: Durability, points: int, operations: int) -> None:
    print(f"{how}, {durability.value}: {points} points in {operations} operations")
    assert points > 0


def operations_of_start(durability: Durability) -> int:
    disk = FaultyStorage()
    StoreWorld(disk, durability, Ledger())
    return disk.operations


@contextlib.contextmanager
def at_point(k: int, how: object, disk: FaultyStorage) -> Iterator[None]:
    """Whatever goes wrong inside says where."""
    try:
        yield
    except Exception as error:
        error.add_note(f"operation {k}, {how}; the last ones of the disk: {disk.trace[-3:]}")
        raise


def crash_after_start(
    left: FaultyStorage, durability: Durability, ledger: Ledger, model: CrashModel, choose: Callable[[int], int]
) -> tuple[FaultyStorage, Ledger]:
    """Start, take records, and crash at some operation of that; return the disk and what was promised by then."""
    ledger = ledger.copy()
    left.crash_at = 1 + choose(20)
    with contextlib.suppress(SimulatedCrash):
        world = StoreWorld(left, durability, ledger)
        trim(world, ledger)
        for i in range(3):
            world.produce("plain", 0, f"again{i}", "after the first crash")
        world.sync()
    return left.after_crash(model, choose), ledger


def trim(world: StoreWorld, ledger: Ledger) -> None:
    """What the first crash has lost is not expected any more."""
    for topic in world.catalogue:
        for partition in topic.partitions:
            log_id = (topic.topic_id.hex(), partition.index)
            end = 0 if partition.is_untouched else partition.log.log_end_offset
            ledger.written[log_id] = end
            ledger.durable[log_id] = min(end, ledger.durable.get(log_id, 0))
            del ledger.sent.setdefault(log_id, [])[end:]
