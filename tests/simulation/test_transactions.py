"""Transactions under faults: rules hold for every seed, everything ends once faults stop. (transactions.md 24)"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from partita.broker.transactions import marker_sender
from partita.group.guards import MEMBER_GUARDS, first_error
from partita.group.offsets import transactional
from partita.group.records.hard_state import HardState
from partita.log.producer_state import ProducerStates
from partita.producer import answers, core
from partita.producer.accumulator import PartitionQueue
from partita.producer.answers import Place
from partita.producer.answers import Verdict as BatchVerdict
from partita.protocol.error_codes import ErrorCode
from partita.records.fetched_batches import FetchedBatches
from partita.sim.run import Verdict, run_transactions, simulate_transactions
from partita.sim.transactions.plan import KINDS, Plan, draw
from partita.sim.transactions.progress import ProgressRules
from partita.sim.transactions.simulation import Simulation
from partita.sim.transactions.stage import PARTITIONS
from partita.sim.world.world import Dice, Trace
from partita.transactions import end, shard
from partita.transactions.contract import Reply, SendMarkers
from partita.transactions.coordinator import TransactionCoordinator
from partita.transactions.log_records import record_of
from partita.transactions.model import Transaction
from partita.transactions.shard import Entry, Turn

SAFETY, LIVENESS = range(1, 4), range(1, 6)
SEEDS_MAX = 40
NOTICED_BY = {
    "completed_after_the_first_marker": 4, "timeouts_are_forgotten": 5,
    "markers_for_a_deleted_topic_are_waited_for": 20, "pending_offsets_are_not_waited_for": 9,
}  # fmt: skip
"""Seeds that are tried before the others, for mutants that the first ones do not notice."""
_PRINT = "from partita.sim.run import *; print([simulate_transactions(s, minutes=0.05).digest for s in (1, 2)])"


def _told(verdict: Verdict[Plan]) -> str:
    lines = "\n".join([*verdict.plan.lines(), *verdict.trace.lines()])
    return f"seed {verdict.seed}: {verdict.broken}\n{lines}"


@pytest.mark.case("TX-R01", "TX-R02", "TX-M07", "TX-N15")
@pytest.mark.parametrize("seed", SAFETY)
def test_every_rule_holds_under_faults(seed: int) -> None:
    verdict = simulate_transactions(seed, minutes=0.2)
    assert verdict.broken is None, _told(verdict)


@pytest.mark.case("TX-R01", "TX-R02", "TX-R03", "TX-N16", "TX-K08")
@pytest.mark.parametrize("seed", LIVENESS)
def test_once_healed_every_transaction_ends_and_is_whole(seed: int) -> None:
    verdict = simulate_transactions(seed, liveness=True, minutes=0.2)
    assert verdict.broken is None, _told(verdict)


def test_a_late_end_of_an_old_client_may_end_its_next_transaction() -> None:
    """KIP-890: before version 2 of transactions no broker can tell, and so no rule is broken."""
    verdict = simulate_transactions(50083, liveness=True, minutes=2)
    assert verdict.broken is None, _told(verdict)


def test_seeds_reach_every_fault_and_every_version() -> None:
    plans = [draw(Dice(f"partita transactions {seed} True")) for seed in range(60)]
    assert {kind for plan in plans for kind, _ in plan.faults} == set(KINDS)
    assert {plan.level for plan in plans} == {0, 1, 2}
    assert {plan.old_clients for plan in plans} == {0.0, 0.3, 1.0}
    assert {plan.copiers for plan in plans} == {0, 1, 2}
    assert {plan.group_protocol for plan in plans} == {"none", "classic", "consumer"}


def test_transactions_go_on_in_partitions_that_were_added_under_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """TF9 of transactions.md 24.2."""
    healed: list[Simulation] = []
    heal = Simulation.heal

    def noted(self: Simulation) -> None:
        healed.append(self)
        heal(self)

    monkeypatch.setattr(Simulation, "heal", noted)
    plan: Plan = replace(draw(Dice("1")), **(LIVELY | {"faults": (("add_partition", 1_500),)}))
    verdict = run_transactions(1, plan, Trace(), liveness=True, minutes=0.1)
    assert verdict.broken is None, _told(verdict)
    added = [model for (topic, index), model in healed[0].watch.models.items() if (topic, index) >= ("t", PARTITIONS)]
    assert any(model.committed() for model in added)


def test_a_seed_is_the_same_history_in_another_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert told == {str([simulate_transactions(seed, minutes=0.05).digest for seed in (1, 2)])}


# --- what the rules notice --------------------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


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


def answers_before_the_record_is_durable(patch: pytest.MonkeyPatch) -> None:
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


def readers_keep_aborted_producers(patch: pytest.MonkeyPatch) -> None:
    """The consumer drops what comes after the abort marker, too."""
    patch.setattr(FetchedBatches, "_ends_in_abort", lambda *args: False)


def markers_of_earlier_epochs_are_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "check_marker", lambda *args: None)


def markers_for_a_deleted_topic_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    take = marker_sender._Sending._take

    def wait(self: Any, name: Any, code: ErrorCode) -> None:
        is_there = self._sender.partition(name) is not None
        take(self, name, code if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    patch.setattr(marker_sender._Sending, "_take", wait)


def replaced_members_commit_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """KIP-447"""
    patch.setattr(transactional, "first_error", lambda g, of: 0 if g is MEMBER_GUARDS else first_error(g, of))
    patch.setattr(transactional, "transaction_error", lambda *args: ErrorCode.NONE)


def pending_offsets_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HardState, "pending_partitions", lambda *args: [])


def what_version_2_decided_cannot_be_stored_below(patch: pytest.MonkeyPatch) -> None:
    """As in Kafka: a level that is lowered leaves such a transactional id unusable."""

    def store(transaction: Transaction, level: int) -> Any:
        assert level or not transaction.client_version, "version 0 has no room"
        return record_of(transaction, level)

    patch.setattr(shard, "record_of", store)


def judged(patch: pytest.MonkeyPatch, worse: Callable[[BatchVerdict, Place], bool]) -> None:
    """Let batches fail that the producer sends again."""

    def judge(code: ErrorCode, place: Place, *, names_records: bool = False) -> BatchVerdict:
        verdict = answers.judge(code, place, names_records=names_records)
        return BatchVerdict.FAILED if worse(verdict, place) else verdict

    patch.setattr(core, "judge", judge)


def what_follows_a_refused_batch_fails(patch: pytest.MonkeyPatch) -> None:
    """Audit of the clients, D1: out of order counted as lost once the refused batch was done."""
    judged(patch, lambda verdict, place: verdict is BatchVerdict.BEHIND and place.is_first)


def batches_that_are_too_large_fail(patch: pytest.MonkeyPatch) -> None:
    """Audit of the clients, D2."""
    judged(patch, lambda verdict, place: verdict is BatchVerdict.HALVES)


def neighbours_of_a_refused_record_fail(patch: pytest.MonkeyPatch) -> None:
    """As in Kafka's own producer."""
    judged(patch, lambda verdict, place: verdict is BatchVerdict.IN_PART)


