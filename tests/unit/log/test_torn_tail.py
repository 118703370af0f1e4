"""What a crash, or a rotten disk, can leave in the last segment and beside it, and what a start makes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.log.log_config import LogConfig
from partita.log.partition_log import PartitionLog
from partita.log.segment import file_name
from partita.log.storage import MemoryStorage
from partita.records.batch import restamp
from support.every_case import every_case
from support.log.logs import DIRECTORY, SMALL, at, batch, fill, open_log, recovered, served

WHOLE = LogConfig()
COUNT = 4
LAST = 3
Files = dict[str, bytes]


def crashed(config: LogConfig = WHOLE, count: int = COUNT) -> Files:
    """The files of a log that was never closed."""
    storage = MemoryStorage()
    log = open_log(storage, config)
    fill(log, count)
    log.flush(at(count))
    return files_of(storage)


def files_of(storage: MemoryStorage) -> Files:
    found = {}
    for name in storage.list(DIRECTORY):
        file = storage.open(f"{DIRECTORY}/{name}")
        found[name] = bytes(file.read_at(0, file.size()))
    return found


def started(files: Files, config: LogConfig = WHOLE) -> PartitionLog:
    """A log opened over these files; a second start must change nothing any more."""
    storage = MemoryStorage()
    for name, content in files.items():
        storage.open(f"{DIRECTORY}/{name}", create=True).append([content])
    log = recovered(storage, config)
    after_first = files_of(storage)
    again = recovered(storage, config)
    assert files_of(storage) == after_first
    assert (again.report.bytes_cut, again.log_end_offset) == (0, log.log_end_offset)
    return log


def data(files: Files) -> bytes:
    return files[file_name(0)]


def expect(log: PartitionLog, count: int) -> None:
    """The log holds exactly the first `count` records, and goes on from there."""
    assert served(log) == [(i, f"v{i}") for i in range(count)]
    assert log.append(batch("next"), 0, at(0)).base_offset == count


SIZE = len(batch("v0"))


@every_case("missing", range(1, SIZE + 1))
def test_a_batch_cut_at_any_byte_is_dropped(missing: int) -> None:
    """D2, torn-tail table: the last batch cut at each byte."""
    files = crashed()
    log = started({file_name(0): data(files)[:-missing]})
    expect(log, LAST)
    assert log.report.bytes_cut == SIZE - missing


def test_a_flipped_byte_anywhere_in_the_last_batch_drops_it_or_is_outside_the_checksum() -> None:
    """D2: base offset and length are checked by themselves; only the leader epoch may differ unnoticed."""
    files = crashed()
    content = data(files)
    for i in range(SIZE):
        flipped = bytearray(content)
        flipped[LAST * SIZE + i] ^= 0x10
        log = started({file_name(0): bytes(flipped)})
        assert log.log_end_offset == (COUNT if 12 <= i < 16 else LAST), f"byte {i} of the batch"


def replaced(make: Callable[[bytes], bytes]) -> Files:
    content = data(crashed())
    return {file_name(0): content[: LAST * SIZE] + make(content[LAST * SIZE :])}


def renumbered(whole: bytes, offset: int) -> bytes:
    copy = bytearray(whole)
    restamp(copy, offset, 0)
    return bytes(copy)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda last: bytes(len(last)), id="zeros"),
        pytest.param(lambda last: b"\xff" * len(last), id="ones"),
        pytest.param(lambda last: bytes(100_000), id="many zeros"),
        pytest.param(lambda last: renumbered(last, 1), id="an old batch again"),
        pytest.param(lambda last: renumbered(last, 9), id="a batch from beyond"),
        pytest.param(lambda last: last[:8] + b"\x7f\xff\xff\xff" + last[12:], id="length beyond the file"),
        pytest.param(lambda last: last[:8] + b"\xff\xff\xff\x00" + last[12:], id="negative length"),
        pytest.param(lambda last: last[:8] + bytes(4) + last[12:], id="length zero"),
        pytest.param(lambda last: last[:16] + b"\x01" + last[17:], id="magic 1"),
        pytest.param(lambda last: b"\x00", id="one byte"),
    ],
)
@pytest.mark.case("BM-171")
def test_a_strange_tail_is_cut_and_reported(make: Callable[[bytes], bytes]) -> None:
    """D2, BM-171: the start needs no help, and deletes nothing before the cut."""
    files = replaced(make)
    log = started(files)
    assert log.report.bytes_cut == len(data(files)) - LAST * SIZE
    assert (log.report.cut_at_offset, log.report.problem is not None) == (LAST, True)
    expect(log, LAST)


SEALED = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=1)


@pytest.mark.parametrize("content", [None, b"", b"garbage", b"PARTIDX1" + bytes(60)])
def test_an_index_that_is_missing_or_garbage_is_built_anew(content: bytes | None) -> None:
    files = crashed(SEALED, 10)
    name = file_name(3, ".index")
    if content is None:
        del files[name]
    else:
        files[name] = content
    log = started(files, SEALED)
    assert (log.report.segments_checked, log.report.bytes_cut) == (2, 0)
    expect(log, 10)


def test_an_index_of_an_older_or_newer_log_is_not_trusted() -> None:
    files = crashed(SEALED, 9)
    index = files[file_name(0, ".index")]
    for wrong in (data(files)[: 2 * SIZE], data(files) + renumbered(data(files)[:SIZE], 3)):
        log = started({file_name(0): wrong, file_name(0, ".index"): index})
        assert log.log_end_offset == len(wrong) // SIZE


def test_an_index_with_a_broken_table_is_built_anew_at_first_use() -> None:
    files = crashed(SEALED, 10)
    name = file_name(0, ".index")
    files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])
    expect(started(files, SEALED), 10)


@pytest.mark.parametrize("content", [None, b"", b"partita partition state 1\nlog_start_off", b"\xff" * 50])
def test_a_state_file_that_is_missing_or_torn_costs_nothing(content: bytes | None) -> None:
    files = crashed(SEALED, 10)
    if content is None:
        del files["partition.state"]
    else:
        files["partition.state"] = content
    log = started(files, SEALED)
    assert log.epoch_end_offset(0) == (0, 10)
    expect(log, 10)


def test_a_log_start_beyond_the_end_is_brought_back() -> None:
    """A checkpoint beyond the log's end: the lost tail had been deleted before."""
    storage = MemoryStorage()
    log = open_log(storage, LogConfig())
    fill(log, 10)
    log.delete_records_before(8)
    log.flush(at(10))
    files = files_of(storage)
    files[file_name(0)] = data(files)[: 5 * SIZE]
    found = started(files)
    assert (found.log_start_offset, found.log_end_offset) == (5, 5)


