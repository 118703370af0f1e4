"""Each rule of groups is broken by a history that is wrong in just that way, and by no other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from partita.group.classic import rebalance
from partita.group.requests import DeleteGroup
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from partita.sim.rules.rule import RuleBroken
from support.sim.court import GROUP, Court

Change = Callable[[Any], None]


def set_(**fields: object) -> Change:
    """Falsify these fields of an answer."""

    def change(answer: Any) -> None:
        for name, value in fields.items():
            setattr(answer, name, value)

    return change


def breaks(rule: str, act: Callable[[], object]) -> None:
    with pytest.raises(RuleBroken) as broken:
        act()
    assert broken.value.rule == rule


def commit(generation: int, member_id: str) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    return OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=generation, member_id=member_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[part])],
    )  # fmt: skip


def accept_commit(answer: Any) -> None:
    answer.topics[0].partitions[0].error_code = 0


def test_a_right_history_breaks_nothing() -> None:
    court = Court()
    joined = court.stable()
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id)
    assert court.ask(heartbeat, 3).error_code == 0
    assert court.ask(commit(joined.generation_id, joined.member_id), 8).topics[0].partitions[0].error_code == 0
    court.pass_time(11_000)
    assert not court.coordinator.groups[GROUP].members
    court.stable()


def test_s1_another_assignment_than_the_leader_gave() -> None:
    court = Court()
    joined = court.join()
    shares = {joined.member_id: [("t", 0), ("t", 1)]}
    breaks("S1", partial(court.sync, joined, shares, set_(assignment=b"")))


@pytest.mark.parametrize(
    "shares", [{"me": [("t", 0)]}, {"me": [("t", 0), ("t", 1)], "c-other": [("t", 1)]}], ids=["left out", "twice"]
)
def test_s2_a_partition_left_out_or_given_twice(shares: dict[str, list[tuple[str, int]]]) -> None:
    court = Court()
    joined = court.join()
    named = {joined.member_id if name == "me" else name: share for name, share in shares.items()}
    breaks("S2", partial(court.sync, joined, named))


def test_s5_a_generation_that_falls() -> None:
    court = Court()
    joined = court.stable()
    breaks("S5", partial(court.join, joined.member_id, change=set_(generation_id=joined.generation_id - 1)))


def test_s5_a_generation_that_was_told_before_a_crash_is_told_again() -> None:
    court = Court()
    court.stable()
    court.lose_everything()
    breaks("S5", court.join)


def test_s6_two_leaders_of_a_generation() -> None:
    court = Court()
    joined = court.stable()
    breaks("S6", partial(court.join, joined.member_id, change=set_(generation_id=1, leader="c-other", members=[])))


def test_s6_members_for_somebody_who_does_not_lead() -> None:
    court = Court()
    breaks("S6", partial(court.join, change=set_(leader="c-other")))


def test_s8_an_assignment_that_nobody_made() -> None:
    court = Court()
    joined = court.join()
    wire = SyncGroupRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id)
    breaks("S8", partial(court.groups.answered, court.asked(99, wire, 3), SyncGroupResponse()))


@pytest.mark.parametrize("generation", [0, 2])
def test_s11_a_heartbeat_of_another_generation_succeeds(generation: int) -> None:
    court = Court()
    joined = court.stable()
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=joined.member_id)
    breaks("S11", partial(court.ask, heartbeat, 3, set_(error_code=0)))


@pytest.mark.parametrize(("generation", "member"), [(0, "me"), (1, "c-other"), (-1, "")])
def test_s12_a_commit_of_nobody_in_this_generation_succeeds(generation: int, member: str) -> None:
    court = Court()
    joined = court.stable()
    message = commit(generation, joined.member_id if member == "me" else member)
    breaks("S12", partial(court.ask, message, 8, accept_commit))


def test_s12_a_commit_before_the_assignment_succeeds() -> None:
    court = Court()
    joined = court.join()
    breaks("S12", partial(court.ask, commit(joined.generation_id, joined.member_id), 8, accept_commit))


def test_s13_a_replaced_process_lives_on() -> None:
    court = Court()
    old = court.stable("i")
    court.join(instance_id="i")
    heartbeat = HeartbeatRequest(
        group_id=GROUP, generation_id=old.generation_id, member_id=old.member_id, group_instance_id="i"
    )
    with pytest.raises(RuleBroken, match="it is no member"):
        court.ask(heartbeat, 3, set_(error_code=0))


def test_s13_a_replaced_process_leaves() -> None:
    court = Court()
    old = court.stable("i")
    court.join(instance_id="i")
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=old.member_id, group_instance_id="i")])

    def accept(answer: Any) -> None:
        answer.members[0].error_code = 0

    breaks("S13", partial(court.ask, leave, 5, accept))


def test_s13_a_member_id_is_given_again() -> None:
    court = Court()
    old = court.stable("i")
    court.join(instance_id="i")
    court.coordinator._state.new_member_id = lambda prefix: old.member_id
    breaks("S13", partial(court.join, instance_id="i"))


def test_s25_a_group_with_members_is_deleted() -> None:
    court = Court()
    court.stable()
    breaks("S25", partial(court.ask, DeleteGroup(GROUP), 2, set_(error_code=0)))


def test_s25_offsets_of_a_topic_that_is_read_are_deleted() -> None:
    court = Court()
    court.stable()
    gone = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])

    def accept(answer: Any) -> None:
        answer.topics[0].partitions[0].error_code = 0

    breaks("S25", partial(court.ask, OffsetDeleteRequest(group_id=GROUP, topics=[gone]), 0, accept))


def test_s29_the_log_does_not_say_what_the_coordinator_has() -> None:
    court = Court()
    court.stable()
    breaks("S29", partial(court.replay.loaded, court.coordinator, []))


def test_s30_a_restart_changes_what_members_have() -> None:
    court = Court()
    joined = court.stable()
    court.groups.crashing(court.coordinator, all_durable=True)
    court.coordinator.groups[GROUP].members[joined.member_id].assignment = b"another"
    breaks("S30", partial(court.groups.loaded, court.coordinator))


def test_l3_everybody_has_rejoined_and_the_join_phase_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    court = Court()
    joined = court.stable()
    court.join()  # of a second member, who waits for the first one
    monkeypatch.setattr(rebalance, "complete_if_all_joined", lambda turn, group: None)
    breaks("L3", partial(court.join, joined.member_id))
