"""S16 judges by what the coordinator has heard: only who is removed too early is noticed."""

from __future__ import annotations

import pytest

from partita.assignors.interface import Subscription
from partita.assignors.payloads import encode_subscription
from partita.group.contract import GroupRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.sim.rules.departures import DepartureRules
from partita.sim.rules.rule import RuleBroken
from partita.sim.world.asked import Asked
from support.group.consumers import World

SESSION_MS = 10_000


def with_a_classic_member() -> tuple[World, DepartureRules, str]:
    """A KIP-848 group, its rules, and the id of its one member of the classic protocol, which was just heard of."""
    world = World({"t": 2})
    world.join("C")
    metadata = encode_subscription(Subscription(["t"]))
    join = JoinGroupRequest(
        group_id="g", protocol_type="consumer", session_timeout_ms=SESSION_MS, rebalance_timeout_ms=60_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )  # fmt: skip
    member_id = world.ask(join, 3).member_id
    rules = DepartureRules("g", world.config)
    rules.stepped(world.coordinator, world.clock.now().mono_ms)
    return world, rules, member_id


def silent_for_a_session(*, was_decided: bool) -> None:
    """A heartbeat is answered amid a session that it does not restart: the member is removed at the end."""
    world, rules, member_id = with_a_classic_member()
    world.wait(SESSION_MS // 2)
    wire = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    request = GroupRequest(wire, 4, "c", "/c")
    asked = Asked(1, request, world.clock.now().mono_ms, lambda asked, answer: None)
    if was_decided:
        rules.look(world.coordinator, asked)
    rules.answered(asked, HeartbeatResponse())
    rules.look(world.coordinator)
    world.wait(SESSION_MS // 2)
    assert member_id not in world.group.members
    rules.stepped(world.coordinator, world.clock.now().mono_ms)


def test_a_heartbeat_that_is_answered_while_the_group_is_loaded_restarts_no_session() -> None:
    """Seed 2221 of mixed groups: as in Kafka, the broker says yes without knowing who asks."""
    silent_for_a_session(was_decided=False)


def test_s16_a_member_is_removed_although_its_heartbeat_was_decided() -> None:
    with pytest.raises(RuleBroken) as broken:
        silent_for_a_session(was_decided=True)
    assert broken.value.rule == "S16"
