"""Appending and reading: offsets, boundaries, limits, time, epochs, retention."""

from __future__ import annotations

import pytest

from partita.log.log_config import Durability, LogConfig
from partita.log.partition_log import OffsetOutOfRange, PartitionLog
from partita.log.storage import MemoryStorage
from partita.log.timestamp_search import TimestampOffset, first_in
from partita.records.batch import LOG_APPEND_TIME, iter_batches
from support.log.logs import DIRECTORY, SMALL, at, batch, fill, open_log, served


def first_from(log: PartitionLog, timestamp: int) -> TimestampOffset | None:
    """The first record not older than `timestamp`, as ListOffsets finds it."""
    found = (first_in(b, timestamp, log.log_start_offset) for b in log.batches_from_timestamp(timestamp))
    return next((record for record in found if record is not None), None)


def test_a_batch_gets_the_next_offset_and_the_leader_epoch() -> None:
    log = open_log()
    first = log.append(batch("a", "b"), 3, at(0))
    second = log.append(batch("c"), 3, at(1))
    assert (first.base_offset, first.last_offset, second.base_offset) == (0, 1, 2)
    headers = [header for header, _ in iter_batches(log.read(0, 1000))]
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers] == [(0, 3), (2, 3)]


def test_an_append_leaves_the_callers_bytes_alone() -> None:
    log = open_log()
    fill(log, 2)
    given = bytearray(batch("a"))
    before = bytes(given)
    log.append(memoryview(given), 5, at(0))
    assert given == before


def test_everything_appended_is_served_across_segments() -> None:
    log = open_log()
    fill(log, 50)
    assert len(log.segments) > 5
    assert served(log) == [(i, f"v{i}") for i in range(50)]
    assert served(log, 33) == [(i, f"v{i}") for i in range(33, 50)]


@pytest.mark.case("BM-161")
def test_an_offset_inside_a_batch_gets_the_whole_batch() -> None:
    """BM-161: batches [0,1] and [2,3]; fetching 1 gives the first, fetching 3 the second."""
    log = open_log()
    log.append(batch("a", "b"), 0, at(0))
    log.append(batch("c", "d"), 0, at(0))
    for offset, base in ((0, 0), (1, 0), (2, 2), (3, 2)):
        assert next(iter_batches(log.read(offset, 1)))[0].base_offset == base
    assert len(log.read(4, 1000)) == 0


def test_a_read_returns_whole_batches_within_the_limit_and_at_least_one() -> None:
    log = open_log(config=LogConfig())
    fill(log, 10)
    size = len(batch("v0"))
    assert len(log.read(0, 3 * size + size - 1)) == 3 * size
    assert len(log.read(0, 1)) == size
    assert len(log.read(0, size - 1, at_least_one=False)) == 0
    assert len(log.read(8, 1000)) == 2 * size


def test_a_read_stops_before_up_to() -> None:
    log = open_log()
    fill(log, 10)
    offsets = [header.base_offset for header, _ in iter_batches(log.read(0, 10_000, up_to=2))]
    assert offsets == [0, 1]
    assert len(log.read(5, 10_000, up_to=5)) == 0


@pytest.mark.parametrize("offset", [-1, 11])
def test_offsets_outside_the_log_are_refused(offset: int) -> None:
    log = open_log()
    fill(log, 10)
    with pytest.raises(OffsetOutOfRange):
        log.read(offset, 100)


def test_log_append_time_is_stamped_and_answered() -> None:
    log = open_log(config=SMALL._replace(log_append_time=True))
    appended = log.append(batch("a", "b"), 0, at(77))
    assert appended.log_append_time_ms == at(77).wall_ms
    header, _ = next(iter_batches(log.read(0, 1000)))
    assert (header.timestamp_type, header.max_timestamp) == (LOG_APPEND_TIME, at(77).wall_ms)
    assert served(log) == [(0, "a"), (1, "b")]


def test_a_timestamp_finds_the_first_record_that_is_as_young() -> None:
    log = open_log()
    for i, ms in enumerate([10, 30, 20, 40, 40]):
        log.append(batch(f"v{i}", ms=ms), 2, at(i))
    found = {ms: first_from(log, at(ms).wall_ms) for ms in (0, 10, 11, 30, 31, 40, 41)}
    offsets = {ms: entry and entry.offset for ms, entry in found.items()}
    assert offsets == {0: 0, 10: 0, 11: 1, 30: 1, 31: 3, 40: 3, 41: None}
    assert found[31] is not None
    assert (found[31].timestamp, found[31].leader_epoch) == (at(40).wall_ms, 2)


