"""What shows that each option of streams groups counts, for `tests/unit/options`."""

from __future__ import annotations

from typing import Any

from partita.broker.groups import settings
from support.broker.consumer_groups import Given, Probe, bounds, world_of
from support.broker.shard_world import ShardWorld
from support.group.streams import PLAIN, joining


def beats(world: ShardWorld, *members: str) -> list[Any]:
    return [world.ask(joining(member, topology=PLAIN), "g", 1).response for member in members]


def answers(given: Given) -> object:
    """What two members are told that come one right behind the other, and what an assignment depends on."""
    with world_of(given) as world:
        told = [(a.error_code, a.heartbeat_interval_ms, a.task_offset_interval_ms, a.acceptable_recovery_lag,
                 a.member_epoch, a.status) for a in beats(world, "a", "b")]  # fmt: skip
        return told, world.runner().coordinator.hard_state.streams_groups["g"].hard.configs


def epochs(given: Given) -> object:
    """The epoch of a second member that comes right behind the first, without an initial delay."""
    with world_of({"group.streams.initial.rebalance.delay.ms": 0, **given}) as world:
        return [answer.member_epoch for answer in beats(world, "a", "b")]


def silence(given: Given) -> object:
    """Whether a member is still there after 47 seconds."""
    with world_of(given) as world:
        beats(world, "a")
        world.do(lambda: world.running.advance_clock(47_000))
        return world.runner().coordinator.state_of("g")


STREAMS: dict[str, tuple[object, Probe]] = {
    "group.streams.acceptable.recovery.lag": (5, answers),
    "group.streams.assignment.interval.ms": (0, epochs),
    "group.streams.heartbeat.interval.ms": (6_000, answers),
    "group.streams.initial.rebalance.delay.ms": (0, answers),
    "group.streams.max.assignment.interval.ms": (20_000, bounds(settings.STREAMS_ASSIGNMENT, 16_000)),
    "group.streams.max.heartbeat.interval.ms": (20_000, bounds(settings.STREAMS_HEARTBEAT, 16_000)),
    "group.streams.max.session.timeout.ms": (90_000, bounds(settings.STREAMS_SESSION, 70_000)),
    "group.streams.max.size": (1, answers),
    "group.streams.max.standby.replicas": (3, bounds(settings.STANDBYS, 3)),
    "group.streams.min.assignment.interval.ms": (10, bounds(settings.STREAMS_ASSIGNMENT, 5)),
    "group.streams.min.heartbeat.interval.ms": (1_000, bounds(settings.STREAMS_HEARTBEAT, 2_000)),
    "group.streams.min.session.timeout.ms": (10_000, bounds(settings.STREAMS_SESSION, 20_000)),
    "group.streams.min.task.offset.interval.ms": (5_000, bounds(settings.OFFSET_INTERVAL, 6_000)),
    "group.streams.num.standby.replicas": (1, answers),
    "group.streams.rack.aware.assignment.tags": ("zone", answers),
    "group.streams.session.timeout.ms": (50_000, silence),
    "group.streams.task.offset.interval.ms": (70_000, answers),
}
