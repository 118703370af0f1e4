"""Streams groups under faults: rules hold for every seed, and every task runs in one member once faults stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from partita.group.state import settings, topology
from partita.group.streams import answering, change, heartbeat, leaving, reconcile, target, timers
from partita.sim.run import Verdict, simulate_streams
from partita.sim.streams.plan import KINDS, LARGE, Plan, draw
from partita.sim.world.world import Dice

SAFETY, LIVENESS = range(1, 5), range(1, 7)
SEEDS_MAX = 40


def _shown(verdict: Verdict[Plan]) -> str:
    lines = "\n".join([*verdict.plan.lines(), *verdict.trace.lines()])
    return f"seed {verdict.seed}: {verdict.broken}\n{lines}"


@pytest.mark.parametrize("seed", SAFETY)
def test_every_rule_holds_under_faults(seed: int) -> None:
    verdict = simulate_streams(seed, minutes=0.3)
    assert verdict.broken is None, _shown(verdict)


@pytest.mark.parametrize("seed", LIVENESS)
def test_once_healed_every_task_runs_in_one_member(seed: int) -> None:
    verdict = simulate_streams(seed, liveness=True, minutes=0.3)
    assert verdict.broken is None, _shown(verdict)
    assert verdict.targets


def test_seeds_reach_every_fault_and_large_groups() -> None:
    plans = [draw(Dice(f"partita streams {seed} True")) for seed in range(60)]
    assert {kind for plan in plans for kind, _ in plan.faults} == set(KINDS)
    assert any(plan.partitions == LARGE for plan in plans)


def test_a_seed_is_the_same_history_again() -> None:
    assert simulate_streams(3, minutes=0.1).digest == simulate_streams(3, minutes=0.1).digest


Patch = Callable[[pytest.MonkeyPatch], None]


def tasks_are_given_before_they_are_free(patch: pytest.MonkeyPatch) -> None:
    split = reconcile._split
    patch.setattr(reconcile, "_split", lambda held, target, is_taken: split(held, target, lambda task: False))


def revoked_tasks_count_as_given_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconcile, "_still_owns", lambda asked, revoking: False)


def a_target_leaves_tasks_out(patch: pytest.MonkeyPatch) -> None:
    records = target.target_records

    def fewer(turn, group, targets, previous, epoch):  # type: ignore[no-untyped-def]
        kept = {name: given._replace(active=frozenset(sorted(given.active)[1:])) for name, given in targets.items()}
        return records(turn, group, kept, previous, epoch)

    for module in (target, change):
        patch.setattr(module, "target_records", fewer)


def sources_need_not_be_even(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(topology, "_same", lambda counts: max(counts.values()))


def any_epoch_is_right(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heartbeat, "_epoch_is_right", lambda member, epoch, owned: True)


def the_epoch_of_a_lost_answer_is_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heartbeat, "_epoch_is_right", lambda member, epoch, owned: member.epoch == epoch)


def sessions_are_cut_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timers, "in_force", lambda *about: settings.in_force(*about) // (2 if timers.SESSION in about else 1))


def a_hand_over_extends_sessions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leaving, "silences", lambda turn: {})


def a_lost_answer_is_not_told_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(answering, "_is_missing_some", lambda member, owned: False)


def an_outcome_leaves_the_group_computing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(target, "take", lambda turn, job, outcome: None)


FAULTS: dict[Patch, tuple[str, int]] = {
    # The rule that notices it, and a seed from which on it soon does.
    tasks_are_given_before_they_are_free: ("ST1", 1),
    revoked_tasks_count_as_given_up: ("ST1", 1),
    a_target_leaves_tasks_out: ("ST3", 1),
    sources_need_not_be_even: ("ST4", 2),
    any_epoch_is_right: ("ST5", 26),
    the_epoch_of_a_lost_answer_is_fenced: ("ST5", 5),
    sessions_are_cut_short: ("ST6", 2),
    a_hand_over_extends_sessions: ("ST6", 9),
    a_lost_answer_is_not_told_again: ("SL1", 130),
    an_outcome_leaves_the_group_computing: ("SL1", 6),
}


@pytest.mark.parametrize(("fault", "expected"), FAULTS.items(), ids=lambda it: getattr(it, "__name__", "at"))
def test_a_planted_fault_is_noticed(monkeypatch: pytest.MonkeyPatch, fault: Patch, expected: tuple[str, int]) -> None:
    fault(monkeypatch)
    rule, first = expected
    broken: list[str] = []
    for seed in range(first, first + SEEDS_MAX):
        verdict = simulate_streams(seed, liveness=True, minutes=0.2)
        if verdict.broken is not None:
            broken.append(verdict.broken)
            if verdict.broken.startswith(rule):
                return
    raise AssertionError(f"no seed broke {rule}: {broken}")
