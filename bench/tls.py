"""Produce in 1 MB batches and fetch in 16 MB answers over TLS: gigabytes per CPU-second of the server.

The client is a Python thread with OpenSSL; only the server's CPU is counted. Both servers show the same certificate
and speak TLS 1.3.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness import Server, left_out, process, report, wait_for_port
from produce_fetch import TOPIC, fetch_frame, produce_frame

from partita import Admin
from support.certificates import Certificates, as_pkcs8
from support.kafka.node import KafkaNode, KafkaUnavailable, free_ports

SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
WARM_UP_SECONDS = 6.0
"""Java compiles its ciphers by then."""
EVERY_COMPILER = "-XX:TieredStopAtLevel=4"
"""Tests start Java with its quick compiler alone, which has no fast AES."""
DEPTH = 2
GB = 1e9


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


def measure(server: Server, authority: Path) -> None:
    """Print what the server does per CPU-second, in both directions."""
    options: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": str(authority)}
    with Admin(bootstrap_servers=f"localhost:{server.port}", **options) as admin:
        admin.create_topic(TOPIC, partitions=1)
    produce, batch_bytes = produce_frame()
    for name, frame in (("produce", produce), ("fetch", fetch_frame())):
        load = Load(server.port, authority)
        load.run(frame, WARM_UP_SECONDS)
        cpu, begin = server.cpu_s(), time.perf_counter()
        count, size = load.run(frame, SECONDS)
        seconds, cpu = time.perf_counter() - begin, server.cpu_s() - cpu
        moved = (count * batch_bytes if name == "produce" else size) / GB
        figures = {"GB/s": moved / seconds, "GB per CPU-second": moved / cpu}
        report(f"tls {name}", server=server.name, **figures)


def main() -> None:
    os.environ["_JAVA_OPTIONS"] = EVERY_COMPILER
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-bench-")))
        certificates = Certificates(folder)
        shown = as_pkcs8(certificates.issue("localhost"))
        (port,) = free_ports(1)
        given = [f"--set=listeners=SSL://127.0.0.1:{port}", f"--set=ssl.keystore.location={shown}"]
        command = [sys.executable, "-m", "partita.cli.main", "broker", "--data-dir", str(folder / "data"), *given]
        child = stack.enter_context(process(command))
        wait_for_port(port)
        measure(Server("partita", child.pid, port), certificates.ca)
        store = {"type": "PEM", "location": str(shown)}
        settings = {f"listener.name.tls.ssl.keystore.{name}": value for name, value in store.items()}
        try:
            node = stack.enter_context(KafkaNode({"TLS": "SSL"}, **settings))
        except KafkaUnavailable as reason:
            left_out("tls", "Apache Kafka", str(reason).splitlines()[0])
            return
        assert node._process is not None
        measure(Server("Apache Kafka", node._process.pid, node.ports["TLS"]), certificates.ca)


if __name__ == "__main__":
    main()
