"""A share partition, rule by rule, where the golden histories do not say enough."""

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.share.partition.acquiring import Wish
from partita.share.partition.model import Acknowledgement, Acquired, Limits, LogBatch, StateBatch, Stored, Write
from partita.share.partition.share_partition import SharePartition

ACCEPT, RELEASE, RENEW = 1, 2, 4
TEN = [LogBatch(0, 9)]


LIMITS, NOTHING = Limits(lock_ms=1000), Stored(0)


def partition(limits: Limits = LIMITS, stored: Stored = NOTHING) -> SharePartition:
    return SharePartition(stored, lambda: limits)


def acquire(of: SharePartition, member: str = "m", *, now_ms: int = 0, log: list[LogBatch] = TEN) -> list[Acquired]:
    return of.acquire(Wish(member, False, 500, 500), log, of.next_fetch_offset, now_ms)


def verdict(of: SharePartition, first: int, last: int, *types: int, now_ms: int = 0, member: str = "m") -> Write:
    outcome = of.acknowledge(member, [Acknowledgement(first, last, types)], now_ms)
    assert isinstance(outcome, Write)
    return outcome


def states(of: SharePartition) -> list[tuple[int, int, int, int]]:
    return [(run.first, run.last, int(run.state), run.delivery_count) for b in of.flight.batches for run in b.runs]


def test_a_lock_that_ends_while_its_acknowledgement_is_stored_asks_for_no_timer() -> None:
    """Its end would be due at once, again and again, until the write has ended."""
    one = partition()
    acquire(one)
    write = verdict(one, 0, 9, ACCEPT)
    assert one.expire(1_000) is None
    assert one.next_deadline_ms is None
    one.refused(write)
    assert one.next_deadline_ms == 1_000


@pytest.mark.case("SG-F15")
def test_a_refused_write_leaves_the_records_with_the_member() -> None:
    one = partition()
    acquire(one)
    one.refused(verdict(one, 0, 4, ACCEPT))
    assert states(one) == [(0, 9, 1, 1)]
    assert one.acknowledge("m", [Acknowledgement(0, 9, (ACCEPT,))], 0) is not None


@pytest.mark.case("SG-F15")
def test_a_refused_write_after_the_deadline_makes_them_available() -> None:
    one = partition()
    acquire(one)
    write = verdict(one, 0, 4, ACCEPT, now_ms=500)
    late = one.expire(1200)
    assert late is not None
    assert late.batches == [StateBatch(5, 9, 0, 1)], "records in transition are left alone"
    one.refused(write)
    again = one.expire(1200)
    assert again is not None
    assert again.batches == [StateBatch(0, 4, 0, 1)]


def test_a_second_verdict_during_the_write_is_refused() -> None:
    one = partition()
    acquire(one)
    verdict(one, 0, 4, ACCEPT)
    assert one.acknowledge("m", [Acknowledgement(4, 5, (ACCEPT,))], 0) is ErrorCode.INVALID_RECORD_STATE
    assert one.release("m") is not None


@pytest.mark.case("SG-F17")
def test_a_renewal_beside_a_bad_verdict_is_not_done() -> None:
    one = partition()
    acquire(one)
    both = [Acknowledgement(0, 9, (RENEW,)), Acknowledgement(20, 20, (ACCEPT,))]
    assert one.acknowledge("m", both, 900) is ErrorCode.INVALID_REQUEST
    assert one.expire(1000) is not None


@pytest.mark.case("SG-F13")
def test_a_renewal_holds_records_longer() -> None:
    one = partition()
    acquire(one)
    assert one.acknowledge("m", [Acknowledgement(0, 4, (RENEW,))], 900) is None
    late = one.expire(1000)
    assert late is not None
    assert late.batches == [StateBatch(5, 9, 0, 1)]
    assert one.expire(1899) is None
    assert one.expire(1900) is not None


@pytest.mark.case("SG-F13")
def test_renewals_can_be_disabled() -> None:
    one = partition(Limits(renews=False))
    acquire(one)
    assert one.acknowledge("m", [Acknowledgement(0, 9, (RENEW,))], 0) is ErrorCode.INVALID_RECORD_STATE


def test_locks_have_one_deadline_which_is_the_earliest() -> None:
    one = partition()
    assert one.next_deadline_ms is None
    acquire(one, log=[LogBatch(0, 4)])
    acquire(one, log=[LogBatch(5, 9)], now_ms=300)
    assert one.next_deadline_ms == 1000
    one.expire(1000)
    assert one.next_deadline_ms == 1300
    one.expire(1300)
    assert one.next_deadline_ms is None


def test_each_record_may_end_on_its_own_and_becomes_one_interval_again() -> None:
    one = partition()
    acquire(one)
    for offset in (1, 3, 5, 7):
        one.stored(verdict(one, offset, offset, RELEASE))
    assert len(states(one)) == 9
    for offset in (0, 2, 4, 6, 8, 9):
        one.stored(verdict(one, offset, offset, RELEASE))
    assert states(one) == [(0, 9, 0, 1)]


@pytest.mark.case("SG-E22")
def test_what_compaction_removed_is_archived_and_passed() -> None:
    one = partition()
    acquire(one)
    write = one.release("m")
    assert write is not None
    one.stored(write)
    assert acquire(one, log=[LogBatch(6, 9)]) == [Acquired(6, 9, 2)]
    assert one.flight.start == 6


@pytest.mark.case("SG-E23")
def test_gaps_in_the_stored_state_are_acquired_and_hold_the_start_back() -> None:
    one = partition(stored=Stored(0, (StateBatch(0, 3, 2, 1), StateBatch(6, 9, 2, 1))))
    assert (one.flight.start, one.next_fetch_offset) == (4, 4)
    assert acquire(one) == [Acquired(4, 5, 1)]
    one.stored(verdict(one, 4, 5, ACCEPT))
    assert one.flight.start == 6
    assert acquire(one, log=[LogBatch(10, 14)]) == [Acquired(10, 14, 1)]
    one.stored(verdict(one, 10, 10, ACCEPT))
    assert one.flight.start == 11


def test_a_log_batch_around_the_start_is_not_given_again_below_it() -> None:
    one = partition(stored=Stored(5, (StateBatch(6, 6, 2, 1),)))
    assert acquire(one, log=[LogBatch(0, 5)]) == [Acquired(5, 5, 1)]
    assert (one.flight.start, one.next_fetch_offset) == (5, 7)


@pytest.mark.case("SG-L01")
def test_a_new_leader_counts_on_from_what_was_stored() -> None:
    one = partition(stored=Stored(5, (StateBatch(5, 9, 0, 2),)))
    assert acquire(one) == [Acquired(5, 9, 3)]


def test_the_start_passes_only_what_is_stored() -> None:
    one = partition()
    acquire(one)
    write = verdict(one, 0, 4, ACCEPT)
    assert (write.start, write.completed, one.flight.start) == (0, 5, 0)
    one.stored(write)
    assert (one.flight.start, one.flight.completed) == (5, 0)


@pytest.mark.case("SG-E10")
def test_an_aborted_transaction_larger_than_all_locks_is_passed() -> None:
    one = partition(Limits(record_locks=100))
    log = [LogBatch(base, base + 59, is_aborted=True) for base in (0, 60)]
    assert acquire(one, log=log[:1]) == []
    assert acquire(one, log=log[1:]) == []
    assert (one.flight.start, one.can_acquire) == (120, True)
