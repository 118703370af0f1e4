"""Transactions under faults: promises hold for every seed, and a broken rule is found. (transactions.md 24)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from partita.log.producer_state import ProducerStates
from partita.protocol.error_codes import ErrorCode
from partita.transactions import add, end, moves
from partita.transactions.contract import Reply, SendMarkers
from partita.transactions.coordinator import TransactionCoordinator
from partita.transactions.model import Transaction
from partita.transactions.shard import Entry, Turn
from support.transactions.simulation import Simulation

SEEDS = 10
KILLED_WITHIN = 60


@pytest.mark.case("TX-R01", "TX-M07", "TX-N15", "TX-N16", "TX-K08")
@pytest.mark.parametrize("level", [2, 0])
def test_promises_hold_under_faults(level: int) -> None:
    for seed in range(SEEDS):
        Simulation(seed, level=level).run()


def no_guard(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14402: a batch begins a transaction without a question."""
    patch.setattr(ProducerStates, "ask", lambda *args, **given: None)
    patch.setattr(ProducerStates, "_check_guard", lambda *args: None)


def loads_resend_nothing(patch: pytest.MonkeyPatch) -> None:
    resume = TransactionCoordinator.resume
    patch.setattr(TransactionCoordinator, "resume", lambda self, now: resume(self, now)._replace(orders=()))


def completed_after_the_first_marker(patch: pytest.MonkeyPatch) -> None:
    done = end.markers_done

    def early(turn: Turn, decided: Any, partitions: Any) -> None:
        done(turn, decided, list(decided.partitions))

    patch.setattr(end, "markers_done", early)


def markers_before_the_decision_is_durable(patch: pytest.MonkeyPatch) -> None:
    begin = Turn.begin

    def eager(self: Turn, entry: Entry, after: Any, token: Any, on_stored: Any) -> None:
        begin(self, entry, after, token, on_stored)
        if after.state.is_decided and after.partitions:
            self.orders.append(SendMarkers(after, tuple(sorted(after.partitions))))

    patch.setattr(Turn, "begin", eager)


def epochs_need_only_be_new_enough(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-9600 and its mirror: an older epoch is taken."""

    def lax(entry: Entry, producer_id: int, epoch: int) -> ErrorCode:
        return ErrorCode.NONE if producer_id == entry.transaction.producer_id else ErrorCode.INVALID_PRODUCER_ID_MAPPING

    patch.setattr(add, "check_producer", lax)
    patch.setattr(end, "check_producer", lax)


def moves_are_true_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    begin = Turn.begin

    def eager(self: Turn, entry: Entry, after: Any, token: Any, on_stored: Any) -> None:
        begin(self, entry, after, token, on_stored)
        if token is not None:
            self.replies.append(Reply(token, on_stored))
            assert entry.move is not None
            entry.move.token = None

    patch.setattr(Turn, "begin", eager)


def timeouts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "is_timed_out", lambda self, wall_ms: False)


def markers_leave_transactions_open(patch: pytest.MonkeyPatch) -> None:
    finish = ProducerStates.end_transaction

    def forgetful(self: ProducerStates, header: Any, marker_offset: int, **given: Any) -> None:
        before = self.producers.get(header.producer_id)
        start = None if before is None else before.transaction_start
        finish(self, header, marker_offset, **given)
        if start is not None and given["is_commit"]:
            self.producers[header.producer_id].transaction_start = start

    patch.setattr(ProducerStates, "end_transaction", forgetful)


def epochs_stay_after_a_fence(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-6119: what a slow producer sends later goes into the next transaction."""
    finish = moves.end

    def lazy(transaction: Transaction, **given: Any) -> Transaction:
        ended = finish(transaction, **given)
        return ended if given["committed"] else replace(ended, epoch=transaction.epoch)

    patch.setattr(moves, "end", lazy)


MUTANTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    no_guard,
    loads_resend_nothing,
    completed_after_the_first_marker,
    markers_before_the_decision_is_durable,
    epochs_need_only_be_new_enough,
    moves_are_true_before_they_are_stored,
    timeouts_are_forgotten,
    markers_leave_transactions_open,
    epochs_stay_after_a_fence,
)


@pytest.mark.case("TX-R04")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_found(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert any(is_broken(seed) for seed in range(KILLED_WITHIN))


def is_broken(seed: int) -> bool:
    """Whether a run ends with a broken promise, or with an assertion of the rules."""
    try:
        Simulation(seed).run()
    except (AssertionError, KeyError):
        return True
    return False
