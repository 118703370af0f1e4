"""Broker start to the first ApiVersions answer, and idle memory."""

from __future__ import annotations

import compileall
import statistics
import subprocess
import sys
import time

from harness import Server, apache_kafka, process, report

import partita
from partita.protocol.framing import encode_request
from partita.protocol.messages.api_versions import ApiVersionsRequest
from support.kafka.node import free_ports

RUNS = 7


def first_answer(port: int) -> float:
    """Seconds from now to the first ApiVersions answer on `port`."""
    import socket

    started = time.monotonic()
    question = b"".join(encode_request(18, 0, 1, "bench", ApiVersionsRequest()))
    while time.monotonic() < started + 60:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(question)
                if connection.recv(4):
                    return time.monotonic() - started
        except OSError:
            time.sleep(0.001)
    raise TimeoutError(f"no answer on port {port}")


def ours() -> tuple[float, float]:
    (port,) = free_ports(1)
    with process([sys.executable, "-m", "partita.cli.main", "broker", "--port", str(port), "--memory"]) as child:
        took = first_answer(port)
        time.sleep(0.3)
        return took, Server("partita", child.pid, port).memory_mb()


def bare_python() -> float:
    """What the interpreter alone takes to start and end: the floor."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    return time.monotonic() - started


def main() -> None:
    compileall.compile_dir(
        partita.__path__[0], quiet=2
    )  # as an installer does; the environment may forbid it at import
    runs = [ours() for _ in range(RUNS)]
    figures = {
        "partita ms": statistics.median(t for t, _ in runs) * 1000,
        "partita MB": statistics.median(m for _, m in runs),
        "python with asyncio ms": statistics.median(bare_python() for _ in range(RUNS)) * 1000,
    }
    started = time.monotonic()
    with apache_kafka("start") as kafka:
        if kafka:
            figures["Apache Kafka ms"] = (time.monotonic() - started + first_answer(kafka.port)) * 1000
            figures["Apache Kafka MB"] = kafka.memory_mb()
    report("start", runs=RUNS, **figures)


if __name__ == "__main__":
    main()
