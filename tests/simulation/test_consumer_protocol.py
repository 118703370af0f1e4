"""Histories of KIP-848 groups, and of groups that change between the protocols; faults that their rules notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from partita.assignors.server_side import UniformAssignor
from partita.broker.groups.reply_gate import ReplyGate
from partita.consumer.group.reconciliation import Reconciliation
from partita.group.consumer_group import change, conversion, heartbeat, leaving, outcomes, timers
from partita.group.consumer_group.change import Change
from partita.group.consumer_group.heartbeat import FENCED, REMOVE, SET_ASIDE, TAKE_OVER, Beat, Who
from partita.group.consumer_group.reconcile import GO_ON, RECONCILE, Reconciling, reconcile
from partita.group.offsets import consumer_groups
from partita.group.records import consumer_log
from partita.group.records.consumer_group import NO_PARTITIONS, MemberState
from partita.protocol.error_codes import ErrorCode
from partita.sim.fault_plan import CONSUMER, MIXED, PROTOCOLS, draw, with_protocol
from partita.sim.run import Verdict, run_plan, simulate
from partita.sim.world.world import Dice, Trace

SEEDS_MAX = 25
NOTICED_BY = {"what_is_to_be_given_up_counts_as_given_up": 9}
"""Seeds that are tried before the others, for mutants that the first ones do not notice."""
LIVELY: dict[str, Any] = {
    "clients": 3, "partitions": (4,), "work_ms": 20, "callback_ms": 5, "delay_ms": 5, "slow_up": False,
    "slow_down": False, "max_poll_records": 5, "records_per_second": 5, "initial_delay_ms": 0, "join_version": 9,
    "stranger_ms": 0, "keeper_ms": 0, "retention_ms": 604_800_000, "sync_ms": 0, "static": False, "commit": "auto",
    "solve_ms": 0, "interval_ms": 0, "server_assignor": "uniform",
}  # fmt: skip
CHURN = (("close_client", 4_000), ("kill_client", 4_000))
Patch = Callable[[pytest.MonkeyPatch], None]


def told(verdict: Verdict[Any]) -> str:
    lines = "\n".join([*verdict.plan.lines(), *verdict.trace.lines()])
    return f"seed {verdict.seed}: {verdict.broken}\n{lines}"


@pytest.mark.case("GC-V04")
@pytest.mark.parametrize(("seed", "protocol"), [*product(range(6), (CONSUMER, MIXED))])
def test_every_rule_holds_and_the_group_makes_progress_once_healed(seed: int, protocol: str) -> None:
    verdict = simulate(seed, protocol=protocol, liveness=seed % 2 == 0, minutes=0.6)
    assert verdict.broken is None, told(verdict)


def test_a_static_member_that_stayed_away_from_a_classic_generation_may_be_replaced_after_a_downgrade() -> None:
    """Seed 1202: it is still a member, and what it had has another owner; it hears so with its next request."""
    verdict = simulate(1202, protocol=MIXED, liveness=True, minutes=1.4)
    assert verdict.broken is None, told(verdict)


def test_a_member_that_was_let_in_again_under_its_old_id_is_a_zombie_until_it_hears_so() -> None:
    """Seed 1348: a classic member, removed in a KIP-848 group, joins with the id it had and the partitions it had."""
    verdict = simulate(1348, protocol=MIXED, liveness=True, minutes=0.5)
    assert verdict.broken is None, told(verdict)


def test_a_group_that_became_classic_before_a_crash_rebalances_after_it() -> None:
    """Seed 2238: the last member of the new protocol is gone, and the broker dies before anybody hears of it."""
    verdict = simulate(2238, protocol=MIXED, liveness=True, minutes=1.05)
    assert verdict.broken is None, told(verdict)


def test_the_seeds_together_reach_what_they_are_for() -> None:
    plans = [with_protocol(draw(Dice(seed)), MIXED, Dice(seed)) for seed in range(30)]
    assert {plan.changes_ms for plan in plans} == {(), (20_000,), (0, 30_000), (15_000, 45_000)}
    assert {plan.solve_ms for plan in plans} == {0, 50, 3_000}
    assert {draw(Dice(seed)).protocol for seed in range(3)} == {PROTOCOLS[0]}


@pytest.mark.parametrize("protocol", [CONSUMER, MIXED])
def test_a_seed_is_the_same_history_again(protocol: str) -> None:
    first, again = (simulate(5, protocol=protocol, minutes=0.4) for _ in range(2))
    assert first.events > 100
    assert (first.digest, first.events) == (again.digest, again.events)


# Planted faults


def partitions_are_given_while_others_have_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(change, "reconcile", lambda asked: reconcile(asked._replace(is_free=lambda partition: True)))


def nobody_waits_for_what_is_given_up(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(RECONCILE, MemberState.UNREVOKED_PARTITIONS, (GO_ON, GO_ON, GO_ON))


def what_is_to_be_given_up_counts_as_given_up(patch: pytest.MonkeyPatch) -> None:
    def wrong(asked: Reconciling) -> Any:
        return reconcile(asked._replace(owned=frozenset() if asked.owned is None else asked.owned))

    patch.setattr(change, "reconcile", wrong)


def old_epochs_beat_on(patch: pytest.MonkeyPatch) -> None:
    def wrong(turn: Any, beat: Beat, group: Any) -> Any:
        before = group.members[beat.wire.member_id]
        return heartbeat._answer(turn, beat, Change(group, before, heartbeat.updated(before, beat), False, beat.owned))

    patch.setitem(heartbeat.MEMBERS, Who.MEMBER, (heartbeat.RETURN, wrong, REMOVE, SET_ASIDE))


def old_epochs_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consumer_groups, "epoch_error", lambda member, epoch: ErrorCode.NONE)


def the_newest_process_of_an_instance_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(heartbeat.MEMBERS, Who.RIVAL, (TAKE_OVER, FENCED, FENCED, FENCED))


def silent_members_stay(patch: pytest.MonkeyPatch) -> None:
    right = timers.start_session
    patch.setattr(timers, "start_session", lambda *about, **_: right(*about, silent_ms=-(1 << 40)))


def heartbeats_restart_no_session(patch: pytest.MonkeyPatch) -> None:
    right = timers.start_session

    def wrong(turn: Any, group_id: str, member: Any, **given: Any) -> None:
        if member.member_id not in turn.state.consumers[group_id].sessions:
            right(turn, group_id, member, **given)

    patch.setattr(timers, "start_session", wrong)


def a_member_that_goes_leaves_its_target(patch: pytest.MonkeyPatch) -> None:
    right = consumer_log.member_tombstones
    patch.setattr(consumer_log, "member_tombstones", lambda *of: [r for r in right(*of) if r.key[1] != 7])


def whoever_goes_begins_no_epoch(patch: pytest.MonkeyPatch) -> None:
    right = consumer_log.epoch_record

    def wrong(turn: Any, group: Any, *more: Any) -> None:
        patch.setattr(consumer_log, "epoch_record", lambda group_id, epoch, found: right(group_id, epoch - 1, found))
        remove(turn, group, *more)
        patch.setattr(consumer_log, "epoch_record", right)

    remove = leaving._remove
    patch.setattr(leaving, "_remove", wrong)


def a_partition_is_left_out(patch: pytest.MonkeyPatch) -> None:
    right = UniformAssignor.assign

    def wrong(*of: Any) -> Mapping[str, Any]:
        shares = dict(right(*of))
        most = max(shares, key=lambda member: len(shares[member]))
        return shares | {most: list(shares[most])[:-1]}

    patch.setattr(UniformAssignor, "assign", wrong)


def targets_are_computed_at_every_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(change, "is_due", lambda turn, group: True)


def a_late_target_forgets_who_came_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        outcomes, "_of_successors", lambda group, job, outcome: {m: NO_PARTITIONS for m in group.members} | outcome
    )


def answers_do_not_wait_for_the_log(patch: pytest.MonkeyPatch) -> None:
    release = ReplyGate.release
    patch.setattr(ReplyGate, "release", lambda gate, durable: release(gate, 1 << 60))


def a_full_heartbeat_is_told_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Beat, "is_full", property(lambda beat: False))


def an_upgrade_forgets_who_owns_what(patch: pytest.MonkeyPatch) -> None:
    right = conversion._upgraded
    patch.setattr(conversion, "_upgraded", lambda *of: replace(right(*of), assigned={}))


def members_say_that_they_gave_up_before_they_did(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reconciliation, "owned", property(lambda self: (hash(self.target), self.target)))


def what_is_taken_back_before_a_poll_is_not_reported(patch: pytest.MonkeyPatch) -> None:
    right = Reconciliation.take_target

    def wrong(self: Reconciliation, *about: Any) -> bool:
        number = self.number
        right(self, *about)
        self.number = number
        return False

    patch.setattr(Reconciliation, "take_target", wrong)


SLOW = {"clients": 6, "partitions": (7,), "work_ms": 4_000, "heartbeat_ms": 1_000, "faults": (("close_client", 1_500),)}
MUTANTS: list[tuple[Patch, dict[str, Any], set[str]]] = [
    (partitions_are_given_while_others_have_them, {"faults": CHURN}, {"N2"}),
    (nobody_waits_for_what_is_given_up, {"faults": CHURN, "work_ms": 4_000}, {"N6", "S3"}),
    (what_is_to_be_given_up_counts_as_given_up, {"faults": CHURN}, {"N6", "S3"}),
    (old_epochs_beat_on, {"faults": CHURN, "stranger_ms": 500}, {"S11"}),
    (old_epochs_commit, {"faults": CHURN, "stranger_ms": 500}, {"S12"}),
    (the_newest_process_of_an_instance_wins, {"static": True, "faults": (("twin_client", 4_000),)}, {"S13"}),
    (silent_members_stay, {"faults": (("kill_client", 5_000),)}, {"L4"}),
    (heartbeats_restart_no_session, {"faults": ()}, {"S16"}),
    (a_member_that_goes_leaves_its_target, {"faults": CHURN}, {"N1"}),
    (whoever_goes_begins_no_epoch, {"faults": CHURN}, {"N1"}),
    (a_partition_is_left_out, {"faults": ()}, {"CLIENT"}),
    (targets_are_computed_at_every_change, {"faults": CHURN, "interval_ms": 1_000}, {"N12"}),
    (a_late_target_forgets_who_came_back, {"static": True, "faults": CHURN, "solve_ms": 3_000}, {"N1"}),
    (answers_do_not_wait_for_the_log, {"faults": (("crash_broker", 4_000), *CHURN), "sync_ms": 1_000}, {"S26", "S20"}),
    (a_full_heartbeat_is_told_nothing, {"faults": (*CHURN, ("close_connection", 3_000))}, {"N10"}),
    (an_upgrade_forgets_who_owns_what, {"protocol": MIXED, "changes_ms": (5_000,), "faults": ()}, {"N6", "S3"}),
    (members_say_that_they_gave_up_before_they_did, {"faults": CHURN, "work_ms": 4_000}, {"S3"}),
    (what_is_taken_back_before_a_poll_is_not_reported, SLOW, {"N13"}),
]


def shaped(seed: int, shape: Mapping[str, Any]) -> Any:
    return replace(with_protocol(draw(Dice(seed)), CONSUMER, Dice(seed)), **(LIVELY | dict(shape)))


@pytest.mark.parametrize(("mutant", "shape", "rules"), MUTANTS, ids=[patch.__name__ for patch, _, _ in MUTANTS])
def test_a_mutant_is_noticed(
    monkeypatch: pytest.MonkeyPatch, mutant: Patch, shape: dict[str, Any], rules: set[str]
) -> None:
    mutant(monkeypatch)
    seeds = (NOTICED_BY.get(mutant.__name__, 0), *range(SEEDS_MAX))
    verdicts = (run_plan(s, shaped(s, shape), Trace(), liveness=False, minutes=0.6) for s in seeds)
    broken = next((verdict.broken for verdict in verdicts if verdict.broken is not None), "nothing")
    assert broken.partition(":")[0] in rules, broken


def test_without_mutants_their_shapes_hold() -> None:
    for _, shape, _ in MUTANTS[::3]:
        verdict = run_plan(0, shaped(0, shape), Trace(), liveness=False, minutes=0.4)
        assert verdict.broken is None, told(verdict)


# What both protocols move


def test_the_page_shows_what_rebalances_move() -> None:
    """And only an eager one takes what its owner keeps."""
    tool = run_path(str(Path(__file__).parents[2] / "tools" / "moves.py"))
    written = tool["PAGE"].read_text()
    assert written == tool["page"](written), "run: python tools/moves.py"
    table = written.partition("<!-- end")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith(("| a member", "| rolling"))]
    assert len(rows) == 12
    assert {row[1].strip().partition(" ")[0] for row in rows if row[3].strip() != "0"} == {"classic,"}
    assert all("eager" in row[1] for row in rows if row[3].strip() != "0")
