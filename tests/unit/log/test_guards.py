"""A transaction begins in a partition only under the guard that its coordinator was asked for. (KIP-890)"""

from __future__ import annotations

from typing import Any

import pytest

from partita.log.partition_log import AppendRefused, PartitionLog
from partita.log.producer_state import Guard, Refusal
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import ABORT, COMMIT, build_marker
from partita.records.header import read_header
from support.log.logs import at, batch, open_log

CODE = ErrorCode


def data(sequence: int = 0, epoch: int = 0) -> bytes:
    return batch("v", producer_id=5, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)


def ask(log: PartitionLog, sequence: int = 0, epoch: int = 0, *, is_version_2: bool = False) -> Guard | Refusal | None:
    header = read_header(data(sequence, epoch))
    return log.producers.ask(header, is_version_2=is_version_2, wall_ms=at(0).wall_ms)


def asked(log: PartitionLog, sequence: int = 0, epoch: int = 0, *, is_version_2: bool = False) -> Guard:
    guard = ask(log, sequence, epoch, is_version_2=is_version_2)
    assert isinstance(guard, Guard)
    return guard


def write(log: PartitionLog, guard: Guard | None, sequence: int = 0, epoch: int = 0) -> int:
    return log.append(data(sequence, epoch), 0, at(0), guard=guard, needs_guard=True).base_offset


def refused(log: PartitionLog, guard: Guard | None, sequence: int = 0, epoch: int = 0) -> ErrorCode:
    with pytest.raises(AppendRefused) as caught:
        write(log, guard, sequence, epoch)
    return caught.value.code


def mark(log: PartitionLog, epoch: int = 0, *, version: int = 0, kind: int = COMMIT) -> None:
    fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": epoch, "coordinator_epoch": 0}
    log.append(build_marker(kind, timestamp=0, **fields), 0, at(0), transaction_version=version)


def test_a_transaction_begins_under_the_guard_in_place_and_goes_on_without_one() -> None:
    log = open_log()
    assert refused(log, None) is CODE.INVALID_TXN_STATE
    write(log, asked(log))
    assert ask(log, 1) is None
    write(log, None, 1)
    assert len(log.producers.guards) == 0


@pytest.mark.case("TX-I16")
def test_a_marker_between_the_verdict_and_the_append_takes_the_guard_away() -> None:
    """KAFKA-14884: verdict, marker, append. TX-I16."""
    log = open_log()
    guard = asked(log)
    mark(log, kind=ABORT)
    assert refused(log, guard) is CODE.INVALID_TXN_STATE
    assert refused(log, Guard(0, 0, False, 0)) is CODE.INVALID_TXN_STATE
    write(log, asked(log))


def test_a_version_2_marker_leaves_the_guard_of_the_next_transaction() -> None:
    log = open_log()
    write(log, asked(log))
    guard = asked(log, epoch=1, is_version_2=True)
    mark(log, epoch=1, version=2)
    write(log, guard, epoch=1)
    guard = asked(log, epoch=2, is_version_2=True)
    mark(log, epoch=3, version=2)
    assert refused(log, guard, epoch=2) is CODE.INVALID_PRODUCER_EPOCH


@pytest.mark.case("TX-I17")
def test_a_later_sequence_does_not_overtake_one_that_was_asked_about() -> None:
    """KAFKA-14920. TX-I17."""
    log = open_log()
    guard = asked(log, 0)
    assert asked(log, 1) is guard
    assert refused(log, guard, 1) is CODE.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, guard, 0)
    write(log, None, 1)


@pytest.mark.case("TX-I07")
def test_an_unknown_producer_starts_at_zero_under_version_2_alone() -> None:
    """TX-I07: a retry after the state was lost must not be taken twice."""
    log = open_log()
    guard = asked(log, 5, is_version_2=True)
    assert refused(log, guard, 5) is CODE.OUT_OF_ORDER_SEQUENCE_NUMBER
    log = open_log()
    write(log, asked(log, 5), 5)


@pytest.mark.case("TX-I06", "TX-I09")
def test_duplicates_and_old_epochs_need_no_guard() -> None:
    log = open_log()
    write(log, asked(log))
    mark(log)
    assert write(log, None) == 0
    mark(log, epoch=1, version=2)
    refusal = ask(log)
    assert isinstance(refusal, Refusal)
    assert refusal.code is CODE.INVALID_PRODUCER_EPOCH
    assert refused(log, None) is CODE.INVALID_PRODUCER_EPOCH


def test_guards_of_batches_that_never_came_go_with_silent_producers() -> None:
    log = open_log()
    asked(log)
    log.producers.expire(at(999).wall_ms, 1000)
    assert len(log.producers.guards) == 1
    log.producers.expire(at(1000).wall_ms, 1000)
    assert len(log.producers.guards) == 0


@pytest.mark.case("TX-J12")
def test_the_last_stable_offset_is_never_below_the_log_start() -> None:
    """TX-J12: DeleteRecords over the start of an open transaction."""
    log = open_log()
    write(log, asked(log))
    write(log, None, 1)
    log.delete_records_before(1)
    assert log.last_stable_offset == 1
    assert log.high_watermark == 2
