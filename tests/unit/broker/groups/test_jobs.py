"""Jobs of groups beside the loop: one that never ends takes nothing from others. (Finding F4 of an audit)"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from threading import Event
from typing import ClassVar, NamedTuple

import pytest

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata
from partita.assignors.server_side import create_server_assignors
from partita.broker.groups import jobs
from partita.broker.groups.jobs import Jobs
from partita.group.consumer_group.subscriptions import MatchExpressions
from partita.group.consumer_group.target import ComputeTarget, Problem
from partita.group.contract import Lane

SLOW, OTHER, OURS = (
    Lane("assignor slow", 2, is_users=True),
    Lane("assignor other", 2, is_users=True),
    Lane("targets", 2),
)


class Mine(Assignor):
    name: ClassVar[str] = "mine"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        return {}


class Work(NamedTuple):
    group_id: str
    lane: Lane
    work: Callable[[], object]

    def run(self) -> object:
        return self.work()


def ended(begun: Jobs, *asked: Work) -> list[object]:
    """What each job came to, in order; started one after the other."""
    loop = begun._loop

    def start(job: Work) -> asyncio.Future[object]:
        done: asyncio.Future[object] = loop.create_future()
        begun.run(job, done.set_result)
        return done

    return loop.run_until_complete(asyncio.wait_for(asyncio.gather(*map(start, asked)), 60))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setattr(jobs, "JOB_SECONDS", 0.05)
    return Jobs(asyncio.new_event_loop())


def spin() -> object:
    while True:
        pass


def test_an_assignor_that_waits_for_ever_holds_up_neither_others_nor_ours(begun: Jobs) -> None:
    """A thread that waits cannot be interrupted: two of them use the assignor up, and nothing else."""
    may_end = Event()
    try:
        late = ended(begun, Work("g1", SLOW, may_end.wait), Work("g2", SLOW, may_end.wait))
        assert [str(one) for one in late] == ["it took longer than 0 s"] * 2
        again, third, other, ours = ended(
            begun, Work("g1", SLOW, str), Work("g3", SLOW, str), Work("g1", OTHER, str), Work("g1", OURS, str)
        )
        assert str(again) == "its last run for this group has not ended"
        assert str(third) == "2 runs of it have not ended"
        assert (other, ours, begun.running) == ("", "", 2)
    finally:
        may_end.set()


def test_an_assignor_that_computes_for_ever_is_interrupted_and_may_run_again(begun: Jobs) -> None:
    (late,) = ended(begun, Work("g1", SLOW, spin))
    assert isinstance(late, TimeoutError)
    (thread,) = [run.thread for run in begun._unfinished]
    thread.join(60)
    assert begun.running == 0
    assert ended(begun, Work("g1", SLOW, lambda: "well")) == ["well"]


def test_ours_run_for_one_group_side_by_side_up_to_their_own_bound(begun: Jobs) -> None:
    may_end = Event()
    try:
        *_, third = ended(begun, *[Work("g1", OURS, may_end.wait)] * 2, Work("g1", OURS, str))
        assert str(third) == "2 targets run already"
    finally:
        may_end.set()


def test_users_assignors_ours_and_expressions_count_apart() -> None:
    offered = create_server_assignors(["uniform"], [Mine()])
    asked = [Problem(offered[name], TopicMetadata({}), {}, {}) for name in ("mine", "uniform")]
    lanes = [ComputeTarget("g", 1, one).lane for one in asked] + [MatchExpressions("g", (), (), 0, None).lane]
    assert [lane.is_users for lane in lanes] == [True, False, False]
    assert len({lane.name for lane in lanes}) == 3
