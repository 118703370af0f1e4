"""Mutants: bugs that others have had, a line each. The rules must notice each within a few seeds, or prove nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from partita.broker.groups.reply_gate import ReplyGate
from partita.consumer.core import ConsumerCore
from partita.consumer.group import assigning
from partita.consumer.group import join_exchange as join
from partita.consumer.group.rebalance import Rebalance
from partita.group.classic import heartbeat, removal, static_members, sync
from partita.group.classic.leave import Leave
from partita.group.guards import MEMBER_GUARDS, generation_is_another
from partita.group.offsets import commit, delete, expiration, fetch
from partita.group.records.log_records import CommittedOffset
from partita.group.state import answers
from partita.group.state.model import COMPLETING, Group
from partita.group.state.shard import ShardState
from partita.group.state.stored import group_record
from partita.group.state.turn import Turn
from partita.offsets.topic_partition import OffsetAndMetadata
from partita.protocol.error_codes import ErrorCode
from partita.sim.clients.application import Application
from partita.sim.fault_plan import draw
from partita.sim.run import run_plan
from partita.sim.world.world import Dice, Trace

SEEDS_MAX = 40
NOTICED_BY = {
    "old_generations_commit": 33, "pending_ids_hold_up_joins": 36, "offsets_expire_under_members": 8,
    "offsets_expire_by_their_commit_alone": 18,
}  # fmt: skip
"""Seeds that are tried before the others, for mutants that the first ones do not notice."""
LIVELY: dict[str, Any] = {
    "clients": 3, "partitions": (4,), "work_ms": 20, "delay_ms": 5, "slow_up": False, "slow_down": False,
    "max_poll_records": 5, "records_per_second": 5, "initial_delay_ms": 0, "join_version": 9, "stranger_ms": 0,
    "keeper_ms": 0, "retention_ms": 604_800_000,
}  # fmt: skip
CHURN = (("close_client", 5_000), ("kill_client", 5_000), ("stall_connection", 5_000))
CRASHES = (("crash_broker", 5_000), ("kill_client", 5_000))
Patch = Callable[[pytest.MonkeyPatch], None]


def old_generations_commit(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-2596 and its kin."""
    patch.setattr(commit, "MEMBER_GUARDS", tuple(g for g in MEMBER_GUARDS if g[0] is not generation_is_another))


def replaced_static_members_commit(patch: pytest.MonkeyPatch) -> None:
    """The old member id of an instance is not fenced."""
    patch.setattr(commit, "MEMBER_GUARDS", ((_is_nobody, ErrorCode.UNKNOWN_MEMBER_ID),))


def _is_nobody(asked: Any) -> bool:
    return asked.instance_id not in asked.group.static or asked.generation != asked.group.generation


