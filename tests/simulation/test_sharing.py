"""Share groups under faults: rules hold for every seed, and every record is done with once faults stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from partita.broker.share.led import LedPartition
from partita.protocol.error_codes import ErrorCode
from partita.share.partition import acknowledging, share_partition
from partita.share.partition.flight import Flight
from partita.share.partition.model import AVAILABLE, RecordState, Write
from partita.sim.run import Verdict, simulate_sharing
from partita.sim.sharing.plan import KINDS, Plan, draw
from partita.sim.world.world import Dice

SAFETY, LIVENESS = range(1, 5), range(1, 7)
SEEDS_MAX = 30


def _shown(verdict: Verdict[Plan]) -> str:
    lines = "\n".join([*verdict.plan.lines(), *verdict.trace.lines()])
    return f"seed {verdict.seed}: {verdict.broken}\n{lines}"


@pytest.mark.parametrize("seed", SAFETY)
def test_every_rule_holds_under_faults(seed: int) -> None:
    verdict = simulate_sharing(seed, minutes=0.3)
    assert verdict.broken is None, _shown(verdict)


@pytest.mark.parametrize("seed", LIVENESS)
def test_once_healed_every_record_is_done_with(seed: int) -> None:
    verdict = simulate_sharing(seed, liveness=True, minutes=0.3)
    assert verdict.broken is None, _shown(verdict)
    assert verdict.records


def test_seeds_reach_every_fault() -> None:
    plans = [draw(Dice(f"partita sharing {seed} True")) for seed in range(60)]
    assert {kind for plan in plans for kind, _ in plan.faults} == set(KINDS)


def test_a_seed_is_the_same_history_again() -> None:
    assert simulate_sharing(3, minutes=0.1).digest == simulate_sharing(3, minutes=0.1).digest


Patch = Callable[[pytest.MonkeyPatch], None]


def locks_do_not_last(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(share_partition, "_is_due", lambda run, now_ms: run.state is RecordState.ACQUIRED)
    lock_until = share_partition.SharePartition._lock_until
    patch.setattr(share_partition.SharePartition, "_lock_until", lambda self, ms: lock_until(self, ms - 900))


def records_are_given_without_end(patch: pytest.MonkeyPatch) -> None:
    for module in (acknowledging, share_partition):
        patch.setattr(module, "given_back", lambda flight, limits, run: AVAILABLE)


def what_is_given_back_counts_as_accepted(patch: pytest.MonkeyPatch) -> None:
    for module in (acknowledging, share_partition):
        patch.setattr(module, "given_back", lambda flight, limits, run: RecordState.ACKNOWLEDGED)


def records_are_given_up_too_early(patch: pytest.MonkeyPatch) -> None:
    for module in (acknowledging, share_partition):
        patch.setattr(module, "given_back", lambda flight, limits, run: RecordState.ARCHIVED)


def the_start_passes_what_is_in_flight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Flight, "_done_to", lambda self: self.batches[-1].last)


def acknowledgements_are_answered_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    store = LedPartition._store

    def eager(self: LedPartition, write: Write) -> asyncio.Future[ErrorCode]:
        store(self, write)
        early: asyncio.Future[ErrorCode] = self._shell.loop.create_future()
        early.set_result(ErrorCode.NONE)
        return early

    patch.setattr(LedPartition, "_store", eager)


FAULTS: dict[Patch, str] = {
    locks_do_not_last: "SI1",
    records_are_given_without_end: "SI2",
    what_is_given_back_counts_as_accepted: "SI4",
    records_are_given_up_too_early: "SI4",
    the_start_passes_what_is_in_flight: "SI5",
    acknowledgements_are_answered_before_they_are_stored: "SI3",
}


@pytest.mark.parametrize(("fault", "rule"), FAULTS.items(), ids=lambda it: getattr(it, "__name__", it))
def test_a_planted_fault_is_noticed(monkeypatch: pytest.MonkeyPatch, fault: Patch, rule: str) -> None:
    fault(monkeypatch)
    broken: list[str] = []
    for seed in range(1, SEEDS_MAX):
        verdict = simulate_sharing(seed, liveness=True, minutes=0.2)
        if verdict.broken is not None:
            broken.append(verdict.broken)
            if verdict.broken.startswith(rule):
                return
    raise AssertionError(f"no seed broke {rule}: {broken}")
