"""Transaction markers go when nothing is left for them to end, and in time for every reader. (transactions.md 16)"""

from __future__ import annotations

from typing import Any

import pytest

from partita.log.compaction import plan_compaction, swap_group
from partita.log.log_config import LogConfig
from partita.log.partition_log import PartitionLog
from partita.log.producer_state import Aborted, bytes_of, read_marker
from partita.log.storage import MemoryStorage
from partita.records.batch import ABORT, COMMIT, build_marker, iter_batches, iter_records
from support.log.faulty_storage import FaultyStorage
from support.log.logs import SMALL, at, install_compacted, open_log, pairs

COMPACT = SMALL._replace(compact=True, delete=False, delete_retention_ms=1000)


def put(log: PartitionLog, key: str, value: str, producer: int = 5, epoch: int = 0, sequence: int = 0) -> None:
    fields: dict[str, Any] = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    log.append(pairs((key, value), is_transactional=True, **fields), 0, at(0))


def end(log: PartitionLog, kind: int = COMMIT, producer: int = 5, epoch: int = 0) -> None:
    marker = build_marker(kind, timestamp=0, producer_id=producer, producer_epoch=epoch, coordinator_epoch=0)
    log.append(marker, 0, at(0))


def compact(log: PartitionLog, ms: int) -> None:
    """Clean, with a record of another producer that makes it worth while."""
    log.append(pairs(("other", str(ms)), ms=ms), 0, at(ms))
    plan = plan_compaction(log, at(ms), force=True)
    assert plan is not None
    log.flush(at(ms))
    plan.run()
    install_compacted(log, plan)


def markers(log: PartitionLog) -> list[tuple[int, int]]:
    """(offset, type) of the markers that are left."""
    found, offset = [], log.log_start_offset
    while len(chunk := log.read(offset, 1 << 20)):
        for header, batch in iter_batches(chunk):
            offset = header.next_offset
            marker = read_marker(batch) if header.is_control else None
            if marker is not None:
                found.append((header.base_offset, marker[0]))
    return found


def values(log: PartitionLog) -> list[str]:
    """The values of all data records but those of the other producer."""
    found, offset = [], log.log_start_offset
    while len(chunk := log.read(offset, 1 << 20)):
        for header, batch in iter_batches(chunk):
            offset = header.next_offset
            records = () if header.is_control else iter_records(batch)
            found += [bytes_of(r.value).decode() for r in records if bytes_of(r.key) != b"other"]
    return found


@pytest.mark.case("TX-O01")
def test_an_abort_marker_goes_some_time_after_its_records() -> None:
    log = open_log(config=COMPACT)
    put(log, "a", "aborted")
    end(log, ABORT)
    put(log, "a", "committed", sequence=1)
    end(log)
    compact(log, 0)
    assert (values(log), markers(log)) == (["committed"], [(1, ABORT), (3, COMMIT)])
    compact(log, 10)
    compact(log, 900)
    assert markers(log) == [(1, ABORT), (3, COMMIT)]
    compact(log, 1020)
    assert (values(log), markers(log)) == (["committed"], [(3, COMMIT)])


@pytest.mark.case("TX-O02", "TX-O05")
def test_a_commit_marker_goes_when_all_its_records_are_superseded() -> None:
    """KAFKA-13727, KAFKA-14055: whatever the keys of users look like."""
    log = open_log(config=COMPACT)
    put(log, "\0\0\0\1", "old")
    end(log)
    put(log, "\0\0\0\1", "new", sequence=1)
    end(log)
    compact(log, 0)
    assert (values(log), markers(log)) == (["new"], [(1, COMMIT), (3, COMMIT)])
    compact(log, 10)
    compact(log, 5000)
    assert (values(log), markers(log)) == (["new"], [(3, COMMIT)])
    compact(log, 50_000)
    assert markers(log) == [(3, COMMIT)]


@pytest.mark.case("TX-O03")
def test_the_marker_that_is_all_that_is_known_of_a_producer_stays_and_fences() -> None:
    storage = MemoryStorage()
    log = open_log(storage, COMPACT)
    for epoch in range(3):
        put(log, "a", f"v{epoch}", epoch=epoch)
        log.append(
            build_marker(COMMIT, timestamp=0, producer_id=5, producer_epoch=epoch + 1, coordinator_epoch=0),
            0,
            at(0),
            transaction_version=2,
        )
    put(log, "a", "last", producer=6)
    end(log, producer=6)
    for ms in (0, 10, 5000):
        compact(log, ms)
    assert markers(log) == [(5, COMMIT), (7, COMMIT)]
    again = open_log(storage, COMPACT, was_clean=False)
    assert again.producers.producers[5].epoch == 3
    assert again.last_stable_offset == again.high_watermark
    assert again.producers.expire(at(10**9).wall_ms, 1) == 2
    for ms in (10_000, 20_000, 30_000):
        compact(again, ms)
    assert markers(again) == [(7, COMMIT)]


def test_what_was_committed_stays_committed_over_every_cleaning() -> None:
    """TX-O06 in small: the markers of what is superseded are gone, the rest reads as before."""
    log = open_log(config=COMPACT)
    for turn in range(40):
        put(log, f"k{turn % 3}", f"v{turn}", sequence=turn)
        end(log, ABORT if turn % 4 == 3 else COMMIT)
    wanted = ["v36", "v37", "v38"]
    for ms in (0, 10, 5000, 9000, 20_000):
        compact(log, ms)
        assert [value for value in values(log) if value in wanted] == wanted
        assert log.last_stable_offset == log.high_watermark
    assert len(markers(log)) <= 5
    assert values(log) == wanted


