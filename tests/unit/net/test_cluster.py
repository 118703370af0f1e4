"""The cluster as producers and admin clients see it: metadata, leaders, coordinators, retries, back-off."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from partita.errors import GroupAuthorizationFailedError, UnknownTopicOrPartitionError
from partita.net.cluster import Cluster
from partita.net.config import ClientConfig, backoff_ms
from partita.net.errors import Disconnected
from partita.net.pool import ConnectionPool
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsResponse
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from partita.protocol.metadata_view import MetadataView, Node
from support.broker.wire_server import WireServer

CONFIG = ClientConfig(retry_backoff_ms=5, reconnect_backoff_ms=5, default_api_timeout_ms=2_000)


def metadata(port: int, *, leader: int = 1, epoch: int = 0, topic_id: bytes = b"i" * 16, error: int = 0) -> Any:
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    partitions = [] if error else [part]
    topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=partitions, error_code=error)
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)], topics=[topic])


def coordinator(port: int, code: int = 0) -> FindCoordinatorResponse:
    one = Coordinator(key="g", node_id=1, host="127.0.0.1", port=port, error_code=code)
    return FindCoordinatorResponse(coordinators=[one])


class Script:
    """A broker that answers metadata and lookups, and heartbeats with these codes in turn."""

    def __init__(self, *codes: int, error: int = 0, lookup: int = 0) -> None:
        self.codes = list(codes)
        self.error = error
        self.lookup = lookup
        self.server: Any = None
        self.cluster_id: str | None = None

    def __call__(self, key: int, version: int, request: Any) -> Any:
        if key == 3:
            answer = metadata(self.server.port, error=self.error)
            answer.cluster_id = self.cluster_id
            return answer
        if key == 18 and request.cluster_id not in (None, self.cluster_id):
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        if key == 10:
            return coordinator(self.server.port, self.lookup)
        return HeartbeatResponse(error_code=self.codes.pop(0) if self.codes else 0) if key == 12 else None


def with_cluster(script: Script, story: Any, config: ClientConfig = CONFIG) -> Any:
    async def run() -> Any:
        async with WireServer(script) as server:
            script.server = server
            async with Cluster(f"127.0.0.1:{server.port}", config) as cluster:
                return await story(cluster, server)

    return asyncio.run(run())


def test_a_leader_is_found_and_spoken_to() -> None:
    async def story(cluster: Cluster, server: WireServer) -> None:
        assert (await cluster.leader_for("t", 0)).id == 1
        assert (await cluster.request_leader("t", 0, HeartbeatRequest())).error_code == 0
        with pytest.raises(UnknownTopicOrPartitionError):
            await cluster.leader_for("t", 7)

    with_cluster(Script(), story)


@pytest.mark.parametrize("is_on", [True, False])
def test_a_broker_is_asked_whether_it_is_the_one_that_is_meant(is_on: bool) -> None:
    script = Script()
    script.cluster_id = "one"

    async def story(cluster: Cluster, server: WireServer) -> list[tuple[str | None, int]]:
        await cluster.request_leader("t", 0, HeartbeatRequest())
        script.cluster_id = "other"
        server.drop_all()
        await cluster.request_leader("t", 0, HeartbeatRequest())
        assert cluster.view.cluster_id == "other"
        return [(request.cluster_id, request.node_id) for key, _, request in server.requests if key == 18]

    config = replace(CONFIG, metadata_cluster_check_enable=is_on)
    asked = with_cluster(script, story, config)
    assert (("one", 1) in asked) is is_on
    assert {*asked} <= {("one", 1), (None, -1)}, "addresses that no metadata names may be anything"


def test_an_unknown_topic_is_raised_after_the_time_for_retries() -> None:
    async def story(cluster: Cluster, server: WireServer) -> None:
        with pytest.raises(UnknownTopicOrPartitionError):
            await cluster.request_leader("t", 0, HeartbeatRequest(), timeout_ms=300)

    with_cluster(Script(error=3), story)


def test_a_forbidden_coordinator_is_raised_at_once() -> None:
    async def story(cluster: Cluster, server: WireServer) -> None:
        with pytest.raises(GroupAuthorizationFailedError):
            await cluster.coordinator_connection("g")

    with_cluster(Script(lookup=30), story)


def test_a_dropped_connection_is_made_again() -> None:
    async def story(cluster: Cluster, server: WireServer) -> int:
        await cluster.request_leader("t", 0, HeartbeatRequest())
        before = server.connections
        server.drop_all()
        await asyncio.sleep(0)
        assert (await cluster.request_leader("t", 0, HeartbeatRequest())).error_code == 0
        return server.connections - before

    assert with_cluster(Script(), story) >= 1


def test_a_cluster_that_is_not_there_fails_in_time() -> None:
    async def story() -> None:
        with pytest.raises(Disconnected):
            async with Cluster("127.0.0.1:1", ClientConfig(default_api_timeout_ms=100)):
                pass

    asyncio.run(story())


def test_whoever_waits_for_a_cluster_that_is_not_there_is_told_why() -> None:
    """A wait inside of a wait ended in "no answer within 60000 ms" for a wrong address."""

    async def story() -> None:
        cluster = Cluster("127.0.0.1:1", ClientConfig(default_api_timeout_ms=50))
        with pytest.raises(Disconnected, match=r"cannot connect to 127\.0\.0\.1:1"):
            await cluster.retry(cluster.refresh)

    asyncio.run(story())


def test_failed_connections_back_off() -> None:
    async def story() -> list[float]:
        pool = ConnectionPool(ClientConfig(reconnect_backoff_ms=20, reconnect_backoff_max_ms=60))
        waits = []
        for _ in range(3):
            with pytest.raises(Disconnected):
                await pool.connect("x", "127.0.0.1", 1)
            waits.append(pool.wait_ms("x"))
        pool.close()
        return waits

    first, second, third = asyncio.run(story())
    assert 14 <= first <= 24
    assert 30 <= second <= 48
    assert 46 <= third <= 72


def test_the_back_off_formula() -> None:
    def middle(low: float, high: float) -> float:
        assert (low, high) == (0.8, 1.2)
        return 1.0

    assert [backoff_ms(100, 1_000, n, middle) for n in range(6)] == [100, 200, 400, 800, 1_000, 1_000]


def test_an_older_leader_epoch_is_ignored_until_the_topic_is_recreated() -> None:
    view = MetadataView()
    view.update(metadata(1, leader=1, epoch=7), 13)
    view.update(metadata(1, leader=2, epoch=6), 13)
    assert (view.partition("t", 0).leader, view.leader_epoch("t", 0)) == (1, 7)  # type: ignore[union-attr]  # the partition is in the view
    view.update(metadata(1, leader=2, epoch=0, topic_id=b"j" * 16), 13)
    assert (view.partition("t", 0).leader, view.leader_epoch("t", 0)) == (2, 0)  # type: ignore[union-attr]  # the partition is in the view
    view.update(metadata(1, leader=1, epoch=9), 8)
    assert view.leader_epoch("t", 0) == -1


def test_a_leader_hint_counts_only_when_it_is_newer() -> None:
    view = MetadataView()
    view.update(metadata(1, leader=1, epoch=7), 13)
    assert not view.move_leader("t", 0, 2, 7, Node(2, "b", 2))
    assert not view.move_leader("t", 0, 3, 8, None)
    assert view.move_leader("t", 0, 2, 8, Node(2, "b", 2))
    assert view.leader("t", 0) == Node(2, "b", 2)
    assert view.name_of(b"i" * 16) == "t"
