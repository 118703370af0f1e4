"""What a group waits for, and until when. (Issue 30, item 7)"""

from __future__ import annotations

from support.group.world import World


def waits(*commands: str) -> list[tuple[str, str, int | None]]:
    """The timers of group g after these commands, without the one for offsets."""
    world = World()
    world.run(list(commands))
    shell = world.shell
    found = shell.shard.timers_of("g", shell.clock.now())
    return [(timer.what, timer.member_id, timer.left_ms) for timer in found if not timer.what.startswith("offsets")]


def test_an_id_that_was_issued_is_kept_for_a_session() -> None:
    assert waits("A join S=10000", "+4000") == [("id is forgotten if no join brings it", "A-1", 6_000)]


def test_a_join_phase_has_an_end_and_its_requests_wait() -> None:
    assert waits("A join", "A join", "+1000") == [
        ("join phase ends without those that are missing", "", 2_000),
        ("a newcomer may wait for its first answer", "A-1", 299_000),
        ("JoinGroup waits for the others", "A-1", None),
    ]


def test_a_stable_group_waits_for_the_silence_of_each_member() -> None:
    found = waits("stable A B", "+1000")
    assert [what for what, _, _ in found] == ["session ends", "session ends"]
    assert sorted(who for _, who, _ in found) == ["A-1", "B-2"]


def test_a_follower_that_syncs_early_waits_and_the_leader_has_a_deadline() -> None:
    found = waits("stable A B", "C join", "C join", "A join", "B join", "B sync")
    assert {what for what, _, _ in found} == {
        "members that have not synced are removed", "session ends", "SyncGroup waits for the others",
    }  # fmt: skip


def test_a_group_that_is_not_there_waits_for_nothing() -> None:
    assert waits("A heartbeat id=x g=1") == []