def numbers_that_may_be_in_the_log_are_given_up(patch: pytest.MonkeyPatch) -> None:
    """Kafka: unresolved sequences."""
    patch.setattr(PartitionQueue, "needs_epoch", lambda self, batch: self.must_bump)


LIVELY: dict[str, Any] = {
    "writers": 4, "ids": 2, "copiers": 1, "group_protocol": "none", "readers": 1, "level": 2, "old_clients": 0.3,
    "records_max": 4, "pause_ms": 0, "linger_ms": 0, "transaction_ms": 2_000, "delay_ms": 5, "slow_up": False,
    "slow_down": False, "sync_ms": 5, "marker_delay_ms": 5, "marker_loss": 0.2, "first_epoch": -1,
    "faults": (("kill_client", 1_500), ("move_states", 1_500), ("pause_client", 1_500), ("crash_broker", 5_000)),
}  # fmt: skip
MEMBERS = {"copiers": 2, "group_protocol": "classic", "transaction_ms": 6_000}
JUMPS = {"faults": (("jump_clock", 500),)}
SLOW_MARKERS = {"marker_delay_ms": 2_000}
MUTANTS: tuple[tuple[Patch, dict[str, Any], set[str]], ...] = (
    (no_guard, {}, {"TI7"}),
    (loads_resend_nothing, {"faults": (("move_states", 300),), "marker_delay_ms": 2_000}, {"TL1", "TL2", "TL6"}),
    (completed_after_the_first_marker, {"marker_delay_ms": 2_000}, {"TL1", "TL2", "TI6", "TI1"}),
    (markers_before_the_decision_is_durable, {"sync_ms": 100, "marker_delay_ms": 0}, {"TI6"}),
    (answers_before_the_record_is_durable, {"sync_ms": 100}, {"TI12", "TI7"}),
    (timeouts_are_forgotten, {"ids": 4}, {"TL1", "TL2"}),
    (markers_of_earlier_epochs_are_taken, {"faults": (("forge_marker", 200),)}, {"TI6"}),
    (
        markers_for_a_deleted_topic_are_waited_for,
        {**SLOW_MARKERS, "faults": (("delete_topic", 500),)},
        {"TL1", "TL2", "TL6"},
    ),
    (replaced_members_commit_in_transactions, {**MEMBERS, **JUMPS}, {"TI11"}),
    (pending_offsets_are_not_waited_for, {**MEMBERS, **SLOW_MARKERS, **JUMPS}, {"TI11"}),
    (
        what_version_2_decided_cannot_be_stored_below,
        {**SLOW_MARKERS, "faults": (("change_level", 300),)},
        {"E", "ASSERT", "TL2"},
    ),
    (readers_keep_aborted_producers, {"old_clients": 1.0}, {"TI2", "TI11"}),
    (what_follows_a_refused_batch_fails, {"faults": ()}, {"TI15"}),
    (batches_that_are_too_large_fail, {"faults": ()}, {"TI15"}),
    (neighbours_of_a_refused_record_fail, {"faults": ()}, {"TI15"}),
    (
        numbers_that_may_be_in_the_log_are_given_up,
        {"faults": (("jump_clock", 50),), "sync_ms": 100},
        {"TI15"},
    ),
)


