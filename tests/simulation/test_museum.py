"""Bugs of other systems that show only when broker, clients and faults meet: told step by step, all rules watching."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.consumer.group.commits import Kind
from partita.errors import FencedInstanceIdError
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.sim.clients.consumer import SimConsumer
from partita.sim.fault_plan import Plan, draw
from partita.sim.run import run_plan
from partita.sim.simulation import Simulation
from partita.sim.world.network import Way
from partita.sim.world.world import Dice, Trace


def plan(**shape: object) -> Plan:
    calm = {
        "clients": 2, "partitions": (4,), "assignors": ("range",), "commit": "auto", "static": False,
        "session_ms": 6_000, "heartbeat_ms": 1_000, "max_poll_ms": 8_000, "max_poll_records": 5, "work_ms": 20,
        "callback_ms": 0, "initial_delay_ms": 0, "records_per_second": 5, "delay_ms": 5, "slow_up": False,
        "slow_down": False, "sync_ms": 0, "load_ms": 0, "cleans": False, "join_version": 9, "faults": (),
        "stranger_ms": 0, "keeper_ms": 0, "retention_ms": 604_800_000,
    }  # fmt: skip
    return replace(draw(Dice(0)), **(calm | shape))  # type: ignore[arg-type]  # fields by name


class Scene:
    """A simulation that settles first; then the test says what happens."""

    def __init__(self, **shape: object) -> None:
        self.trace = Trace(keep_all=True)
        self.simulation = Simulation(1, plan(**shape), self.trace)
        self.run(20_000)
        assert self.simulation.watch.is_stable

    def run(self, ms: int) -> None:
        self.simulation.world.run(self.simulation.world.ms + ms)

    @property
    def generation(self) -> int:
        group = self.simulation.watch.group
        assert group is not None
        return group.generation

    @property
    def members(self) -> set[str]:
        group = self.simulation.watch.group
        assert group is not None
        return set(group.members)

    def client(self, number: int) -> SimConsumer:
        return next(c for c in self.simulation.clients if c.name.startswith(f"c{number}.") and not c.is_over)

    def second(self, first: SimConsumer) -> SimConsumer:
        self.simulation.restart(first)
        return self.simulation.clients[-1]

    def committed(self, tp: TopicPartition) -> int:
        assert self.simulation.coordinator is not None
        found = self.simulation.coordinator.hard_state.committed("g", tp)
        return -1 if found is None else found.offset

    def count(self, who: SimConsumer, kind: str, text: str) -> int:
        return sum(f" {kind} {who.name} " in line and text in line for line in self.trace.lines())


def member_id(client: SimConsumer) -> str:
    return client.core.member.generation.member_id


@pytest.mark.case("BM-014")
def test_a_fenced_static_member_stops_and_never_joins_again() -> None:
    scene = Scene(static=True)
    first, generation = scene.client(0), scene.generation
    old_id, joins = member_id(first), scene.count(first, ">", "JoinGroup")
    second = scene.second(first)
    scene.run(30_000)
    assert isinstance(first.failure, FencedInstanceIdError)
    assert first.is_over
    assert scene.count(first, ">", "JoinGroup") == joins
    assert not second.is_over
    assert member_id(second) in scene.members
    assert old_id not in scene.members
    assert scene.generation == generation


@pytest.mark.case("BM-013")
def test_a_member_fenced_while_it_joins_ends_cleanly() -> None:
    scene = Scene(static=True, clients=3, work_ms=2_000)
    first = scene.client(0)
    scene.client(1).close()
    first.core.member.request_rejoin("a test wants it to join")
    for _ in range(4_000):
        scene.run(1)
        if first.core.membership.is_joining and first.core.member.is_rebalancing:
            break
    else:
        pytest.fail("it never joined")
    second = scene.second(first)
    scene.run(40_000)
    assert isinstance(first.failure, FencedInstanceIdError)
    assert first.is_over
    assert member_id(second) in scene.members


@pytest.mark.case("BM-168")
@pytest.mark.parametrize("commit", ["auto", "sync", "done"])
def test_a_long_calm_run_loses_nothing_and_rebalances_once(commit: str) -> None:
    calm = plan(clients=3, commit=commit)
    verdict = run_plan(7, calm, Trace(), liveness=True, minutes=5)
    assert verdict.broken is None
    assert verdict.generations <= 4


def test_a_broker_restart_causes_no_rebalance() -> None:
    scene = Scene(clients=3)
    generation, members = scene.generation, scene.members
    for _ in range(5):
        scene.simulation.crash(2_000)
        scene.run(8_000)
    assert scene.generation == generation
    assert scene.members == members


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_rolling_restarts_of_static_members_disturb_nobody(assignor: str) -> None:
    scene = Scene(static=True, clients=3, assignors=(assignor,))
    generation = scene.generation
    for number in range(3):
        client = scene.client(number)
        client.kill(quietly=False)
        others = [scene.client(n) for n in range(3) if n != number]
        revoked = sum(scene.count(c, "r", "") for c in others)
        scene.run(2_000)
        scene.second(client)
        scene.run(5_000)
        assert sum(scene.count(c, "r", "") for c in others) == revoked
    assert scene.generation == generation


@pytest.mark.case("BM-084")
def test_a_commit_that_was_given_up_arrives_before_the_next_or_not_at_all() -> None:
    scene = Scene(clients=1, commit="sync")
    scene.simulation.is_producing = False
    scene.run(5_000)
    client, tp = scene.client(0), TopicPartition("t0", 0)
    network = scene.simulation.network
    for offset in (1, 2):
        if offset == 1:
            network.stall(
                next(link for link in network.links if isinstance(link.key, Way) and link.key.lane == 1), 3_000
            )
        operation = client.core.commits.commit(Kind.SYNC, {tp: OffsetAndMetadata(offset)})
        client.turn()
        scene.run(500)
        client.core.commits.cancel(operation)
    assert scene.committed(tp) > 2
    scene.run(6_000)
    assert scene.committed(tp) == 2