def test_an_empty_last_segment_is_used() -> None:
    files = crashed(SEALED, 9)
    files[file_name(9)] = b""
    expect(started(files, SEALED), 9)


def test_a_missing_last_segment_is_made_again() -> None:
    files = crashed(SEALED, 10)
    del files[file_name(9)]
    expect(started(files, SEALED), 9)


def test_a_segment_inside_another_is_dropped() -> None:
    files = crashed(SEALED, 10)
    files[file_name(4)] = files[file_name(3)][SIZE : 2 * SIZE]
    log = started(files, SEALED)
    assert file_name(4) in log.report.files_removed
    expect(log, 10)


def test_an_overlap_that_goes_on_ends_the_log() -> None:
    files = crashed(SEALED, 10)
    files[file_name(8)] = b"".join(renumbered(data(files)[:SIZE], offset) for offset in (8, 9, 10))
    log = started(files, SEALED)
    assert log.report.cut_at_offset == 9
    expect(log, 9)


def test_leftovers_of_interrupted_work_are_removed() -> None:
    files = crashed(SEALED, 10)
    for name in (file_name(0, ".cleaned"), "partition.state.tmp", file_name(5, ".index"), "nonsense.swap"):
        files[name] = b"left over"
    log = started(files, SEALED)
    assert {file_name(0, ".cleaned"), "partition.state.tmp", file_name(5, ".index")} <= set(log.report.files_removed)
    expect(log, 10)


def test_a_swap_that_was_decided_is_finished() -> None:
    """D11: the new file stands for the segments it names."""
    files = crashed(SEALED, 10)
    kept = files[file_name(0)][2 * SIZE :] + files[file_name(3)][2 * SIZE :]
    files[f"{0:020d}-{6:020d}.swap"] = kept
    log = started(files, SEALED)
    assert [offset for offset, _ in served(log)] == [2, 5, 6, 7, 8, 9]


def test_damage_in_a_trusted_segment_is_never_served() -> None:
    """D2, crash model 8: a sector that went bad later is found by the first reader."""
    from partita.records.batch import InvalidBatch

    files = crashed(SEALED, 10)
    broken = bytearray(files[file_name(3)])
    broken[2 * SIZE - 1] ^= 1
    files[file_name(3)] = bytes(broken)
    log = started(files, SEALED)
    assert len(log.read(0, 1000)) == 3 * SIZE
    assert len(log.read(3, 1000)) == SIZE, "B13: the good batch before it is served"
    with pytest.raises(InvalidBatch):
        log.read(4, 1000)


def test_a_clean_stop_needs_no_checks_and_changes_no_byte() -> None:
    """D10."""
    storage = MemoryStorage()
    log = open_log(storage, SMALL)
    fill(log, 30)
    log.close()
    before = files_of(storage)
    again = open_log(storage, SMALL)
    again.flush(at(0))
    assert (again.report.segments_checked, again.report.bytes_cut) == (0, 0)
    assert files_of(storage) == before
    expect(again, 30)
