"""What shows that each option of share groups and of the share coordinator counts, for `tests/unit/options`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from partita.broker.config import TopicConfig
from partita.broker.groups import settings
from partita.broker.share_states.runner import StateRunner
from partita.broker.topics.catalogue import SHARE_STATE_TOPIC
from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from partita.records.header import iter_batches
from partita.share.coordinator.model import ShareKey, StateBatch
from partita.share.coordinator.requests import Initialize, Write
from support.broker.consumer_groups import Given, Probe, bounds, world_of
from support.broker.data_plane import data_plane
from support.broker.shard_world import ShardWorld
from support.broker.transaction_probes import underscored


def share_beat(world: ShardWorld, member: str = "a", epoch: int = 0) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=["t"] if epoch == 0 else None
    )
    return world.ask(request, "g", 1)


def interval(given: Given) -> object:
    with world_of(given) as world:
        return share_beat(world).heartbeat_interval_ms


def members(given: Given) -> object:
    """What two members are answered that come one right behind the other."""
    with world_of(given) as world:
        return [(answer.error_code, answer.member_epoch) for answer in (share_beat(world, "a"), share_beat(world, "b"))]


def silence(given: Given) -> object:
    """Whether a member is still there after 47 seconds."""
    with world_of(given) as world:
        share_beat(world)
        world.do(lambda: world.running.advance_clock(47_000))
        return world.runner().coordinator.state_of("g")


def questions(given: Given) -> object:
    """How often a share coordinator that never answers is asked, in heartbeats of ten seconds."""
    with world_of(given) as world:
        asked: list[asyncio.Future[object]] = []

        def never(message: object) -> asyncio.Future[object]:
            asked.append(world.loop.create_future())
            return asked[-1]

        runner = world.runner()
        runner.set_consumer_groups(runner._consumer_groups._replace(states=never))
        epoch = 0
        for _ in range(4):
            epoch = share_beat(world, epoch=epoch).member_epoch
            world.do(lambda: world.running.advance_clock(10_000))
        for future in asked:
            world.do(future.cancel)
        return len(asked)


def served(given: Given) -> object:
    """Whether the handler serves share groups."""
    from partita.broker.handlers.share_group_heartbeat import handle

    with world_of(given) as world:
        request = ShareGroupHeartbeatRequest(group_id="g", member_id="a", subscribed_topic_names=["t"])
        return getattr(world.do(lambda: handle(world.ctx(1), request)), "error_code", 0)


def state_topic(read: Callable[[TopicConfig], object]) -> Probe:
    """Something about `__share_group_state` on three nodes."""

    def probe(given: Given) -> object:
        with data_plane(nodes=3, **underscored(given)) as plane:
            topic = plane.cluster.ensure_state_topic(SHARE_STATE_TOPIC)
            if topic is None:
                return None
            return len(topic.partitions), len(topic.partitions[0].replicas), read(topic.config)

    return probe


class States:
    """One shard of the share coordinator, whose topic has one partition."""

    def __init__(self, world: ShardWorld) -> None:
        self.world = world
        self.states = world.running.services.share_states()
        world.do(lambda: world.cluster.ensure_state_topic(SHARE_STATE_TOPIC))
        self.key = ShareKey("g", world.cluster.catalogue.by_name["t"].topic_id, 0)
        self.ask(Initialize(self.key, 1, 0))

    @property
    def runner(self) -> StateRunner:
        return self.states.runners[0]

    def ask(self, request: Initialize | Write) -> None:
        self.world.do(lambda: self.states.ask(request))

    def write(self, count: int) -> None:
        for offset in range(count):
            self.ask(Write(self.key, 1, 0, 0, 0, (StateBatch(offset, offset, 2, 1),)))

    def batches(self) -> list[tuple[int, int]]:
        """Codec and first offset of each batch in the log."""
        log = self.runner.partition.log
        view = log.read(log.log_start_offset, 1 << 20)
        return [(header.attributes & 7, header.base_offset) for header, _ in iter_batches(view)]


@contextmanager
def states_of(given: Given) -> Iterator[States]:
    with world_of({"share.coordinator.state.topic.num.partitions": 1} | given) as world:
        yield States(world)


def snapshots(given: Given) -> object:
    with states_of(given) as states:
        states.write(5)
        return states.runner.coordinator.states[states.key].snapshot_epoch


def codec(given: Given) -> object:
    with states_of(given) as states:
        return states.batches()[0][0]


def pruned(given: Given) -> object:
    """The first offset after 100 seconds, when a snapshot has replaced the first record."""
    with states_of(given) as states:
        states.ask(Initialize(states.key, 2, 0))
        states.world.do(lambda: states.world.running.advance_clock(100_000))
        return states.runner.partition.log.log_start_offset


def cold(given: Given) -> object:
    """Whether an idle share partition has a new snapshot after 100 seconds."""
    with states_of(given) as states:
        states.world.do(lambda: states.world.running.advance_clock(100_000))
        return states.runner.coordinator.states[states.key].snapshot_epoch


def load(given: Given) -> object:
    """Whether a load of 200 records takes many turns of the loop."""
    with states_of(given) as states:
        states.write(200)
        states.world.do(lambda: states.states.hold_load(0))
        states.world.do(lambda: states.states.release_load(0))
        turns = 0
        while states.runner.state.value == "loading":
            states.world.do(lambda: None)
            turns += 1
        return turns > 5


TOPIC = "share.coordinator.state.topic"
SHARES: dict[str, tuple[object, Probe]] = {
    "group.share.assignment.interval.ms": (0, members),
    "group.share.heartbeat.interval.ms": (6_000, interval),
    "group.share.initialize.retry.interval.ms": (5_000, questions),
    "group.share.max.assignment.interval.ms": (20_000, bounds(settings.ASSIGNMENT, 16_000)),
    "group.share.max.heartbeat.interval.ms": (20_000, bounds(settings.SHARE_HEARTBEAT, 16_000)),
    "group.share.max.session.timeout.ms": (90_000, bounds(settings.SHARE_SESSION, 70_000)),
    "group.share.max.size": (1, members),
    "group.share.min.assignment.interval.ms": (10, bounds(settings.ASSIGNMENT, 5)),
    "group.share.min.heartbeat.interval.ms": (1_000, bounds(settings.SHARE_HEARTBEAT, 2_000)),
    "group.share.min.session.timeout.ms": (10_000, bounds(settings.SHARE_SESSION, 20_000)),
    "group.share.session.timeout.ms": (50_000, silence),
    "partita.share.version": (0, served),
    "share.coordinator.cold.partition.snapshot.interval.ms": (60_000, cold),
    "share.coordinator.load.buffer.size": (100, load),
    "share.coordinator.snapshot.update.records.per.snapshot": (2, snapshots),
    f"{TOPIC}.compression.codec": (1, codec),
    f"{TOPIC}.min.isr": (2, state_topic(lambda config: config.int("min.insync.replicas"))),
    f"{TOPIC}.num.partitions": (7, state_topic(lambda config: None)),
    f"{TOPIC}.prune.interval.ms": (60_000, pruned),
    f"{TOPIC}.replication.factor": (2, state_topic(lambda config: None)),
    f"{TOPIC}.segment.bytes": (1 << 20, state_topic(lambda config: config.int("segment.bytes"))),
}
