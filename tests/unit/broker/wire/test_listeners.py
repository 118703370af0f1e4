"""Where a node listens and what it tells its clients."""

from __future__ import annotations

import socket

import pytest

from partita.broker.config import BrokerConfig, ConfigError
from partita.broker.wire.listeners import Endpoint, Listener, listeners

MAP = "PLAINTEXT:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT,INSIDE:SASL_SSL,ANY:PLAINTEXT"


def parsed(bound: str, advertised: str | None = None, nodes: int = 1) -> list[Listener]:
    options = {"listeners": bound, "advertised.listeners": advertised, "listener.security.protocol.map": MAP}
    return listeners(BrokerConfig(options), nodes)


def test_names_and_addresses_are_read_as_kafka_writes_them() -> None:
    assert parsed("plaintext://127.0.0.1:9092, INSIDE://[::1]:9093,ANY://:0") == [
        Listener("PLAINTEXT", Endpoint("127.0.0.1", 9092)),
        Listener("INSIDE", Endpoint("::1", 9093), protocol="SASL_SSL"),
        Listener("ANY", Endpoint("", 0)),
    ]
    assert str(Endpoint("::1", 9093)) == "[::1]:9093"
    assert parsed("A://[fe80::1%eth0]:1")[0].bound == Endpoint("fe80::1%eth0", 1)


@pytest.mark.parametrize(
    ("bound", "advertised", "found_at"),
    [
        ("A://127.0.0.1:0", None, Endpoint("127.0.0.1", 5555)),
        ("A://127.0.0.1:0", "A://kafka.test:0", Endpoint("kafka.test", 5555)),
        ("A://0.0.0.0:9092", "A://localhost:19092", Endpoint("localhost", 19092)),
        ("A://:9092", None, Endpoint(socket.gethostname(), 5555)),
    ],
)
def test_clients_are_told_what_is_advertised_else_what_is_bound(
    bound: str, advertised: str | None, found_at: Endpoint
) -> None:
    (listener,) = parsed(bound, advertised)
    assert listener.found_at(5555) == found_at


def test_the_ports_of_further_nodes_count_up_and_chosen_ones_stay_free() -> None:
    first, second = parsed("A://127.0.0.1:9092,B://127.0.0.1:0", "A://a.test:19092")
    assert first.of_node(2) == Listener("A", Endpoint("127.0.0.1", 9094), Endpoint("a.test", 19094))
    assert second.of_node(2) == second


@pytest.mark.parametrize(
    ("bound", "advertised", "said"),
    [
        ("127.0.0.1:9092", None, "must be NAME://HOST:PORT"),
        ("A://127.0.0.1:65536", None, "must be NAME://HOST:PORT"),
        ("A://127.0.0.1:1,a://127.0.0.1:2", None, "each listener needs its own name"),
        ("A://127.0.0.1:1,B://127.0.0.1:1", None, "each listener needs its own port"),
        ("", None, "at least one is needed"),
        ("A://127.0.0.1:1", "B://127.0.0.1:1", "advertised.listeners names B, listeners only A"),
        ("A://127.0.0.1:1", "A://0.0.0.0:1", "no address that a client can connect to"),
    ],
)
def test_what_makes_no_sense_is_refused(bound: str, advertised: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parsed(bound, advertised)


@pytest.mark.case("SE-A16")
def test_a_listener_without_a_protocol_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"No security protocol defined for listener X: .*X:PLAINTEXT"):
        parsed("X://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"listener.security.protocol.map": "A:TLS"}, "must be NAME:PROTOCOL, with one of PLAINTEXT, SSL"),
        ({"listener.security.protocol.map": ":SSL"}, "must be NAME:PROTOCOL"),
        ({"inter.broker.listener.name": "B"}, "inter.broker.listener.name must be a listener name.*valid are A"),
    ],
)
def test_a_map_or_a_name_that_makes_no_sense_is_refused(options: dict[str, str], said: str) -> None:
    given = {"listeners": "A://127.0.0.1:0", "listener.security.protocol.map": "A:PLAINTEXT", **options}
    with pytest.raises(ConfigError, match=said):
        listeners(BrokerConfig(given), 1)


def test_all_nodes_need_a_port() -> None:
    with pytest.raises(ConfigError, match="A: 3 ports from 65534 on are wanted; 65535 is the last one"):
        parsed("A://127.0.0.1:65534", nodes=3)
