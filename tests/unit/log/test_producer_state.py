"""Idempotent producers, and transactions as far as a partition sees them."""

from __future__ import annotations

from typing import Any

import pytest

from partita.log.partition_log import Appended, AppendRefused, PartitionLog
from partita.log.storage import MemoryStorage
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import ABORT, COMMIT, build_marker
from support.log.logs import SMALL, at, batch, open_log, served

CODE = ErrorCode


def produce(log: PartitionLog, sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 5) -> Appended:
    values = [f"s{sequence + i}" for i in range(count)]
    fields: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return log.append(batch(*values, **fields), 0, at(0))


def in_transaction(log: PartitionLog, producer_id: int, sequence: int, value: str = "t") -> int:
    fields: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": 0,
        "base_sequence": sequence,
        "is_transactional": True,
    }
    return log.append(batch(value, **fields), 0, at(0)).base_offset


def end(log: PartitionLog, producer_id: int, kind: int, *, epoch: int = 0, coordinator_epoch: int = 0) -> int:
    marker = build_marker(
        kind,
        timestamp=0,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
    )
    return log.append(marker, 0, at(0)).base_offset


def refused(log: PartitionLog, sequence: int, *, epoch: int = 0) -> ErrorCode:
    end_offset = log.log_end_offset
    with pytest.raises(AppendRefused) as caught:
        produce(log, sequence, epoch=epoch)
    assert log.log_end_offset == end_offset
    return caught.value.code


@pytest.mark.case("BM-164")
def test_a_retry_gets_the_offset_it_already_has() -> None:
    """BM-164: the window holds five batches."""
    log = open_log()
    offsets = [produce(log, i * 2, count=2).base_offset for i in range(6)]
    for i in range(1, 6):
        again = produce(log, i * 2, count=2)
        assert (again.is_duplicate, again.base_offset, again.last_offset) == (True, offsets[i], offsets[i] + 1)
    assert log.log_end_offset == 12
    assert refused(log, 0) is CODE.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused() -> None:
    log = open_log()
    produce(log, 0)
    assert refused(log, 2) is CODE.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not produce(log, 1).is_duplicate


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert produce(open_log(), 1234).base_offset == 0


def test_an_old_epoch_is_fenced_and_a_new_one_starts_at_zero() -> None:
    log = open_log()
    produce(log, 0, epoch=1)
    assert refused(log, 1, epoch=0) is CODE.INVALID_PRODUCER_EPOCH
    assert refused(log, 1, epoch=2) is CODE.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not produce(log, 0, epoch=2).is_duplicate


def test_the_sequence_wraps_after_the_largest_int() -> None:
    log = open_log()
    produce(log, 2**31 - 2, count=2)
    assert not produce(log, 0).is_duplicate
    log = open_log()
    produce(log, 2**31 - 1, count=3)
    assert produce(log, 2**31 - 1, count=3).is_duplicate
    assert not produce(log, 2).is_duplicate


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.case("BM-164", "BM-166")
def test_the_window_survives_a_restart(clean: bool) -> None:
    """BM-164, BM-166: a retry after the broker was killed is still a duplicate, not an unknown error."""
    storage = MemoryStorage()
    log = open_log(storage, SMALL)
    for i in range(20):
        produce(log, i)
    if clean:
        log.close()
    again = open_log(storage, SMALL)
    assert produce(again, 19).is_duplicate
    assert produce(again, 15).is_duplicate
    assert refused(again, 21) is CODE.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_silent_producers_are_forgotten_but_not_with_an_open_transaction() -> None:
    log = open_log()
    produce(log, 0)
    in_transaction(log, 6, 0)
    assert log.producers.expire(at(999).wall_ms, 1000) == 0
    assert log.producers.expire(at(1000).wall_ms, 1000) == 1
    assert list(log.producers.producers) == [6]


@pytest.mark.case("BM-162")
def test_an_open_transaction_holds_the_last_stable_offset() -> None:
    """BM-162."""
    log = open_log()
    produce(log, 0)
    in_transaction(log, 8, 0)
    in_transaction(log, 9, 0)
    produce(log, 1)
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)
    end(log, 8, COMMIT)
    assert log.last_stable_offset == 2
    end(log, 9, ABORT)
    assert log.last_stable_offset == log.high_watermark == 6
    assert [offset for offset, _ in served(log)] == [0, 1, 2, 3]


@pytest.mark.case("BM-163")
def test_aborted_transactions_are_listed_by_first_offset() -> None:
    """BM-163."""
    log = open_log()
    in_transaction(log, 1, 0)
    in_transaction(log, 2, 0)
    end(log, 2, ABORT)
    end(log, 1, ABORT)
    in_transaction(log, 3, 0)
    end(log, 3, COMMIT)
    found = log.aborted_transactions(0, log.read(0, 10_000))
    assert [(entry.producer_id, entry.first_offset) for entry in found] == [(1, 0), (2, 1)]
    assert log.aborted_transactions(4, log.read(4, 10_000)) == []


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(clean: bool) -> None:
    storage = MemoryStorage()
    log = open_log(storage, SMALL)
    in_transaction(log, 1, 0)
    end(log, 1, ABORT)
    in_transaction(log, 2, 0)
    for i in range(20):
        produce(log, i)
    if clean:
        log.close()
    again = open_log(storage, SMALL)
    assert again.last_stable_offset == 2
    assert [entry.producer_id for entry in again.producers.aborted_between(0, 5)] == [1]
    end(again, 2, COMMIT)
    assert again.last_stable_offset == again.high_watermark


def test_a_marker_of_an_old_epoch_or_coordinator_is_refused() -> None:
    log = open_log()
    in_transaction(log, 1, 0)
    end(log, 1, COMMIT, epoch=1, coordinator_epoch=3)
    for epoch, coordinator_epoch, code in (
        (0, 3, CODE.INVALID_PRODUCER_EPOCH),
        (1, 2, CODE.TRANSACTION_COORDINATOR_FENCED),
    ):
        with pytest.raises(AppendRefused) as caught:
            end(log, 1, ABORT, epoch=epoch, coordinator_epoch=coordinator_epoch)
        assert caught.value.code is code


def test_deleted_records_take_their_aborted_transactions_along() -> None:
    log = open_log()
    in_transaction(log, 1, 0)
    end(log, 1, ABORT)
    produce(log, 0)
    log.delete_records_before(2)
    assert log.producers.aborted == []
