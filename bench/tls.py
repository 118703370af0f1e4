"""Produce in 1 MB batches and fetch in 16 MB answers over TLS: megabytes per CPU-second of the server.

The client is a Python thread with OpenSSL; only the server's CPU is counted. Both servers show the same certificate
and speak TLS 1.3.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from harness import SECONDS, Server, apache_kafka, in_turns, process, row, row_is_wanted, wait_for_port
from produce_fetch import MB, TOPIC, fetch_frame, produce_frame
from table import OURS

from partita import Admin
from partita.designs.zookeeper.ports import free_ports
from support.certificates import Certificates, as_pkcs8

WARM_UP_SECONDS = {"partita": 0.5, "Apache Kafka": 6.0}
"""Java compiles its ciphers by then."""
DEPTH = 2


class Load:
    """One TLS connection that keeps some requests under way."""

    def __init__(self, port: int, authority: Path) -> None:
        context = ssl.create_default_context(cafile=authority)
        self._socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        self._buffer = bytearray(1 << 20)

    def run(self, frame: bytes, limit_s: float) -> tuple[int, int]:
        """(Answers, their bytes) within the time."""
        for _ in range(DEPTH):
            self._socket.sendall(frame)
        count = size = 0
        until = time.perf_counter() + limit_s
        while time.perf_counter() < until:
            size += self._answer()
            count += 1
            self._socket.sendall(frame)
        for _ in range(DEPTH):
            size += self._answer()
            count += 1
        return count, size

    def _answer(self) -> int:
        head = b""
        while len(head) < 4:
            head += self._socket.recv(4 - len(head))
        (left,) = struct.unpack(">i", head)
        total: int = left + 4
        view = memoryview(self._buffer)
        while left:
            left -= self._socket.recv_into(view[: min(left, len(view))])
        return total


def prepared(server: Server, authority: Path) -> None:
    """Create the topic and warm the server up in both directions."""
    options: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": str(authority)}
    with Admin(bootstrap_servers=f"localhost:{server.port}", **options) as admin:
        admin.create_topic(TOPIC, partitions=1)
    for frame in (produce_frame()[0], fetch_frame()):
        Load(server.port, authority).run(frame, WARM_UP_SECONDS[server.name])


def mb_per_cpu_s(server: Server, authority: Path, what: str) -> float:
    """What the server moves in one direction per CPU-second."""
    produce, batch_bytes = produce_frame()
    load = Load(server.port, authority)
    cpu = server.cpu_s()
    count, size = load.run(produce if what == "TLS produce" else fetch_frame(), SECONDS)
    cpu = server.cpu_s() - cpu
    return (count * batch_bytes if what == "TLS produce" else size) / MB / cpu


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-bench-")))
        certificates = Certificates(folder)
        shown = as_pkcs8(certificates.issue("localhost"))
        (port,) = free_ports(1)
        given = [f"--set=listeners=SSL://127.0.0.1:{port}", f"--set=ssl.keystore.location={shown}"]
        command = [sys.executable, "-m", "partita.cli.main", "broker", "--data-dir", str(folder / "data"), *given]
        child = stack.enter_context(process(command))
        wait_for_port(port)
        servers = [Server(OURS, child.pid, port)]
        store = {"type": "PEM", "location": str(shown)}
        settings = {f"listener.name.tls.ssl.keystore.{name}": value for name, value in store.items()}
        kafka = stack.enter_context(apache_kafka("tls", {"TLS": "SSL"}, settings))
        servers += [kafka] if kafka is not None else []
        for server in servers:
            prepared(server, certificates.ca)
        for name in ("TLS produce", "TLS fetch"):
            if row_is_wanted(name):
                row(name, in_turns({s.name: partial(mb_per_cpu_s, s, certificates.ca, name) for s in servers}))


if __name__ == "__main__":
    main()
