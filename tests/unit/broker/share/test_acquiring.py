"""ShareFetch: which records a member gets."""

from __future__ import annotations

import pytest

from partita.protocol.error_codes import ErrorCode
from support.share.plane import ACCEPT, GAP, REJECT, RELEASE, SharePlane, acquired, codes, sent, share_plane


@pytest.mark.case("SG-E01", "SG-E02", "SG-E19")
def test_whole_batches_or_exactly_so_many_records(plane: SharePlane) -> None:
    plane.put(10, batches=4)
    m = plane.member()
    first = m.open(max_records=12)
    assert (acquired(first), sent(first)) == ([(0, 19, 1)], [(0, 9), (10, 19)])
    exact = m.fetch(max_records=5, share_acquire_mode=1)
    assert (acquired(exact), sent(exact)) == ([(20, 24, 1)], [(20, 29)])
    assert acquired(m.fetch(max_records=7, share_acquire_mode=1)) == [(25, 29, 1), (30, 31, 1)]


@pytest.mark.case("SG-E03")
def test_pieces_end_where_batches_end(plane: SharePlane) -> None:
    plane.put(3, batches=4)
    assert acquired(plane.member().open(batch_size=4)) == [(0, 5, 1), (6, 11, 1)]


@pytest.mark.case("SG-E04", "SG-E09")
def test_no_records_or_no_bytes_are_answered_at_once(plane: SharePlane) -> None:
    plane.put(5)
    m = plane.member()
    m.open(max_records=0)
    assert acquired(m.fetch(max_records=0, max_wait_ms=30_000)) == []
    assert acquired(m.fetch(max_bytes=0, max_wait_ms=30_000)) == []
    assert acquired(m.fetch(max_bytes=1)) == [(0, 4, 1)]


@pytest.mark.case("SG-E05", "SG-E12")
def test_a_record_is_with_one_member_until_it_gives_it_back(plane: SharePlane) -> None:
    plane.put(5)
    m, n = plane.member("m"), plane.member("n")
    assert acquired(m.open()) == [(0, 4, 1)]
    assert acquired(n.open()) == []
    assert m.ack((1, 2, RELEASE)) == 0
    assert acquired(n.fetch()) == [(1, 2, 2)]


@pytest.mark.case("SG-E06")
def test_so_many_records_are_in_flight_at_most(plane: SharePlane) -> None:
    plane.setting("share.partition.max.record.locks", 100)
    plane.put(60, batches=3)
    m = plane.member()
    assert acquired(m.open()) == [(0, 119, 1)]
    assert acquired(m.fetch()) == []
    m.ack((0, 19, ACCEPT))
    assert acquired(m.fetch()) == []
    m.ack((20, 39, ACCEPT))
    assert acquired(m.fetch()) == [(120, 179, 1)]


@pytest.mark.case("SG-E10")
def test_records_of_open_and_aborted_transactions(plane: SharePlane) -> None:
    given = plane.start()
    plane.put(1)
    plane.send(given, ("t", 0))
    plane.setting("share.isolation.level", "read_committed")
    m = plane.member()
    assert acquired(m.open()) == [(0, 0, 1)]
    plane.end(given, committed=False)
    plane.settle()
    assert acquired(m.fetch()) == [(2, 2, 1)], "the marker is acquired, the aborted record is not"
    plane.put(1)
    assert acquired(m.fetch()) == [(3, 3, 1)]


@pytest.mark.case("SG-E10", "SG-E16")
def test_without_isolation_all_is_given_and_the_marker_is_a_gap(plane: SharePlane) -> None:
    given = plane.start()
    plane.send(given, ("t", 0))
    plane.end(given, committed=False)
    plane.settle()
    m = plane.member()
    assert acquired(m.open()) == [(0, 1, 1)]
    assert m.ack((0, 1, ACCEPT, GAP)) == 0
    assert plane.state.writes[-1] == (0, 2, [(0, 0, 2, 1), (1, 1, 4, 1)])


@pytest.mark.case("SG-E11")
@pytest.mark.parametrize(("reset", "start"), [("latest", 5), ("earliest", 0), ("by_duration:PT1H", 5)])
def test_a_group_begins_where_its_setting_says_and_that_is_stored_later(reset: str, start: int) -> None:
    with share_plane() as plane:
        plane.setting("share.auto.offset.reset", reset)
        plane.put(5, ms=0)
        m = plane.member()
        if reset.startswith("by_duration"):
            plane.put(1)
        assert acquired(m.open()) == ([] if reset == "latest" else [(start, 5 if start else 4, 1)])
        plane.put(1)
        assert acquired(m.fetch())[0][0] == (6 if reset.startswith("by_duration") else 5)
        assert plane.state.start == -1


