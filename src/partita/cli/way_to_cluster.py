"""The way to a cluster, step by step, for `partita doctor --bootstrap`: names, TCP, protocol, every advertised address.

The first step that fails ends the way of that address, with what the client would say and what to do about it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

from partita.cli.address import Address
from partita.errors import KafkaError
from partita.net.config import parse_servers

CONNECT_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: what was tried, what was found, and, if it failed, what to do."""

    what: str
    found: str
    is_good: bool
    advice: str = ""


def walk(address: Address) -> Iterator[Stage]:
    """Every step to the cluster. Raises ValueError for an address that is not one."""
    reached = False
    for host, port in parse_servers(str(address.client_options()["bootstrap.servers"])):
        stages = list(_tcp(f"bootstrap {host}:{port}", host, port, "is a broker running there? see: partita broker"))
        yield from stages
        reached = reached or all(stage.is_good for stage in stages)
    if reached:
        yield from _cluster(address)


def _tcp(what: str, host: str, port: int, advice: str) -> Iterator[Stage]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        yield Stage(
            what, f"the name is not known: {error.strerror or error}", False, "check the spelling, DNS or hosts"
        )
        return
    began = time.perf_counter()
    try:
        socket.create_connection((host, port), timeout=CONNECT_WITHIN_S).close()
    except OSError as error:
        yield Stage(what, f"no TCP connection: {error.strerror or error}", False, advice)
        return
    took_ms = (time.perf_counter() - began) * 1000
    yield Stage(what, f"{found[0][4][0]}, connected in {took_ms:.1f} ms", True)


def _cluster(address: Address) -> Iterator[Stage]:
    from partita.admin import Admin

    options = {"default.api.timeout.ms": 10_000, **address.client_options()}
    protocol = options.get("security.protocol", "PLAINTEXT")
    began = time.perf_counter()
    try:
        with Admin(options) as admin:
            took_ms = (time.perf_counter() - began) * 1000
            yield Stage(f"protocol {protocol}", f"requests are answered, first after {took_ms:.1f} ms", True)
            described = admin.describe_cluster()
            controller = "no controller" if described.controller_id < 0 else f"controller {described.controller_id}"
            brokers = f"{len(described.nodes)} broker{'s' * (len(described.nodes) != 1)}, {controller}"
            yield Stage(f"cluster {described.cluster_id}", brokers, described.controller_id >= 0)
            for node in described.nodes:
                told = f"the cluster calls its broker {node.id} by this address; check advertised.listeners"
                stages = list(_tcp(f"broker {node.id} at {node.host}:{node.port}", node.host, node.port, told))
                yield from stages
                if all(stage.is_good for stage in stages):
                    apis = admin.api_versions(node.id)
                    yield Stage(f"broker {node.id}", f"answers and serves {len(apis)} APIs", True)
    except KafkaError as error:
        yield Stage(
            f"protocol {protocol}", str(error), False, "check security.protocol and the options for TLS and SASL"
        )
