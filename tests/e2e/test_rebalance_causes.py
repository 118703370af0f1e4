"""The cause that the broker notes for each of eleven staged rebalances (issue 11: wrong causes, R1 of the sources).

Each stage begins with a stable group of two consumers, does one thing, and looks at the causes of the next rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Admin, Broker, Consumer

HELD = ("one", "two")
WHOEVER = ""
"""Either member may notice first."""


class Stage:
    """Group G with the consumers "one" (the leader) and "two" on topic T of four partitions."""

    def __init__(self, broker: Broker, **options: Any) -> None:
        self.broker = broker
        self.options = {
            "bootstrap_servers": broker.bootstrap, "group_id": "G", "heartbeat_interval_ms": 30,
            "metadata_max_age_ms": 100, "retry_backoff_ms": 10, **options,
        }  # fmt: skip
        self.members: dict[str, Consumer[Any, Any]] = {}
        self.stalled: Consumer[Any, Any] | None = None
        """A member that is not polled any more."""
        for name in HELD:
            self.join(name)
        self.settle(4)

    def join(self, name: str, *topics: str, **options: Any) -> Consumer[Any, Any]:
        consumer = self.members[name] = Consumer({**self.options, **options}, client_id=name)
        consumer.subscribe(topics or ["T"])
        consumer.poll(0.05)
        return consumer

    def polled(self) -> None:
        for consumer in list(self.members.values()):
            consumer.poll(0.02)

    def settle(self, partitions: int) -> None:
        """Poll until every member has a share of this many partitions."""
        while True:
            shares = [len(consumer.assignment()) for consumer in self.members.values()]
            if all(shares) and sum(shares) == partitions:
                return
            self.polled()

    def rebalances(self) -> list[dict[str, Any]]:
        return [note for note in self.broker.notes() if note["note"] == "Rebalanced"]

    def causes_of_next(self, act: Callable[[Stage], object]) -> list[tuple[str, str]]:
        """What the next rebalance after `act` says: (cause, client id) each."""
        before = len(self.rebalances())
        act(self)
        while len(self.rebalances()) == before:
            self.polled()
        return [(cause["what"], cause["client_id"]) for cause in self.rebalances()[before]["causes"]]

    def close(self) -> None:
        for consumer in self.members.values():
            consumer.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(partita_rebalance_on_static_change=True) as running:
        running.create_topics({"T": 4, "U": 1})
        yield running


def leave(stage: Stage) -> None:
    stage.members.pop("two").close()


def expire(stage: Stage) -> None:
    stage.broker.control.expire_session("G", "two")
    stage.members.pop("two")


def evict(stage: Stage) -> None:
    stage.broker.control.evict_member("G", "two")
    stage.members.pop("two")


def grow(stage: Stage) -> None:
    with Admin(bootstrap_servers=stage.broker.bootstrap) as admin:
        admin.create_partitions("T", 6)


def fall_behind(stage: Stage) -> None:
    """Somebody joins, and "two" does not come back within the rebalance timeout."""
    stage.stalled = stage.members.pop("two")
    stage.join("three")
    while waiting(stage.broker) < 2:
        stage.polled()
    stage.broker.control.advance_clock(61_000)


def waiting(broker: Broker) -> int:
    """How many members wait in the join phase."""

    def count() -> int:
        runner = broker.running.services.groups().runner_of("G")
        assert runner is not None
        return runner.coordinator.groups["G"].joins_parked

    return broker.run(count)


STAGES: tuple[tuple[str, Callable[[Stage], object], set[tuple[str, str]]], ...] = (
    ("a member joins", lambda stage: stage.join("three"), {("member joined", "three")}),
    ("a member leaves", leave, {("member left", "two")}),
    ("a session ends", expire, {("session expired", "two")}),
    ("a member is evicted", evict, {("member evicted", "two")}),
    ("partitions are added", grow, {("partitions of a subscribed topic changed", WHOEVER)}),
    (
        "a member reads another topic",
        lambda stage: stage.members["two"].subscribe(["T", "U"]),
        {("subscription changed", "two")},
    ),
    ("the leader enforces it", lambda stage: stage.members["one"].enforce_rebalance(), {("rebalance enforced", "one")}),
    ("a follower enforces it", lambda stage: stage.members["two"].enforce_rebalance(), {("rebalance enforced", "two")}),
)


@pytest.mark.parametrize(("act", "causes"), [stage[1:] for stage in STAGES], ids=[stage[0] for stage in STAGES])
def test_the_cause_is_what_was_staged(
    broker: Broker, act: Callable[[Stage], object], causes: set[tuple[str, str]]
) -> None:
    stage = Stage(broker)
    found = set(stage.causes_of_next(act))
    assert {(what, client) for what, client in causes if client != WHOEVER} <= found
    assert {what for what, _ in found} == {what for what, _ in causes}
    stage.close()


def test_the_second_round_of_a_cooperative_rebalance_says_that_partitions_were_given_up(broker: Broker) -> None:
    stage = Stage(broker, partition_assignment_strategy=["cooperative-sticky"])
    assert stage.causes_of_next(lambda stage: stage.join("three")) == [("member joined", "three")]
    assert {what for what, _ in stage.causes_of_next(lambda stage: None)} == {"member gave partitions up"}
    stage.close()


def test_a_static_member_that_restarts_with_other_topics_says_so_and_one_that_does_not_moves_nothing(
    broker: Broker,
) -> None:
    stage = Stage(broker)
    static = {"group_instance_id": "i"}
    stage.causes_of_next(lambda stage: stage.join("three", **static))
    stage.settle(4)
    count = len(stage.rebalances())
    stage.members.pop("three").close()
    stage.join("three", **static)
    stage.settle(4)
    assert len(stage.rebalances()) == count
    stage.members.pop("three").close()
    causes = stage.causes_of_next(lambda stage: stage.join("three", "U", **static))
    assert [what for what, _ in causes] == ["static member replaced"]
    stage.close()


def test_a_member_that_does_not_come_back_is_named_with_who_came(broker: Broker) -> None:
    stage = Stage(broker, session_timeout_ms=200_000, max_poll_interval_ms=60_000)
    found = stage.causes_of_next(fall_behind)
    assert found == [("member joined", "three"), ("member did not rejoin in time", "two")]
    stage.close()