def pending_ids_hold_up_joins(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-7909: the last missing id expires, and nobody looks whether the join phase is over."""

    def forget(turn: Turn, group: Group, member_id: str) -> None:
        turn.state.drop_pending(group, member_id)

    patch.setattr(removal, "pending_expired", forget)


def old_generations_live(patch: pytest.MonkeyPatch) -> None:
    """Heartbeats and syncs of a generation that is over are answered as the current one's."""
    current = tuple(g for g in MEMBER_GUARDS if g[0] is not generation_is_another)
    patch.setattr(heartbeat, "HEARTBEAT_GUARDS", current)
    patch.setattr(sync, "SYNC_GUARDS", current)


def replaced_processes_leave(patch: pytest.MonkeyPatch) -> None:
    """The old member id of an instance may leave, and takes its successor along."""

    def as_holder(leave: Leave, group: Group, entry: Any) -> None:
        holder = group.static.get(entry.group_instance_id or "", entry.member_id)
        right(leave, group, entry)
        leave.member_id = holder or leave.member_id

    right = Leave.__init__
    patch.setattr(Leave, "__init__", as_holder)


def followers_assign(patch: pytest.MonkeyPatch) -> None:
    """Whoever syncs first is believed."""
    patch.setitem(sync.SYNC, COMPLETING, (sync.ASSIGN, sync.ASSIGN))


def takeovers_are_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10284: after a failover the old member id is back, and the live member is fenced."""
    patch.setattr(static_members, "group_record", lambda group, members, leader_id=None: group_record(group))


def replies_do_not_wait_for_the_log(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-2017: answered before it is durable, forgotten by the crash."""
    release = ReplyGate.release
    patch.setattr(ReplyGate, "release", lambda gate, durable: release(gate, 1 << 60))


def commits_run_ahead(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-2336's worst case: one too far."""
    right = ConsumerCore.offsets_to_commit

    def wrong(core: ConsumerCore) -> dict[Any, OffsetAndMetadata]:
        return {tp: OffsetAndMetadata(o.offset + 1, o.leader_epoch) for tp, o in right(core).items()}

    patch.setattr(ConsumerCore, "offsets_to_commit", wrong)


def applications_commit_before_they_work(patch: pytest.MonkeyPatch) -> None:
    process = Application._process

    def hasty(self: Application, records: Mapping[Any, list[int]]) -> Any:
        yield from self._commit_done({tp: offsets[-1] + 1 for tp, offsets in records.items()})
        yield from process(self, dict(records))

    patch.setattr(Application, "_process", hasty)


def eager_members_keep_partitions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rebalance, "_is_eager", property(lambda self: False))


def offsets_are_not_found(patch: pytest.MonkeyPatch) -> None:
    """A committed offset reads as none (museum 168)."""
    right = fetch._entry

    def wrong(found: Any, partition: Any) -> Any:
        answer = right(found, partition)
        answer.committed_offset = -1
        return answer

    patch.setattr(fetch, "_entry", wrong)


def assignments_are_mixed_up(patch: pytest.MonkeyPatch) -> None:
    """Everybody is handed what the leader is to have."""
    right = answers.synced
    patch.setattr(answers, "synced", lambda group, member: right(group, group.members[group.leader_id]))


def a_partition_is_left_out(patch: pytest.MonkeyPatch) -> None:
    """The last partition belongs to nobody, and its records are read by nobody."""
    right = assigning.assign

    def wrong(*arguments: Any) -> Any:
        shares = dict(right(*arguments))
        most = max(shares, key=lambda member: len(shares[member]))
        return shares | {most: list(shares[most])[:-1]}

    patch.setattr(join, "assign", wrong)


def offsets_expire_under_members(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-13636 and its kin."""
    patch.setattr(expiration, "_exempt_topics", lambda group: frozenset())


def offsets_expire_by_their_commit_alone(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-4682: a group that was quiet for the retention loses its offsets when its last member goes."""

    def wrong(committed: CommittedOffset, group: Group, wall_ms: int, retention_ms: int) -> bool:
        return committed.expire_ms == -1 and wall_ms - committed.commit_ms >= retention_ms

    patch.setattr(expiration, "is_expired", wrong)


def offsets_never_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(expiration, "is_expired", lambda *about: False)


def offsets_outlive_their_topic(patch: pytest.MonkeyPatch) -> None:
    """Museum 81."""
    patch.setattr(expiration, "_forgotten", lambda turn, group, names: [])


def groups_with_members_are_deleted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "_refuse_delete", lambda *_: ErrorCode.NONE)
    patch.setattr(ShardState, "forget", lambda state, group: None)


def offsets_of_read_topics_are_deleted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "is_subscribed", lambda group, topic: False)


def leader_epochs_of_commits_are_lost(patch: pytest.MonkeyPatch) -> None:
    """Museum 66."""
    patch.setattr(commit, "CommittedOffset", lambda offset, epoch, *rest: CommittedOffset(offset, -1, *rest))


def applications_commit_an_old_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    """Whoever continues there takes the end of that leader epoch for a cut log, and reads again."""

    def wrong(self: Application, offsets: dict[Any, int]) -> dict[Any, OffsetAndMetadata]:
        return {tp: OffsetAndMetadata(offset, 0) for tp, offset in offsets.items()}

    patch.setattr(Application, "_with_epochs", wrong)


STATIC, DYNAMIC = {"static": True}, {"static": False}
KEPT: dict[str, Any] = {"keeper_ms": 300, "faults": ()}
ENDS = (("close_client", 5_000),)
MUTANTS: list[tuple[Patch, dict[str, Any], set[str]]] = [
    (old_generations_commit, DYNAMIC | {"commit": "async", "faults": CHURN}, {"S12"}),
    (replaced_static_members_commit, STATIC | {"faults": (("twin_client", 5_000),)}, {"S12", "S13"}),
    (old_generations_live, DYNAMIC | {"stranger_ms": 500, "faults": CHURN}, {"S11"}),
    (replaced_processes_leave, STATIC | {"stranger_ms": 500, "faults": (("twin_client", 5_000),)}, {"S13"}),
    (pending_ids_hold_up_joins, DYNAMIC | {"faults": (*CHURN, ("lose_responses", 3_000))}, {"L3"}),
    (followers_assign, DYNAMIC | {"faults": CHURN}, {"S8", "S1"}),
    (takeovers_are_not_recorded, STATIC | {"faults": CRASHES, "sync_ms": 0}, {"S30", "S29"}),
    (replies_do_not_wait_for_the_log, DYNAMIC | {"faults": CRASHES, "sync_ms": 1_000}, {"S20", "S5", "S1"}),
    (commits_run_ahead, {"commit": "auto", "faults": ()}, {"S32"}),
    (applications_commit_before_they_work, {"commit": "sync", "faults": ()}, {"S32"}),
    (eager_members_keep_partitions, DYNAMIC | {"assignors": ("range",), "faults": CHURN}, {"S3"}),
    (offsets_are_not_found, {"commit": "auto", "faults": CHURN}, {"S20"}),
    (a_partition_is_left_out, DYNAMIC | {"assignors": ("range",), "faults": CHURN}, {"S2"}),
    (a_partition_is_left_out, DYNAMIC | {"assignors": ("cooperative-sticky",), "faults": CHURN}, {"S2"}),
    (assignments_are_mixed_up, DYNAMIC | {"faults": ()}, {"S1"}),
    (offsets_expire_under_members, KEPT | {"retention_ms": 8_000, "clients": 1, "work_ms": 2_000}, {"S24"}),
    (offsets_expire_by_their_commit_alone, KEPT | {"retention_ms": 4_000, "clients": 1, "faults": ENDS}, {"S24"}),
    (offsets_outlive_their_topic, KEPT, {"S20"}),
    (groups_with_members_are_deleted, KEPT, {"S25"}),
    (offsets_of_read_topics_are_deleted, KEPT, {"S25"}),
    (leader_epochs_of_commits_are_lost, KEPT, {"S20"}),
    (applications_commit_an_old_leader_epoch, {"commit": "sync", "faults": (*CHURN, ("elect_leader", 3_000))}, {"S34"}),
]