@pytest.mark.case("SG-E20")
def test_a_group_that_begins_with_young_records_waits_for_one(plane: SharePlane) -> None:
    plane.setting("share.auto.offset.reset", "by_duration:PT0S")
    plane.put(5, ms=0)
    m = plane.member()
    assert codes(m.fetch(0)) == {0: ErrorCode.OFFSET_NOT_AVAILABLE}


@pytest.mark.case("SG-E13")
def test_a_lock_ends_and_a_waiting_fetch_gets_the_records(plane: SharePlane) -> None:
    plane.setting("share.record.lock.duration.ms", 15_000)
    plane.put(5)
    m, n = plane.member("m"), plane.member("n")
    m.open()
    n.open()
    waiting = n.begin(n.request(max_wait_ms=30_000))
    plane.advance(10_000)
    assert not plane.state.writes
    plane.advance(5_000)
    assert acquired(n.settled(waiting)) == [(0, 4, 2)]
    assert plane.state.writes == [(0, 0, [(0, 4, 0, 1)])]
    assert m.ack((0, 4, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.case("SG-E14")
def test_a_record_that_was_given_too_often_is_archived(plane: SharePlane) -> None:
    plane.setting("share.delivery.count.limit", 2)
    plane.put(2)
    m = plane.member()
    m.open()
    m.ack((0, 1, RELEASE))
    assert acquired(m.fetch()) == [(0, 1, 2)]
    m.ack((0, 1, RELEASE))
    assert acquired(m.fetch()) == []
    assert plane.state.writes[-1] == (0, 2, [(0, 1, 4, 2)])


@pytest.mark.case("SG-E15")
def test_bad_records_come_in_smaller_pieces(plane: SharePlane) -> None:
    plane.put(16)
    m = plane.member()
    sizes = []
    got = acquired(m.open())
    for _ in range(5):
        sizes.append(sum(last - first + 1 for first, last, _ in got))
        m.ack(*((first, last, RELEASE) for first, last, _ in got))
        got = acquired(m.fetch())
    assert sizes == [16, 16, 16, 8, 1]


@pytest.mark.case("SG-E17")
def test_what_the_log_lost_is_passed(plane: SharePlane) -> None:
    plane.put(5, batches=2)
    m = plane.member()
    m.open(max_records=1)
    log = plane.cluster.catalogue.by_name["t"].partitions[0].log
    log.delete_records_before(7)
    assert acquired(m.fetch()) == [(5, 9, 1)]
    assert m.ack((0, 4, ACCEPT)) == 0


@pytest.mark.case("SG-E18")
def test_the_duration_of_locks_is_told(plane: SharePlane) -> None:
    plane.setting("share.record.lock.duration.ms", 20_000)
    m = plane.member()
    assert m.open().acquisition_lock_timeout_ms == 20_000
    assert m.acknowledge((0, 0, ACCEPT)).acquisition_lock_timeout_ms == 20_000


@pytest.mark.case("SG-E07")
def test_an_append_wakes_a_waiting_fetch(plane: SharePlane) -> None:
    m = plane.member()
    m.open()
    waiting = m.begin(m.request(max_wait_ms=30_000))
    assert not waiting.done()
    plane.put(3)
    assert acquired(m.settled(waiting)) == [(0, 2, 1)]


@pytest.mark.case("SG-E08")
def test_too_little_is_given_when_the_wait_is_over(plane: SharePlane) -> None:
    m = plane.member()
    m.open()
    waiting = m.begin(m.request(max_wait_ms=30_000, min_bytes=100_000))
    plane.put(3)
    plane.settle()
    assert not waiting.done()
    plane.advance(30_000)
    assert acquired(m.settled(waiting)) == [(0, 2, 1)]


@pytest.mark.case("SG-E21")
@pytest.mark.parametrize("verdict", [RELEASE, REJECT])
def test_a_release_wakes_a_waiting_fetch(plane: SharePlane, verdict: int) -> None:
    plane.put(3)
    m, n = plane.member("m"), plane.member("n")
    m.open()
    n.open()
    waiting = n.begin(n.request(max_wait_ms=30_000))
    m.ack((1, 1, verdict))
    plane.settle()
    assert waiting.done() is (verdict == RELEASE)
    if waiting.done():
        assert acquired(waiting.result()) == [(1, 1, 2)]
    else:
        n.connection.close()