@pytest.mark.parametrize("interval", [0, 100, 4096])
def test_timestamps_are_found_in_any_segment_and_order(interval: int) -> None:
    log = open_log(config=LogConfig(segment_bytes=900, index_interval_bytes=interval))
    stamps = [(i * 37) % 100 for i in range(100)]
    for i, ms in enumerate(stamps):
        log.append(batch(f"v{i}", ms=ms), 0, at(i))
    for ms in range(101):
        expected = next((i for i, stamp in enumerate(stamps) if stamp >= ms), None)
        found = first_from(log, at(ms).wall_ms)
        assert (None if found is None else found.offset) == expected
    assert log.largest_timestamp == at(99).wall_ms


def test_a_timestamp_inside_a_batch_finds_the_record() -> None:
    from partita.records.batch import build_batch

    log = open_log()
    records = [(at(ms).wall_ms, None, b"x", ()) for ms in (5, 9, 7)]
    log.append(build_batch(records, codec=1), 0, at(0))
    assert [found and found.offset for found in (first_from(log, at(ms).wall_ms) for ms in (5, 6, 9, 10))] == [
        0,
        1,
        1,
        None,
    ]


def test_an_empty_log_has_no_largest_timestamp() -> None:
    assert open_log().largest_timestamp == -1


def test_leader_epochs_end_where_the_next_one_starts() -> None:
    log = open_log()
    fill(log, 5, leader_epoch=1)
    fill(log, 5, start=5, leader_epoch=4)
    assert [log.epoch_end_offset(epoch) for epoch in (0, 1, 2, 4, 5, -1)] == [
        (0, 0),
        (1, 5),
        (1, 5),
        (4, 10),
        (-1, -1),
        (-1, -1),
    ]
    assert log.epoch_end_offset(6, current_epoch=6) == (6, 10)
    assert (log.epoch_at(4), log.epoch_at(5)) == (1, 4)


def test_leader_epochs_survive_restart_and_loss_of_the_small_files() -> None:
    storage = MemoryStorage()
    log = open_log(storage)
    fill(log, 20, leader_epoch=1)
    fill(log, 20, start=20, leader_epoch=2)
    log.close()
    assert open_log(storage).epoch_end_offset(1) == (1, 20)
    storage.unlink(f"{DIRECTORY}/partition.state")
    assert open_log(storage).epoch_end_offset(1) == (1, 20)


def test_segments_roll_by_time() -> None:
    log = open_log(config=LogConfig(segment_ms=1000))
    for ms in (0, 900, 1000, 1100, 5000):
        log.append(batch("x"), 0, at(ms))
    assert [segment.base_offset for segment in log.segments] == [0, 3, 4]


def test_retention_by_size_keeps_at_least_what_is_asked() -> None:
    log = open_log(config=SMALL._replace(retention_bytes=1000))
    fill(log, 40)
    log.delete_old_segments(at(40))
    assert 1000 <= log.size_in_bytes < 1000 + SMALL.segment_bytes
    assert log.log_start_offset == log.segments[0].base_offset > 0
    assert served(log) == [(i, f"v{i}") for i in range(log.log_start_offset, 40)]


def test_retention_by_time_deletes_even_the_last_segment() -> None:
    log = open_log(config=SMALL._replace(retention_ms=10_000))
    fill(log, 20)
    assert log.delete_old_segments(at(9_000)) == 0
    assert log.delete_old_segments(at(60_000)) > 0
    assert (log.log_start_offset, log.log_end_offset, served(log)) == (20, 20, [])
    assert log.append(batch("next"), 0, at(60_000)).base_offset == 20


def test_a_timestamp_from_the_future_does_not_keep_a_segment_for_ever() -> None:
    """H35: the year 292 million, and before 1970."""
    from partita.records.batch import build_batch

    for stamp in (2**63 - 1, -5):
        log = open_log(config=SMALL._replace(retention_ms=1000))
        log.append(build_batch([(stamp, None, b"x", ())]), 0, at(0))
        assert log.delete_old_segments(at(900)) == 0
        assert log.delete_old_segments(at(1100)) == 1


def test_a_clock_that_is_behind_at_the_start_after_a_crash_ages_no_records() -> None:
    """A machine without a battery for its clock loses power, starts in the past, and learns the time a little later."""
    storage = MemoryStorage()
    fill(open_log(storage), 20)
    log = open_log(storage, SMALL._replace(retention_ms=10_000), was_clean=False, wall_ms=0)
    assert log.delete_old_segments(at(9_000)) == 0
    assert served(log) == [(i, f"v{i}") for i in range(20)]
    assert log.delete_old_segments(at(60_000)) > 0


