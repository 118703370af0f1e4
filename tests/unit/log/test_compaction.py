"""Compaction: the newest value of each key stays, tombstones go in time, and nothing else changes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.broker.storage.disk_storage import DiskStorage
from partita.log import compaction
from partita.log.compaction import plan_compaction, swap_group
from partita.log.partition_log import PartitionLog
from partita.log.storage import MemoryStorage
from partita.records.batch import build_marker, iter_batches, iter_records, read_header
from support.log.logs import DIRECTORY, SMALL, at, install_compacted, open_log, pairs, text

COMPACT = SMALL._replace(compact=True, delete=False, delete_retention_ms=1000)


def write(log: PartitionLog, *records: tuple[str, str | None], ms: int = 0) -> None:
    log.append(pairs(*records, ms=ms), 0, at(ms))


def compact(log: PartitionLog, ms: int = 0) -> bool:
    plan = plan_compaction(log, at(ms), force=True)
    if plan is None:
        return False
    log.flush(at(ms))
    plan.run()
    install_compacted(log, plan)
    return True


def content(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """(offset, key, value) of all data records."""
    found: list[tuple[int, str, str | None]] = []
    offset = log.log_start_offset
    while len(chunk := log.read(offset, 1 << 20)):
        for header, batch in iter_batches(chunk):
            offset = header.next_offset
            for record in () if header.is_control else iter_records(batch):
                value = None if record.value is None else text(record.value)
                found.append((record.offset, text(record.key), value))
    return found


def test_the_newest_value_of_each_key_stays_at_its_offset() -> None:
    log = open_log(config=COMPACT)
    for i in range(30):
        write(log, (f"k{i % 3}", f"v{i}"), ("once" if i == 4 else "often", str(i)))
    assert compact(log)
    assert content(log) == [
        (9, "once", "4"),
        (54, "k0", "v27"),
        (56, "k1", "v28"),
        (58, "k2", "v29"),
        (59, "often", "29"),
    ]
    assert log.log_end_offset == 60
    write(log, ("k0", "later"))
    assert content(log)[-1] == (60, "k0", "later")


def test_every_offset_can_be_read_after_compaction_left_holes() -> None:
    log = open_log(config=COMPACT)
    for i in range(40):
        write(log, ("a", str(i)))
    compact(log)
    for offset in range(41):
        chunk = log.read(offset, 1 << 20)
        assert [header.last_offset for header, _ in iter_batches(chunk)] == ([39] if offset < 40 else [])


def test_a_log_that_compaction_shortened_starts_where_it_did_when_it_is_not_compacted_any_more() -> None:
    """It began at the first segment left, and sent consumers that stood before it to the end by their reset policy."""
    storage = MemoryStorage()
    log = open_log(storage, COMPACT)
    for i in range(40):
        write(log, ("a", str(i)))
    compact(log)
    assert log.segments[0].base_offset > 0
    log.close()
    again = open_log(storage, SMALL)
    assert (again.log_start_offset, again.report.gaps) == (0, [])
    assert content(again) == [(39, "a", "39")]


def test_a_first_compaction_that_is_killed_moves_no_log_start() -> None:
    """The segment was sealed by a start after a kill, so the log had not stored where it starts."""
    storage, config = MemoryStorage(), COMPACT._replace(segment_bytes=100)
    log = open_log(storage, config)
    write(log, ("a", "1"))
    log.roll(at(0))
    log = open_log(storage, config, was_clean=False)
    write(log, ("a", "2"))
    log.roll(at(0))
    log = open_log(storage, config, was_clean=False)
    plan = plan_compaction(log, at(0))
    assert plan is not None
    log.flush(at(0))
    plan.run()
    for group in plan.groups:
        swap_group(log, group)
    for policy in (config, SMALL, SMALL):  # not even when the topic is not compacted any more
        again = open_log(storage, policy, was_clean=False)
        assert (again.log_start_offset, content(again)) == (0, [(1, "a", "2")])
        again.flush(at(0))


def test_the_last_segment_is_left_alone() -> None:
    log = open_log(config=COMPACT)
    write(log, ("a", "1"))
    write(log, ("a", "2"))
    assert plan_compaction(log, at(0)) is None
    assert len(content(log)) == 2


def test_a_log_waits_until_enough_of_it_is_unclean() -> None:
    log = open_log(config=COMPACT._replace(min_cleanable_dirty_ratio=0.5))
    for i in range(40):
        write(log, (f"k{i}", "x"))
    assert plan_compaction(log, at(0)) is not None
    compact(log)
    for i in range(12):
        write(log, (f"k{i}", "y"))
    assert plan_compaction(log, at(0)) is None


def test_min_compaction_lag_protects_young_records() -> None:
    log = open_log(config=COMPACT._replace(min_compaction_lag_ms=500))
    for i in range(20):
        write(log, ("a", str(i)), ms=i)
    assert plan_compaction(log, at(100)) is None
    assert plan_compaction(log, at(1000)) is not None


def test_a_clock_that_was_set_back_holds_up_no_compaction_without_a_lag() -> None:
    """One that was ahead for a minute, by four years, left a log that grew for four years."""
    log = open_log(config=COMPACT)
    for i in range(20):
        write(log, ("a", str(i)), ms=10**11)
    assert plan_compaction(log, at(0)) is not None


def test_a_search_for_a_timestamp_goes_on_although_the_log_is_compacted_meanwhile(tmp_path: Path) -> None:
    """It went on in the new file, at a position of the old one."""
    log = open_log(DiskStorage(str(tmp_path)), COMPACT._replace(segment_bytes=100_000))
    for i in range(40):
        write(log, (f"k{i % 3}", str(i) * 40), ms=i)
    search = log.batches_from_timestamp(at(10).wall_ms)
    assert read_header(next(search)).base_offset == 10
    compact(log, 40)
    assert [read_header(batch).base_offset for batch in search] == [37, 38, 39]


def test_tombstones_outlive_the_values_and_go_after_delete_retention() -> None:
    log = open_log(config=COMPACT)
    write(log, ("a", "1"), ("b", "1"))
    write(log, ("a", None))
    compact(log, 10)
    assert content(log) == [(1, "b", "1"), (2, "a", None)]
    write(log, ("c", "1"))
    compact(log, 500)
    assert (2, "a", None) in content(log)
    write(log, ("d", "1"), ms=2000)
    compact(log, 2000)
    assert [key for _, key, _ in content(log)] == ["b", "c", "d"]


def test_records_without_key_go() -> None:
    from support.log.logs import batch

    log = open_log(config=COMPACT)
    log.append(batch("nobody"), 0, at(0))
    write(log, ("a", "1"))
    compact(log)
    assert content(log) == [(1, "a", "1")]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_batches_keep_their_codec_timestamps_and_headers(codec: int) -> None:
    from partita.records.batch import build_batch

    log = open_log(config=COMPACT)
    records = [(at(ms).wall_ms, key, b"x" * 50, [("h", b"1")]) for ms, key in ((5, b"a"), (9, b"b"), (7, b"a"))]
    log.append(build_batch(records, codec=codec), 4, at(0))
    compact(log)
    ((header, view),) = iter_batches(log.read(0, 10_000))
    assert (header.codec, header.base_offset, header.last_offset, header.partition_leader_epoch) == (codec, 0, 2, 4)
    assert [(r.offset, r.timestamp - at(0).wall_ms, r.key, list(r.headers)) for r in iter_records(view)] == [
        (1, 9, b"b", [("h", b"1")]),
        (2, 7, b"a", [("h", b"1")]),
    ]
    assert header.max_timestamp == at(9).wall_ms


def test_the_last_batch_of_a_producer_stays_even_empty() -> None:
    storage = MemoryStorage()
    log = open_log(storage, COMPACT)
    log.append(pairs(("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0), 0, at(0))
    write(log, ("a", "2"))
    compact(log)
    headers = [header for header, _ in iter_batches(log.read(0, 10_000))]
    assert [(h.producer_id, h.records_count) for h in headers] == [(7, 0), (-1, 1)]
    duplicate = log.append(pairs(("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0), 0, at(0))
    assert duplicate.is_duplicate


def test_aborted_records_go_and_open_transactions_wait() -> None:
    log = open_log(config=COMPACT)
    fields = {"producer_id": 3, "producer_epoch": 0, "is_transactional": True}
    write(log, ("a", "committed"))
    log.append(pairs(("a", "aborted"), base_sequence=0, **fields), 0, at(0))
    log.append(build_marker(0, timestamp=0, producer_id=3, producer_epoch=0, coordinator_epoch=0), 0, at(0))
    compact(log)
    assert content(log) == [(0, "a", "committed")]
    log.append(pairs(("a", "open"), base_sequence=1, **fields), 0, at(0))
    write(log, ("a", "after"))
    assert not compact(log)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", None])), min_size=1, max_size=60),
    st.lists(st.integers(0, 59), max_size=3),
)
def test_replaying_a_compacted_log_gives_the_same_state(writes: list[tuple[int, str | None]], cuts: list[int]) -> None:
    """S29 (b): whatever a compactor leaves at any moment, the last value of every key is the same."""
    storage = MemoryStorage()
    log = open_log(storage, COMPACT._replace(segment_bytes=250))
    expected: dict[str, str | None] = {}
    for i, (key, value) in enumerate(writes):
        write(log, (f"k{key}", value), ms=i * 700)
        expected[f"k{key}"] = value
        if i in cuts:
            compact(log, i * 700)
    state = {key: value for _, key, value in content(log)}
    alive = {key: value for key, value in expected.items() if value is not None}
    assert {key: value for key, value in state.items() if value is not None} == alive
    log.close()
    assert content(open_log(storage, COMPACT)) == content(log)


@pytest.mark.case("BM-058")
def test_every_subset_of_finished_groups_replays_to_the_same_state() -> None:
    """S29 (b), BM-058: a compactor may have replaced any prefix of the groups when a reader comes by."""
    for count, first in product(range(6), ("x", None)):
        storage = MemoryStorage()
        log = open_log(storage, COMPACT._replace(segment_bytes=160))
        write(log, ("a", first))
        for i in range(12):
            write(log, (f"k{i % 3}", None if i == 7 else str(i)))
        before = {key: value for _, key, value in content(log) if value is not None}
        plan = plan_compaction(log, at(0), force=True)
        assert plan is not None
        plan.run()
        plan.groups = plan.groups[:count] or plan.groups[:1]
        install_compacted(log, plan)
        assert {key: value for _, key, value in content(log) if value is not None} == before
        reopened = open_log(storage, COMPACT)
        assert content(reopened) == content(log)
        assert not any(name.endswith(".cleaned") for name in storage.list(DIRECTORY))


KEYS = st.sampled_from(["a", "b", "a longer key"])
ROUNDS = st.lists(st.tuples(KEYS, st.none() | st.text(max_size=30)), min_size=1, max_size=25)


@given(written=ROUNDS, later=ROUNDS, room=st.integers(1, 400), segment_bytes=st.integers(100, 600))
def test_rounds_that_keep_few_keys_end_as_one_that_keeps_all(
    written: list[tuple[str, str | None]], later: list[tuple[str, str | None]], room: int, segment_bytes: int
) -> None:
    """All keys of a log were kept in memory: a topic of many distinct or long ones could take all there is."""
    config = COMPACT._replace(segment_bytes=segment_bytes)
    found = []
    for limit in (1 << 30, room):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction, "KEYS_BYTES_MAX", limit)
            log = open_log(config=config)
            rounds = []
            for records in (written, later):
                for record in records:
                    write(log, record)
                rounds.append(0)
                while compact(log):
                    rounds[-1] += 1
                    assert rounds[-1] <= len(records) + 1, "each round gets further"
            found.append(content(log))
            assert log.state.cleaned_to == log.segments[-1].base_offset
            if limit > room:
                assert max(rounds) <= 1
    assert found[0] == found[1]


def test_what_is_behind_the_last_noted_key_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "KEYS_BYTES_MAX", 2 * 101)
    log = open_log(config=COMPACT._replace(segment_bytes=100_000))
    for i in range(6):
        write(log, (f"{i % 3}", f"v{i}"))
    assert compact(log)
    assert (log.state.cleaned_to, [offset for offset, _, _ in content(log)]) == (2, [0, 1, 2, 3, 4, 5])
    assert compact(log)
    assert (log.state.cleaned_to, [offset for offset, _, _ in content(log)]) == (4, [1, 2, 3, 4, 5])
    assert compact(log)
    assert (log.state.cleaned_to, [offset for offset, _, _ in content(log)]) == (6, [3, 4, 5])
    assert not compact(log)


def test_a_tombstone_behind_the_last_noted_key_is_not_counted_as_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time to go begins when older values of its key are gone, not before."""
    monkeypatch.setattr(compaction, "KEYS_BYTES_MAX", 1)
    log = open_log(config=COMPACT._replace(segment_bytes=100_000, delete_retention_ms=10))
    for record in (("k", "old"), ("other", "v"), ("k", None)):
        write(log, record)
    before = bytes(log.read(2, 1 << 20))
    for horizon in (False, False, True):
        assert compact(log, ms=1000)
        assert (bytes(log.read(2, 1 << 20)) != before) is horizon
    assert content(log) == [(1, "other", "v"), (2, "k", None)]