def first_broken(shape: dict[str, Any], first: int) -> str:
    """The rule that the first seed to break one breaks. Plans are given a shape in which the mutant can show."""
    for seed in (first, *range(SEEDS_MAX)):
        plan = replace(draw(Dice(seed)), **(LIVELY | shape))
        broken = run_plan(seed, plan, Trace(), liveness=False, minutes=1).broken
        if broken is not None:
            return broken.partition(":")[0]
    return f"nothing in {SEEDS_MAX} seeds"


@pytest.mark.parametrize(("mutant", "shape", "rules"), MUTANTS, ids=[patch.__name__ for patch, _, _ in MUTANTS])
def test_a_mutant_is_noticed(
    monkeypatch: pytest.MonkeyPatch, mutant: Patch, shape: dict[str, Any], rules: set[str]
) -> None:
    mutant(monkeypatch)
    assert first_broken(shape, NOTICED_BY.get(mutant.__name__, 0)) in rules


def test_an_offset_that_never_expires_is_noticed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets_never_expire(monkeypatch)
    plan = replace(draw(Dice(1)), **(LIVELY | KEPT | {"retention_ms": 8_000}))
    broken = run_plan(1, plan, Trace(), liveness=True, minutes=1).broken
    assert broken is not None
    assert broken.startswith("S24")


@pytest.mark.parametrize("shape", [shape for _, shape, _ in MUTANTS], ids=[patch.__name__ for patch, _, _ in MUTANTS])
def test_without_the_mutant_the_same_shape_holds(shape: dict[str, Any]) -> None:
    for seed in range(2):
        plan = replace(draw(Dice(seed)), **(LIVELY | shape))
        assert run_plan(seed, plan, Trace(), liveness=False, minutes=1).broken is None


TOOL = Path(__file__).parents[2] / "tools" / "mutants.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/mutants.py, whose list of faults this file keeps fresh."""
    spec = spec_from_file_location("mutants", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_every_listed_fault_can_be_planted(tool: ModuleType, tmp_path: Path) -> None:
    """Each finds its lines once in the source of today, and the result is Python."""
    source = TOOL.parents[1] / "src" / "partita"
    faults = tool.mutants()
    assert len(faults) >= 60
    for number, fault in enumerate(faults):
        package = tmp_path / str(number)
        for name, _, _ in fault.edits:
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text((source / name).read_text())
        fault.plant(package)
        for name, _, _ in fault.edits:
            compile((package / name).read_text(), name, "exec")


def test_a_fault_that_no_longer_fits_is_told(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("b = 1\n")
    with pytest.raises(ValueError, match=r"BM-000 moved: its lines stand 0 times in a\.py"):
        tool.Mutant("BM-000", "g", "moved", [("a.py", "c = 1", "c = 2")]).plant(tmp_path)


def test_the_tool_names_the_test_that_notices(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tool.TESTS, "g", ("tests/scenarios/group/capacity.txt",))
    full = next(fault for fault in tool.mutants() if fault.row == "BM-024")
    by_test, by_seed = tool.judge(full, seeds=0, seconds=120)
    assert by_test.startswith("tests/scenarios/group/capacity.txt::")
    assert by_seed == "histories have no limit of members", "the reason that the list gives"
    edits = [("group/config.py", '"""The coordinator', '"""The same coordinator')]
    harmless = tool.Mutant("BM-000", "g", "nothing", edits)
    assert tool.judge(harmless, seeds=0, seconds=120)[0] == ""
