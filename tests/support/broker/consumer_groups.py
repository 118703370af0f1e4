"""KIP-848 groups of a broker without sockets: heartbeats, and what each option of such groups changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from partita.broker.config import ConfigError
from partita.broker.groups import settings
from partita.group.consumer_group.errors import Refused
from partita.group.requests import DescribeConsumerGroup
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.messages.join_group import JoinGroupRequestProtocol
from support.broker.raw import join_request
from support.broker.shard_world import ShardWorld, shard_world

Given = dict[str, object]
Probe = Callable[[Given], object]


def beat(
    member: str, epoch: int = 0, topics: Sequence[str] | None = ("t",), *, regex: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat in group "g"; a join unless an epoch is given."""
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if epoch == 0 else -1,
        subscribed_topic_names=None if topics is None else list(topics),
        subscribed_topic_regex=regex,
        topic_partitions=[] if epoch == 0 else None,
    )


@contextmanager
def world_of(given: Given) -> Iterator[ShardWorld]:
    options: dict[str, Any] = {name.replace(".", "_"): value for name, value in given.items()}
    with shard_world(**options) as world:
        yield world


def join(world: ShardWorld, member: str = "a", **more: Any) -> ConsumerGroupHeartbeatResponse:
    answer = world.ask(beat(member, **more), "g", 1)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer


def interval(given: Given) -> object:
    with world_of(given) as world:
        return join(world).heartbeat_interval_ms


def assignor(given: Given) -> object:
    with world_of(given) as world:
        join(world)
        return world.ask(DescribeConsumerGroup("g"), "g", 1).assignor_name


def second_member(given: Given) -> object:
    with world_of(given) as world:
        return [join(world, name).error_code for name in "ab"]


def second_epoch(given: Given) -> object:
    """Whether a member that joins right behind another one gets an epoch of its own."""
    with world_of(given) as world:
        return [join(world, name).member_epoch for name in "ab"]


def silence(given: Given) -> object:
    """Whether a member is still there after 47 seconds."""
    with world_of(given) as world:
        join(world)
        world.do(lambda: world.running.advance_clock(47_000))
        return len(world.runner().coordinator.consumer_groups["g"].members)


def upgrade(given: Given) -> object:
    """What a KIP-848 member is told that joins a classic group with members."""
    from partita.assignors.interface import Subscription
    from partita.assignors.payloads import encode_subscription

    with world_of(given | {"group.initial.rebalance.delay.ms": 0}) as world:
        protocol = JoinGroupRequestProtocol(name="range", metadata=encode_subscription(Subscription(["t"])))
        world.begin(join_request("g", protocols=[protocol]), "g", 3)
        return join(world).error_code


def matched_again(given: Given) -> object:
    """How often a regular expression was looked at, in heartbeats of a quarter of an hour."""
    with world_of(given) as world:
        join(world, topics=None, regex="t.*")
        coordinator = world.runner().coordinator

        async def until_done() -> None:
            while world.groups._consumer_groups.jobs.running:  # noqa: ASYNC110  # a thread ends, which no event tells
                await asyncio.sleep(0.001)

        seen = set()
        for _ in range(30):
            world.loop.run_until_complete(asyncio.wait_for(until_done(), 60))
            group = coordinator.consumer_groups["g"]
            seen.add(group.regexes["t.*"].resolved_ms)
            world.do(lambda: world.running.advance_clock(30_000))
            world.ask(beat("a", group.members["a"].epoch, None), "g", 1)
        world.loop.run_until_complete(asyncio.wait_for(until_done(), 60))
        return len(seen)


def protocols(given: Given) -> object:
    """Whether the handler serves KIP-848 groups."""
    from partita.broker.handlers.consumer_group_heartbeat import handle

    with world_of(given) as world:
        answer = world.do(lambda: handle(world.ctx(1), beat("a")))
        return answer.error_code if isinstance(answer, ConsumerGroupHeartbeatResponse) else 0


def bounds(name: str, value: int) -> Probe:
    """Whether a group may have this setting of its own."""

    def probe(given: Given) -> object:
        with world_of(given) as world:
            try:
                return settings.parsed(world.cluster.config, {name: str(value)})
            except ConfigError:
                return Refused

    return probe


CONSUMER_GROUPS: dict[str, tuple[object, Probe]] = {
    "group.consumer.assignment.interval.ms": (0, second_epoch),
    "group.consumer.assignors": ("range", assignor),
    "group.consumer.heartbeat.interval.ms": (6_000, interval),
    "group.consumer.max.heartbeat.interval.ms": (20_000, bounds(settings.HEARTBEAT, 16_000)),
    "group.consumer.max.session.timeout.ms": (90_000, bounds(settings.SESSION, 70_000)),
    "group.consumer.max.size": (1, second_member),
    "group.consumer.migration.policy": ("disabled", upgrade),
    "group.consumer.min.heartbeat.interval.ms": (1_000, bounds(settings.HEARTBEAT, 2_000)),
    "group.consumer.min.session.timeout.ms": (10_000, bounds(settings.SESSION, 20_000)),
    "group.consumer.regex.refresh.interval.ms": (10_000, matched_again),
    "group.consumer.session.timeout.ms": (50_000, silence),
    "group.coordinator.rebalance.protocols": ("classic", protocols),
    "partita.group.version": (0, protocols),
}
