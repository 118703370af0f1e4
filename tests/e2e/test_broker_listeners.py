"""A broker with two listeners: who came by one is sent to the other nodes by the same one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.broker.launch import StartError
from partita.protocol.messages.describe_cluster import DescribeClusterRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.metadata import MetadataRequest
from support.broker.raw import Raw

TWO = "PLAINTEXT://127.0.0.1:0,SIDE://127.0.0.1:0"
MAP = "PLAINTEXT:PLAINTEXT,SIDE:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT"
NODES = 3


@pytest.fixture
def broker() -> Iterator[Broker]:
    advertised = "SIDE://localhost:0"
    with Broker(
        nodes=NODES, listeners=TWO, advertised_listeners=advertised, listener_security_protocol_map=MAP
    ) as running:
        yield running


def addresses(bootstrap: str) -> set[tuple[str, int]]:
    return {(host, int(port)) for host, _, port in (one.rpartition(":") for one in bootstrap.split(","))}


@pytest.mark.case("GC-A12")
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SIDE"])
def test_every_address_in_an_answer_is_of_the_listener_asked(broker: Broker, listener: str) -> None:
    mine = addresses(broker.bootstrap_by(listener))
    assert len(mine) == NODES
    assert {host for host, _ in mine} == {"localhost" if listener == "SIDE" else "127.0.0.1"}
    with Raw(min(port for _, port in mine)) as raw:
        for group in ("a", "b", "c", "d"):
            (found,) = raw.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators
            assert (found.error_code, (found.host, found.port) in mine) == (0, True)
        metadata = raw.ask(MetadataRequest(topics=[]), 12)
        assert {(node.host, node.port) for node in metadata.brokers} == mine
        cluster = raw.ask(DescribeClusterRequest(endpoint_type=1), 1)
        assert {(node.host, node.port) for node in cluster.brokers} == mine


def test_clients_of_both_listeners_share_a_group_and_a_stopped_node_comes_back_on_both(broker: Broker) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic("t", partitions=6)
    before = [broker.bootstrap_by(name) for name in ("PLAINTEXT", "SIDE")]
    broker.control.restart_node(2)
    assert [broker.bootstrap_by(name) for name in ("PLAINTEXT", "SIDE")] == before
    with Producer(bootstrap_servers=broker.bootstrap_by("SIDE")) as producer:
        for partition in range(6):
            producer.send("t", b"%d" % partition, partition=partition)
    options: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with (
        Consumer(bootstrap_servers=broker.bootstrap, **options) as one,
        Consumer(bootstrap_servers=broker.bootstrap_by("SIDE"), **options) as other,
    ):
        for consumer in (one, other):
            consumer.subscribe(["t"])
        while not (len(one.assignment()) == len(other.assignment()) == 3):
            one.poll(0.05)
            other.poll(0.05)
    with pytest.raises(KeyError):
        broker.bootstrap_by("NOBODY")


def test_a_taken_port_is_named(broker: Broker) -> None:
    (_, port), *_ = addresses(broker.bootstrap_by("SIDE"))
    with (
        pytest.raises(StartError, match=rf"cannot listen on 127.0.0.1:{port}: .*; choose another port"),
        Broker(listeners=f"A://127.0.0.1:0,B://127.0.0.1:{port}", listener_security_protocol_map=MAP),
    ):
        pass
