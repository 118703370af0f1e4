"""What every benchmark shares: servers to measure, their CPU and memory, one JSON line per result.

Peers run in the same run on the same machine, so that ratios hold where single figures do not. A peer that cannot be
had is named and left out.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).parent
sys.path.insert(0, str(BENCH.parent / "tests"))

from support.kafka.node import KafkaNode, KafkaUnavailable, free_ports  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """One running process to measure."""

    name: str
    pid: int
    port: int

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """User and system time of the process so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        """Resident memory, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def report(bench: str, **figures: object) -> None:
    """Print one result as a JSON line, with where and of what it was measured."""
    head = {
        "bench": bench,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
    }
    rounded = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps({**head, "commit": commit(), **rounded}), flush=True)


def left_out(bench: str, peer: str, reason: str) -> None:
    report(bench, peer=peer, left_out=reason)


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=BENCH, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


@contextmanager
def process(command: list[str], environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A child process that is gone afterwards."""
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
    )
    try:
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_for_port(port: int, limit_s: float = 30) -> None:
    import socket

    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.002)
    raise TimeoutError(f"nothing listens on port {port} after {limit_s} s")


@contextmanager
def partita(*options: str) -> Iterator[Server]:
    """`partita broker` in a process of its own, in memory unless the options say otherwise."""
    (port,) = free_ports(1)
    storage = () if "--data-dir" in options else ("--memory",)
    command = [sys.executable, "-m", "partita.cli.main", "broker", "--port", str(port), *storage, *options]
    with process(command) as child:
        wait_for_port(port)
        yield Server("partita", child.pid, port)


@contextmanager
def apache_kafka(bench: str) -> Iterator[Server | None]:
    """Apache Kafka, or None (reported) when it cannot be had."""
    try:
        node = KafkaNode().__enter__()
    except KafkaUnavailable as reason:
        left_out(bench, "Apache Kafka", str(reason).splitlines()[0])
        yield None
        return
    try:
        assert node._process is not None
        yield Server("Apache Kafka", node._process.pid, node.port)
    finally:
        node.__exit__()


def wire_program(bench: str) -> Path | None:
    """The C load program, compiled into a temporary folder; None (reported) without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        left_out(bench, "C load and echo", "no C compiler")
        return None
    target = Path(tempfile.gettempdir()) / f"partita-bench-wire-{os.getuid()}"
    subprocess.run([compiler, "-O2", "-o", str(target), str(BENCH / "wire.c")], check=True)
    return target


@contextmanager
def c_server(program: Path, name: str, *arguments: str) -> Iterator[Server]:
    """A C server: what this machine can do. `echo` over epoll; `store FILE FRAME ANSWER` receives and writes."""
    with process([str(program), *arguments]) as child:
        assert child.stdout is not None
        yield Server(name, child.pid, int(child.stdout.readline()))


def measured(server: Server, work: Callable[[], float]) -> tuple[float, float]:
    """Run `work`, which returns an amount; return it per second of the server's CPU, and the CPU seconds used."""
    before = server.cpu_s()
    amount = work()
    used = max(server.cpu_s() - before, 1 / TICKS)
    return amount / used, used
