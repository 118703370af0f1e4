"""Many members and many groups: what stays independent, and what must not cost more than it has to."""

from __future__ import annotations

import pytest

from partita.group.config import GroupConfig
from partita.group.state.model import PREPARING, STABLE
from partita.now import Now
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from support.broker.raw import commit_request
from support.group.shell import GroupShell
from support.group.world import World

PROTOCOLS = [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")]


def join(group_id: str, member_id: str = "", session_ms: int = 10_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=PROTOCOLS,
    )


def stable(shell: GroupShell, group_id: str, count: int, session_ms: int = 10_000) -> list[str]:
    """A stable group of `count` members of an old client; returns their ids, the leader's first."""
    tokens = [shell.send(join(group_id, session_ms=session_ms), 3) for _ in range(count)]
    while tokens[0] not in shell.answered:
        shell.advance(1000)
    answers = [shell.answered[token] for token in tokens]
    assert all(isinstance(answer, JoinGroupResponse) for answer in answers)
    ids: list[str] = [answer.member_id for answer in answers]  # type: ignore[attr-defined]  # the answer to what was asked
    shares = [SyncGroupRequestAssignment(member_id=member_id, assignment=member_id.encode()) for member_id in ids]
    for member_id in [*ids[1:], ids[0]]:
        assignments = shares if member_id == ids[0] else []
        generation: int = answers[0].generation_id  # type: ignore[attr-defined]  # the answer to what was asked
        message = SyncGroupRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, assignments=assignments
        )
        shell.send(message, 4)
    return ids


@pytest.mark.case("GC-V01", "BM-028", "BM-031")
def test_two_hundred_members_that_join_at_once_make_one_generation() -> None:
    shell = GroupShell()
    ids = [shell.ask(join("g"), 9, f"c{n}").member_id for n in range(200)]  # type: ignore[attr-defined]  # the answer to what was asked
    tokens = [shell.send(join("g", member_id), 9) for member_id in ids]
    assert not any(token in shell.answered for token in tokens)
    shell.advance(9000)
    answers = [shell.answered[token] for token in tokens]
    assert len(set(ids)) == 200
    assert {(a.generation_id, a.leader, a.error_code) for a in answers} == {(1, ids[0], 0)}  # type: ignore[attr-defined]  # the answer to what was asked
    assert [len(a.members) for a in answers] == [200] + [0] * 199  # type: ignore[attr-defined]  # the answer to what was asked


@pytest.mark.case("GC-V06")
def test_deadlines_of_a_thousand_groups_do_not_meet() -> None:
    """Of a thousand groups of one member, every tenth falls silent: those and no others become empty."""
    shell = GroupShell(checks=False)
    members = {f"g{n}": stable_at_once(shell, f"g{n}") for n in range(1000)}
    shell.advance(3000)
    for group_id, member_id in members.items():
        shell.send(SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member_id), 4)
    for _ in range(4):
        for number, (group_id, member_id) in enumerate(members.items()):
            if number % 10:
                beat = HeartbeatRequest(group_id=group_id, generation_id=1, member_id=member_id)
                assert shell.ask(beat, 4).error_code == 0  # type: ignore[attr-defined]  # the answer to what was asked
        shell.advance(5000)
    shell.check()
    groups = shell.shard.groups
    assert [g.group_id for g in groups.values() if g.state is not STABLE] == [f"g{n}" for n in range(0, 1000, 10)]


def stable_at_once(shell: GroupShell, group_id: str) -> str:
    shell.send(join(group_id), 3)
    return next(iter(shell.shard.groups[group_id].members))


def test_a_heartbeat_moves_no_wake_up() -> None:
    """Ten thousand members: a session's worth of heartbeats leaves one wake-up in the heap, not ten thousand."""
    shell = GroupShell(checks=False)
    ids = stable(shell, "g", 10_000, session_ms=30_000)
    for _ in range(3):
        for member_id in ids:
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
            assert shell.shard.heartbeat(beat, shell.clock.now().mono_ms) == 0
        assert len(shell.shard._state.wakes) < 10
        shell.advance(20_000)
    group = shell.shard.groups["g"]
    assert (group.state, len(group.members)) == (STABLE, 10_000)
    shell.advance(40_000)
    assert len(group.members) == 0
    shell.check()


