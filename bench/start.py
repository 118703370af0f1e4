"""Start to the first ApiVersions answer, of a process and inside one, and idle memory.

`python bench/start.py in-process` prints the milliseconds of brokers started one after another in that process.
"""

from __future__ import annotations

import compileall
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import peers
from harness import (
    EVERY_COMPILER,
    ROUNDS,
    Medians,
    Server,
    in_turns,
    kfake_command,
    left_out,
    noida_db_command,
    partita_command,
    process,
    row,
    wanted,
    wire_program,
)
from table import C_ECHO, KAFKA, KFAKE, NOIDA, OURS

import partita
from partita.designs.zookeeper.ports import free_ports
from partita.protocol.framing import encode_request
from partita.protocol.messages.api_versions import ApiVersionsRequest
from support.kafka.node import KafkaNode, KafkaUnavailable

STARTS = 3
"""Of a process in a round; the median is the round's."""
STARTS_IN_PROCESS = 15
SETTLING_S = 1.0
Command: TypeAlias = Callable[[int], list[str]] | Path
"""The command for a port, or the C echo."""
QUESTION = b"".join(encode_request(18, 0, 1, "bench", ApiVersionsRequest()))


def first_answer(port: int) -> float:
    """Seconds from now to the first answer on `port`."""
    started = time.monotonic()
    while time.monotonic() < started + 60:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(QUESTION)
                if connection.recv(4):
                    return time.monotonic() - started
        except OSError:
            time.sleep(0.0005)
    raise TimeoutError(f"no answer on port {port}")


@contextmanager
def answering(command: Command) -> Iterator[Server]:
    """The process of this command, which has answered once. The C echo chooses its port."""
    (port,) = free_ports(1)
    with process([str(command), "echo"] if isinstance(command, Path) else command(port)) as child:
        if isinstance(command, Path):
            assert child.stdout is not None
            port = int(child.stdout.readline())
        first_answer(port)
        yield Server("", child.pid, port)


def started(command: Command) -> float:
    """Milliseconds until the process of this command answers."""
    began = time.monotonic()
    with answering(command):
        return (time.monotonic() - began) * 1000


def idle_mb(command: Command) -> float:
    """Its memory once nothing more is loaded: the coordinator of groups comes a quarter of a second after the start."""
    with answering(command) as server:
        time.sleep(SETTLING_S)
        return server.memory_mb()


def bare_python() -> float:
    """What the interpreter with asyncio alone takes to start and end, in milliseconds."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    return (time.monotonic() - began) * 1000


def in_process() -> None:
    """Print what each of some brokers started in this process takes to its first answer, in milliseconds."""
    from partita import Broker

    took = []
    for _ in range(STARTS_IN_PROCESS):
        began = time.perf_counter()
        with Broker() as broker:
            first_answer(broker.port)
            took.append((time.perf_counter() - began) * 1000)
    print(json.dumps(took))


def measure_in_process() -> float:
    """The median of a process, without its first broker, which imports."""
    done = subprocess.run([sys.executable, __file__, "in-process"], capture_output=True, text=True, check=True)
    took: list[float] = json.loads(done.stdout)
    return statistics.median(took[1:])


def small_peers(folder: str) -> dict[str, Callable[[int], list[str]]]:
    """The commands of the peers that can be had."""
    found: dict[str, Callable[[int], list[str]]] = {}
    commands: dict[str, Callable[[int], list[str]]] = {
        KFAKE: kfake_command,
        NOIDA: lambda port: noida_db_command(port, folder),
    }
    for name, command in commands.items():
        try:
            if wanted(name):
                command(0)
                found[name] = command
        except peers.PeerUnavailable as reason:
            left_out("start", name, str(reason))
    return found


def main() -> None:
    # As an installer does; the environment may forbid it at import.
    compileall.compile_dir(partita.__path__[0], quiet=2)
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        commands: dict[str, Command] = {OURS: partita_command, **small_peers(folder)}
        program = wire_program("start")
        if program is not None and wanted(C_ECHO):
            commands[C_ECHO] = program
        measures: dict[str, Callable[[], float]] = {who: partial(started, command) for who, command in commands.items()}
        if wanted("import asyncio"):
            measures["import asyncio"] = bare_python
        figures = in_turns(measures, STARTS)
        used = in_turns({who: partial(idle_mb, command) for who, command in commands.items()})
    if wanted(KAFKA):
        try:
            figures[KAFKA], used[KAFKA] = kafka_started()
        except KafkaUnavailable as reason:
            left_out("start", KAFKA, str(reason).splitlines()[0])
    row("start, process", figures)
    row("start, in process", Medians({OURS: [measure_in_process() for _ in range(ROUNDS)]}))
    row("idle memory", used)


def kafka_started() -> tuple[float, float]:
    """Milliseconds from the start of a formatted node to its first answer, and its idle memory."""
    os.environ["_JAVA_OPTIONS"] = EVERY_COMPILER
    with KafkaNode() as node:
        node.stop()
        began = time.monotonic()
        node.start()
        first_answer(node.port)
        took_ms = (time.monotonic() - began) * 1000
        assert node._process is not None
        return took_ms, Server(KAFKA, node._process.pid, node.port).memory_mb()


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    in_process() if sys.argv[1:] == ["in-process"] else main()