@pytest.mark.case("TX-J11", "TX-O01")
def test_an_aborted_transaction_whose_marker_is_gone_hides_nothing() -> None:
    """A reader that is told of it waits for its marker, and drops what the producer has committed since."""
    storage = MemoryStorage()
    log = open_log(storage, COMPACT)
    put(log, "a", "aborted")
    end(log, ABORT)
    put(log, "b", "committed", sequence=1)
    end(log)
    for ms in (1, 2_000, 4_000):
        compact(log, ms)
    assert values(log) == ["committed"]
    assert (1, ABORT) not in markers(log)
    assert log.producers.aborted_between(0, log.log_end_offset) == []
    log.close()
    assert open_log(storage, COMPACT).producers.aborted == []


@pytest.mark.parametrize("config", [COMPACT, SMALL], ids=["still compacted", "not compacted any more"])
def test_a_snapshot_of_before_brings_no_aborted_transaction_back(config: LogConfig) -> None:
    """The process died between the compaction and its next snapshot."""
    storage = MemoryStorage()
    log = open_log(storage, COMPACT)
    put(log, "a", "aborted")
    end(log, ABORT)
    put(log, "b", "committed", sequence=1)
    end(log)
    known = list(log.producers.aborted)
    for ms in (1, 2_000, 4_000):
        compact(log, ms)
    log.producers.aborted = known
    log.close()
    assert open_log(storage, config).producers.aborted == []


def test_passes_that_are_all_killed_bring_no_aborted_transaction_back() -> None:
    """Each replaced its segments, and none lived to store how far it was."""
    storage = MemoryStorage()
    log = open_log(storage, COMPACT)
    put(log, "a", "aborted")
    end(log, ABORT)
    put(log, "b", "committed", sequence=1)
    end(log)
    log.close()
    for ms in (1, 2_000, 4_000):
        log = open_log(storage, COMPACT, was_clean=False)
        assert log.state.cleaned_to == 0
        log.append(pairs(("other", str(ms)), ms=ms), 0, at(ms))
        plan = plan_compaction(log, at(ms), force=True)
        assert plan is not None
        log.flush(at(ms))
        plan.run()
        for group in plan.groups:
            swap_group(log, group)
    again = open_log(storage, COMPACT, was_clean=False)
    assert (1, ABORT) not in markers(again)
    assert again.producers.aborted == []


def test_an_aborted_transaction_whose_marker_stays_is_still_told() -> None:
    log = open_log(MemoryStorage(), COMPACT)
    put(log, "a", "aborted")
    end(log, ABORT)
    compact(log, 1)
    assert [entry.last_offset for entry in log.producers.aborted] == [offset for offset, _ in markers(log)]


def test_many_aborted_transactions_hold_nothing_up() -> None:
    """Each of 5,000 was looked for on the disk while the broker waited, and compared with each batch: 2 s and 25 s."""

    class Counted(list[Aborted]):
        looks = 0

        def __getitem__(self, i: Any) -> Any:
            Counted.looks += 1
            return super().__getitem__(i)

    storage, count = FaultyStorage(), 64
    log = open_log(storage, COMPACT)
    for sequence in range(count):
        put(log, "a", "aborted", sequence=sequence)
        end(log, ABORT)
    put(log, "a", "committed", sequence=count)
    end(log)
    for ms in (0, 10, 5000):
        log.append(pairs(("other", str(ms))), 0, at(ms))
        plan = plan_compaction(log, at(ms), force=True)
        assert plan is not None
        log.flush(at(ms))
        plan.aborted = {producer_id: Counted(ended) for producer_id, ended in plan.aborted.items()}
        plan.run()
        for group in plan.groups:
            new = swap_group(log, group)
            reads = storage.reads
            log.replace_segments(group.segments, new, group.dropped_markers)
            assert storage.reads == reads
        log.cleaned_to(plan.cleaned_to)
    assert (values(log), log.producers.aborted) == (["committed"], [])
    assert Counted.looks <= 3 * count * count.bit_length()


@pytest.mark.case("TX-O04")
def test_nothing_at_or_above_an_open_transaction_is_touched() -> None:
    log = open_log(MemoryStorage(), COMPACT)
    for value in ("old", "new"):
        log.append(pairs(("a", value)), 0, at(0))
    log.roll(at(0))
    put(log, "a", "open")
    first = log.last_stable_offset
    log.roll(at(0))
    for value in ("behind", "behind it"):
        log.append(pairs(("a", value)), 0, at(0))
    compact(log, 1)
    assert first == 2
    assert values(log) == ["new", "open", "behind", "behind it"]
    end(log, COMMIT)
    compact(log, 2)
    assert values(log) == ["behind it"]


@pytest.mark.case("TX-J11")
def test_a_reader_of_the_first_of_many_segments_learns_of_the_abort_in_the_last_one() -> None:
    log = open_log(MemoryStorage(), SMALL._replace(segment_bytes=200))
    for sequence in range(20):
        put(log, "a", f"aborted {sequence}", sequence=sequence)
    end(log, ABORT)
    assert len(log.segments) > 5
    (told,) = log.aborted_transactions(0, log.read(0, 1))
    assert (told.producer_id, told.first_offset, told.last_offset) == (5, 0, 20)


@pytest.mark.case("TX-K07")
def test_a_marker_keeps_its_producer_from_being_forgotten() -> None:
    """KAFKA-9144: only data counted, so the epoch of the coordinator was forgotten early, and could go back."""
    log = open_log(MemoryStorage())
    put(log, "a", "v")
    marker = build_marker(COMMIT, timestamp=5_000, producer_id=5, producer_epoch=0, coordinator_epoch=3)
    log.append(marker, 0, at(5_000))
    assert log.producers.expire(5_999, 1_000) == 0
    assert log.producers.producers[5].coordinator_epoch == 3
    assert log.producers.expire(6_000, 1_000) == 1
