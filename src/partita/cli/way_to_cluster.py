"""The way to a cluster, step by step, for `partita doctor --bootstrap`: names, TCP, protocol, every advertised address.

The first step that fails ends the way of that address, with the client's error and a remedy.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partita.cli.address import Address
from partita.errors import KafkaError
from partita.lazy import later
from partita.net.config import parse_servers

if TYPE_CHECKING:
    from partita import admin as admin_client
else:
    admin_client = later("partita.admin")

CONNECT_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: the attempt, its result, and, if it failed, a remedy."""

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
    options = {"default.api.timeout.ms": 10_000, **address.client_options()}
    protocol = options.get("security.protocol", "PLAINTEXT")
    began = time.perf_counter()
    try:
        with admin_client.Admin(options) as admin:
            took_ms = (time.perf_counter() - began) * 1000
            yield Stage(f"protocol {protocol}", f"requests are answered, first after {took_ms:.1f} ms", True)
            described = admin.describe_cluster()
            controller = "no controller" if described.controller_id < 0 else f"controller {described.controller_id}"
            brokers = f"{len(described.nodes)} broker{'s' * (len(described.nodes) != 1)}, {controller}"
            yield Stage(f"cluster {described.cluster_id}", brokers, described.controller_id >= 0)
            for node in described.nodes:
                advice = f"the cluster calls its broker {node.id} by this address; check advertised.listeners"
                stages = list(_tcp(f"broker {node.id} at {node.host}:{node.port}", node.host, node.port, advice))
                yield from stages
                if all(stage.is_good for stage in stages):
                    apis = admin.api_versions(node.id)
                    yield Stage(f"broker {node.id}", f"answers and serves {len(apis)} APIs", True)
    except KafkaError as error:
        yield Stage(
            f"protocol {protocol}", str(error), False, "check security.protocol and the options for TLS and SASL"
        )