def test_when_many_leave_one_by_one_the_group_follows() -> None:
    shell = GroupShell()
    ids = stable(shell, "g", 50)
    for member_id in ids[:-1]:
        shell.take(shell.shard.evict_member("g", member_id, shell.clock.now()))
    group = shell.shard.groups["g"]
    assert (group.state, list(group.members), group.leader_id) == (PREPARING, ids[-1:], ids[-1])


@pytest.mark.case("GC-V10")
def test_a_rolling_restart_of_static_members_bumps_nothing_and_of_dynamic_ones_much() -> None:
    names = [f"M{n}" for n in range(10)]
    static = World()
    static.run(["stable " + " ".join(f"{name}/{name.lower()}" for name in names)])
    for name in names:
        static.run([f"{name} join new"])
    assert static.run(["group"])[0].startswith("g Stable generation=1 ")
    dynamic = World()
    dynamic.run(["stable " + " ".join(names)])
    for name in names:
        dynamic.run([f"{name} leave", f"{name} join new", f"{name} join"])
        dynamic.run([f"{other} join" for other in names if other != name])
        leader = dynamic.shell.shard.groups["g"].leader_id or ""
        dynamic.run([f"{leader.split('-')[0]} sync v=4"])
    assert dynamic.shell.shard.groups["g"].generation >= 11


@pytest.mark.case("BM-037")
def test_answering_never_calls_back_into_the_coordinator() -> None:
    """Replies are values: whoever is answered and asks again at once meets a coordinator between two steps."""
    shell = GroupShell()
    for number in range(5):
        shell.send(join("g"), 3)
        shell.send(join("h"), 3)
        assert number < 5
    step = None
    while step is None or not step.replies:
        shell.clock.advance(3000)
        step = shell.shard.on_deadline(shell.clock.now())
    shell.release(step)
    for reply in step.replies:
        message = reply.message
        assert isinstance(message, JoinGroupResponse)
        for group_id in ("g", "h"):
            beat = HeartbeatRequest(group_id=group_id, generation_id=1, member_id=message.member_id)
            shell.ask(beat, 4)
    shell.check()


@pytest.mark.case("GC-V08")
def test_an_answer_nobody_takes_leaves_nothing_behind() -> None:
    """The shell drops answers of closed connections; the coordinator has forgotten the token by then."""
    shell = GroupShell()
    token = shell.send(join("g"), 3)
    shell.advance(3000)
    assert token in shell.answered
    assert shell.shard._outbox.parked == 0
    shell.advance(10_000)
    assert not shell.shard.groups["g"].members


@pytest.mark.case("BM-050")
def test_a_group_record_larger_than_any_buffer_loads() -> None:
    shell = GroupShell(config=GroupConfig(max_message_bytes=100_000_000), checks=False)
    ids = stable(shell, "g", 2_000, session_ms=60_000)
    shell.reload(tell=False)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=ids[-1])
    assert shell.ask(beat, 4).error_code == 0  # type: ignore[attr-defined]  # the answer to what was asked
    token = shell.send(SyncGroupRequest(group_id="g", generation_id=1, member_id=ids[7]), 4)
    answer = shell.answered[token]
    assert isinstance(answer, SyncGroupResponse)
    assert bytes(answer.assignment) == ids[7].encode()


def test_a_sweep_larger_than_a_batch_is_done_in_slices() -> None:
    from support.group.world import World as Words

    world = Words()
    world.shell.checks = False
    for start in range(0, 5000, 1000):
        parts = " ".join(f"t-{n}=1" for n in range(start, start + 1000))
        world.run([f"X commit {parts}"])
    before = len(world.shell.log)
    world.run(["topics-deleted t"])
    batches = world.shell.log[before:]
    assert [len(entry.records) for entry in batches] == [1000] * 5 or len(batches) > 1
    assert world.run(["X fetch all"]) == ["X <- OffsetFetch NONE"]
    world.shell.check()


def test_a_sweep_of_many_groups_that_finds_nothing_is_done_in_slices() -> None:
    """10,000 groups held all others up for 0.1 s whenever expired offsets were looked for."""
    shell = GroupShell()
    shell.checks = False
    for number in range(600):
        shell.ask(commit_request(f"g{number}", 1), 8)
    due_ms = shell.shard.next_deadline_ms()
    assert due_ms is not None
    later = Now(due_ms, shell.clock.now().wall_ms + due_ms)
    slices = 0
    while (next_ms := shell.shard.next_deadline_ms()) is not None and next_ms <= due_ms:
        assert shell.shard.on_deadline(later).records == ()
        slices += 1
    assert 4 < slices < 10
