"""Our consumer on our broker: the stories that tests/conformance/test_consumer_on_kafka.py tells on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.designs.zookeeper.ports import free_ports
from partita.records.batch import build_batch
from partita.records.builder import build_marker
from partita.records.control import ABORT, COMMIT
from support.consumer.loop_stories import IN_CHURN, LOOP_STORIES, UPGRADES
from support.consumer.stories import EPOCH_STORIES, MIXED_STORIES, STORIES, Stage

SHORT_BEATS = {
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 100,
}


def transact(broker: Broker, topic: str, values: list[bytes], commits: bool) -> None:
    """One transaction as it stands in a log: a transactional batch, then the marker.

    Straight into the log: no producer and no coordinator are needed for what readers see.
    """

    def append() -> None:
        partition = broker.cluster.catalogue.partition(topic, 0)
        assert partition is not None
        log, now = partition.log, broker.cluster.clock.now()
        who: dict[str, Any] = {"producer_id": log.log_end_offset, "producer_epoch": 0}
        records = [(now.wall_ms, None, value, ()) for value in values]
        batch = build_batch(records, base_sequence=0, is_transactional=True, **who)
        log.append(batch, partition.leader_epoch, now)
        kind = COMMIT if commits else ABORT
        log.append(build_marker(kind, timestamp=now.wall_ms, coordinator_epoch=0, **who), partition.leader_epoch, now)

    broker.run(append)


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    options = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 4, **SHORT_BEATS}
    options["auto.create.topics.enable"] = False
    port = free_ports(1)[0]
    running = [Broker(options, data_dir=str(tmp_path), port=port)]
    running[0].start()
    bootstrap = running[0].bootstrap

    def restart() -> None:
        running[0].stop()
        running[0] = Broker(options, data_dir=str(tmp_path), port=port)
        running[0].start()

    yield Stage(
        bootstrap,
        restart,
        lambda group, member_id: running[0].control.expire_session(group, member_id),
        lambda topic, values, commits: transact(running[0], topic, values, commits),
        getattr(request, "param", "classic"),
    )
    running[0].stop()


@pytest.mark.parametrize("story", [*STORIES, *LOOP_STORIES], ids=lambda story: story.__name__)
def test_on_our_broker(stage: Stage, story: Callable[[Stage], None]) -> None:
    story(stage)


@pytest.mark.case("CC-182", "CC-184", "CC-187", "CC-188", "CC-192")
@pytest.mark.parametrize("stage", ["consumer"], indirect=True)
@pytest.mark.parametrize(
    "story", [*EPOCH_STORIES, *MIXED_STORIES, *LOOP_STORIES, *UPGRADES], ids=lambda story: story.__name__
)
def test_on_our_broker_with_the_consumer_protocol(stage: Stage, story: Callable[[Stage], None]) -> None:
    story(stage)


@pytest.mark.parametrize("story", IN_CHURN, ids=lambda story: story.__name__)
@pytest.mark.parametrize(
    ("stage", "assignor"),
    [("classic", "range"), ("classic", "cooperative-sticky"), ("consumer", "uniform")],
    indirect=["stage"],
)
def test_no_commit_raises_while_members_come_and_go(
    stage: Stage, assignor: str, story: Callable[[Stage, str], None]
) -> None:
    story(stage, assignor)
