"""Each rule of what members say and hear is broken by a coordinator that is wrong in just that way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from partita.group.classic import join, rebalance, removal
from partita.group.state.model import COMPLETING, EMPTY, NO_DEADLINE, PREPARING, STABLE
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.sim.rules.rule import RuleBroken
from support.sim.court import GROUP, Court


def breaks(rule: str, act: Callable[[], object]) -> None:
    with pytest.raises(RuleBroken) as broken:
        act()
    assert broken.value.rule == rule


def says(error: ErrorCode) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        answer.error_code = error

    return change


def heartbeat(court: Court, joined: Any, change: Callable[[Any], None] = lambda answer: None) -> Any:
    message = HeartbeatRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id)
    return court.ask(message, 3, change)


def commit(court: Court, joined: Any, change: Callable[[Any], None] = lambda answer: None) -> Any:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    message = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[part])],
    )  # fmt: skip
    return court.ask(message, 8, change)


def test_a_right_history_breaks_nothing() -> None:
    court = Court()
    first = court.stable()
    for _ in range(3):
        court.pass_time(8_000)
        assert heartbeat(court, first).error_code == 0
    waiting = court.join()
    assert waiting is None
    assert heartbeat(court, first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    commit(court, first)
    again = court.join(first.member_id, topics=("t", "u"))
    assert again.generation_id == 2
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=first.member_id)])
    court.ask(leave, 5)
    court.pass_time(30_000)
    assert not court.coordinator.groups[GROUP].members


@pytest.mark.parametrize(
    ("rejoins", "wrong"), [(False, ErrorCode.REBALANCE_IN_PROGRESS), (True, ErrorCode.NONE)], ids=["stable", "joining"]
)
def test_s11_a_heartbeat_hears_of_another_state(rejoins: bool, wrong: ErrorCode) -> None:
    court = Court()
    joined = court.stable()
    if rejoins:
        court.join()
    breaks("S11", partial(heartbeat, court, joined, says(wrong)))


def test_s12_a_member_may_not_commit_before_it_rejoins() -> None:
    court = Court()
    joined = court.stable()
    court.join()

    def refuse(answer: Any) -> None:
        answer.topics[0].partitions[0].error_code = ErrorCode.REBALANCE_IN_PROGRESS

    breaks("S12", partial(commit, court, joined, refuse))


def test_s13_a_static_member_is_fenced_by_nobody() -> None:
    court = Court()
    joined = court.stable("i")
    breaks("S13", partial(court.join, joined.member_id, "i", says(ErrorCode.FENCED_INSTANCE_ID)))


def test_s14_a_newcomer_is_admitted_without_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(join.JOIN, EMPTY, (join.ADMIT, *join.JOIN[EMPTY][1:]))
    breaks("S14", partial(Court().join, version=9))


def test_s15_a_follower_that_says_nothing_new_causes_a_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    court = Court()
    leader = court.stable()
    court.join()
    again = court.join(leader.member_id)
    court.sync(again, {m.member_id: [("t", at)] for at, m in enumerate(again.members)})
    follower = next(m.member_id for m in again.members if m.member_id != leader.member_id)
    assert court.coordinator.groups[GROUP].state is STABLE
    monkeypatch.setitem(join.JOIN, STABLE, (*join.JOIN[STABLE][:-1], join.REJOIN))
    breaks("S15", partial(court.join, follower))


def test_s15_the_group_does_not_take_in_what_a_member_says() -> None:
    court = Court()
    joined = court.stable()
    member = court.coordinator.groups[GROUP].members[joined.member_id]
    member.rebalance_timeout_ms = 1
    breaks("S15", partial(court.members.stepped, court.coordinator, 0))


def test_s15_the_log_has_what_another_process_said() -> None:
    court = Court()
    joined = court.join()
    facts = court.members._facts[joined.member_id]
    court.members._facts[joined.member_id] = facts._replace(session_ms=9_999)
    court.coordinator.groups[GROUP].members[joined.member_id].was_loaded = True  # so that only the log is compared
    breaks("S15", partial(court.sync, joined, {}))


def test_s16_a_member_is_removed_that_was_not_silent() -> None:
    court = Court()
    joined = court.stable()
    court.pass_time(8_000)
    heartbeat(court, joined)
    member = court.coordinator.groups[GROUP].members[joined.member_id]
    member.deadline_ms = 8_000
    court.coordinator._state.arm(court.coordinator.groups[GROUP], 8_000)
    breaks("S16", partial(court.pass_time, 1_000))


def test_s16_a_static_member_is_removed_with_the_join_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Museum 6."""
    court = Court()
    court.stable("i")
    court.join()
    group = court.coordinator.groups[GROUP]
    assert group.state is PREPARING

    def remove_all(turn: Any, of: Any) -> None:
        for member in [m for m in of.members.values() if m.join is None]:
            rebalance.drop_member(turn, of, member, member.cause("gone"))
        of.join_deadline_ms = NO_DEADLINE

    monkeypatch.setattr(rebalance, "join_deadline", remove_all)
    group.join_deadline_ms = 100
    court.coordinator._state.arm(group, 100)
    breaks("S16", partial(court.pass_time, 200))


def test_l2_the_first_join_phase_ends_at_once() -> None:
    breaks("L2", Court(initial_delay_ms=3_000).join)


def test_l3_the_join_phase_ends_without_a_member_that_has_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    court = Court()
    joined = court.stable()
    court.join()
    court.join(version=9)
    group = court.coordinator.groups[GROUP]
    assert group.pending
    court.join(joined.member_id)
    assert group.state is PREPARING
    monkeypatch.setattr(rebalance, "complete_if_all_joined", rebalance.complete_join)
    breaks("L3", partial(court.join, joined.member_id))
    assert group.state is COMPLETING


def test_l4_a_silent_member_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "session_expired", lambda turn, group, member: turn.start_session(group, member))
    court = Court()
    court.stable()
    court.pass_time(20_000)
    court.members._stood_ms = lambda since_ms: 15_000
    court.pass_time(15_000)  # in which everything stood still
    breaks("L4", partial(court.pass_time, 5_000))