def test_an_append_while_the_clock_is_set_back_ages_no_earlier_records() -> None:
    log = open_log(config=SMALL._replace(retention_ms=10_000))
    log.append(batch("x", ms=100_000), 0, at(100_000))
    log.append(batch("y"), 0, at(0))
    assert log.delete_old_segments(at(101_000)) == 0
    assert served(log) == [(0, "x"), (1, "y")]
    assert log.delete_old_segments(at(111_000)) == 1


def test_delete_records_moves_the_log_start_durably() -> None:
    storage = MemoryStorage()
    log = open_log(storage)
    fill(log, 30)
    assert log.delete_records_before(17) == 17
    assert log.delete_records_before(5) == 17
    with pytest.raises(OffsetOutOfRange):
        log.read(16, 100)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(31)
    log.delete_old_segments(at(30))
    assert log.segments[0].base_offset <= 17 < log.segments[1].base_offset
    log.flush(at(30))
    again = open_log(storage)
    assert again.log_start_offset == 17
    assert again.delete_records_before(-1) == 30


def test_after_a_crash_a_log_begins_at_its_end() -> None:
    """Issue 26.1: an end that grows with the first sync sends a consumer with `latest` back to old records."""
    storage = MemoryStorage()
    log = open_log(storage, durability=Durability.SYNC)
    fill(log, 5)
    log.flush(at(5))
    log.delete_records_before(3)
    log.flush(at(5))
    again = open_log(storage, durability=Durability.SYNC, was_clean=False)
    assert (again.log_start_offset, again.high_watermark, again.last_stable_offset) == (3, 5, 5)


def test_a_producer_is_known_although_a_kill_left_its_segments_without_snapshot_and_retention_took_them() -> None:
    """Its repetitions were appended once more, and its predecessors were not fenced."""
    storage, sent = MemoryStorage(), batch("p", producer_id=9, producer_epoch=3, base_sequence=0)
    log = open_log(storage)
    log.append(sent, 0, at(0))
    log.roll(at(0))
    log = open_log(storage, was_clean=False)
    log.delete_records_before(-1)
    assert log.delete_old_segments(at(0)) == 1
    log.flush(at(0))
    assert open_log(storage, was_clean=False).append(sent, 0, at(0)).is_duplicate


def test_compacted_topics_are_not_deleted_by_age() -> None:
    log = open_log(config=SMALL._replace(delete=False, compact=True, retention_ms=1))
    fill(log, 30)
    assert log.delete_old_segments(at(10**9)) == 0


def test_truncation_forgets_batches_epochs_and_producers() -> None:
    log = open_log()
    fill(log, 20, leader_epoch=1)
    fill(log, 20, start=20, leader_epoch=2)
    log.append(batch("p", producer_id=9, producer_epoch=0, base_sequence=0), 2, at(0))
    log.truncate_to(15)
    assert (log.log_end_offset, log.high_watermark) == (15, 15)
    assert served(log) == [(i, f"v{i}") for i in range(15)]
    assert log.epoch_end_offset(2) == (-1, -1)
    assert 9 not in log.producers.producers
    assert log.append(batch("x"), 3, at(0)).base_offset == 15


def test_watchers_hear_of_every_new_high_watermark() -> None:
    log = open_log()
    heard: list[int] = []
    watcher = lambda: heard.append(log.high_watermark)  # noqa: E731
    log.watch(watcher)
    fill(log, 2)
    log.unwatch(watcher)
    fill(log, 1)
    assert heard == [1, 2]


def test_with_sync_nothing_is_served_before_it_is_durable() -> None:
    """D5: records beyond the durable point are not served to consumers."""
    log = open_log(durability=Durability.SYNC)
    log.append(batch("a"), 0, at(0))
    assert (log.high_watermark, log.log_end_offset) == (0, 1)
    assert len(log.read(0, 1000)) == 0
    ticket = log.begin_sync(at(0))
    assert ticket is not None
    log.append(batch("b"), 0, at(1))
    ticket.run()
    log.finish_sync(ticket)
    assert (log.high_watermark, log.unsynced_bytes) == (1, len(batch("b")))
    assert served(log) == [(0, "a")]
    log.flush(at(2))
    assert served(log) == [(0, "a"), (1, "b")]


def test_syncs_come_due_by_policy() -> None:
    memory, os, sync = (open_log(durability=durability) for durability in Durability)
    for log in (memory, os, sync):
        log.flush(at(0))  # the names of the new files
        assert log.next_sync_ms() is None
        log.append(batch("a"), 0, at(100))
    assert (memory.next_sync_ms(), os.next_sync_ms(), sync.next_sync_ms()) == (None, 1100, 102)