def test_members_with_successors_are_given_the_time_of_their_sessions() -> None:
    """Each of them is fenced only when it has a partition, which then waits for its session: one after the other.

    They begin after the faults have ended, as the successors of paused clients may.
    """
    calm = {"faults": (), "copiers": 2, "group_protocol": "consumer", "old_clients": 0.0, "marker_loss": 0.0}
    simulation = Simulation(1, replace(draw(Dice("1")), **(LIVELY | calm)), Trace())
    simulation.world.run(3_000)
    for client in [one for one in simulation.clients if one.name.startswith("copy")]:
        client.kill()
    for begins_ms in range(3_000, 8_000, 1_000):
        simulation.world.after(begins_ms, simulation.start, "copy0")
    simulation.heal()
    ProgressRules(simulation).judge()
    assert simulation.world.ms > 5_000 + 2 * 45_000, "no member waited for another's session"


@pytest.mark.case("TX-R04")
@pytest.mark.parametrize(("mutant", "shape", "rules"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_rule_is_noticed(
    mutant: Patch, shape: dict[str, Any], rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    seen = set()
    for seed in (NOTICED_BY.get(mutant.__name__, 0), *range(SEEDS_MAX)):
        plan: Plan = replace(draw(Dice(str(seed))), **(LIVELY | shape))
        verdict = run_transactions(seed, plan, Trace(), liveness=True, minutes=0.05)
        if verdict.broken is not None:
            seen.add(verdict.broken.partition(":")[0])
            if seen & rules:
                return
    raise AssertionError(f"nothing noticed it but {seen}")
