"""What every benchmark shares: servers to measure, their CPU and memory, one JSON line per result.

Peers run in the same run on the same machine, in turns with Partita, so that ratios hold where single figures do not.
A peer that cannot be had is named and left out. BENCH_QUICK=1 measures each thing once and briefly; BENCH_PEERS names
the peers to measure, separated by commas, and is empty for none.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import peers
from table import C_ECHO, KAFKA, KFAKE, NOIDA, OURS

from partita.compiled import compiled_modules
from partita.designs.zookeeper.ports import free_ports

BENCH = Path(__file__).parent
sys.path.insert(0, str(BENCH.parent / "tests"))

from support.kafka.node import KafkaNode, KafkaUnavailable  # noqa: E402

QUICK = os.environ.get("BENCH_QUICK", "") not in ("", "0")
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.3" if QUICK else "0.7"))
"""How long one measurement of a server takes."""
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "1" if QUICK else "3"))
"""How often each is measured, in turns; the median counts, and a goal is met if every round meets it."""
ROW_SECONDS = math.inf if "BENCH_ROUNDS" in os.environ else 12.0
"""After so long no third round of a row begins, so that all rows take eleven minutes."""
EVERY_COMPILER = "-XX:TieredStopAtLevel=4"
"""Tests start Java with its quick compiler alone; a peer is measured with all of it."""
START_LIMIT_S = 30.0


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
        """User and system time of all threads of the process so far, in seconds."""
        return time.clock_gettime((~self.pid << 3) | 2)  # the kernel's number for the CPU clock of another process

    def memory_mb(self) -> float:
        """Resident memory, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def report(bench: str, **figures: object) -> None:
    """Print one result as a JSON line, with where and of what it was measured.

    `compiled` is false where any module that is worth compiling runs as plain Python: such figures are far too low.
    """
    head = {
        "bench": bench,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "compiled": all(compiled_modules().values()),
    }
    rounded = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps({**head, "commit": commit(), **rounded}), flush=True)


class Medians(dict[str, float]):
    """The median of each one's figures, and of each round: of `each` figures in a row, where one is too brief."""

    def __init__(self, found: Mapping[str, Sequence[float]], each: int = 1) -> None:
        super().__init__({who: statistics.median(values) for who, values in found.items()})
        rounds = range(0, max(map(len, found.values()), default=0), each)
        self.rounds = [
            {who: statistics.median(values[i : i + each]) for who, values in found.items() if i < len(values)}
            for i in rounds
        ]


def row(name: str, figures: Medians) -> None:
    """Print what all measured of one row of the table: `make bench` collects these lines."""
    report("row", row=name, figures=_rounded(figures), rounds=[_rounded(each) for each in figures.rounds])


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {who: float(f"{value:.4g}") for who, value in figures.items()}


def left_out(bench: str, peer: str, reason: str) -> None:
    report(bench, peer=peer, left_out=reason)


def wanted(peer: str) -> bool:
    """Whether this peer, or this floor, is to be measured."""
    named = os.environ.get("BENCH_PEERS")
    return named is None or peer in named.split(",")


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


def wait_for_port(port: int, limit_s: float = START_LIMIT_S) -> None:
    import socket

    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.002)
    raise TimeoutError(f"nothing listens on port {port} after {limit_s} s")


def partita_command(port: int, *options: str) -> list[str]:
    """`partita broker` on this port, in memory unless the options say otherwise."""
    storage = () if "--data-dir" in options else ("--memory",)
    return [sys.executable, "-m", "partita.cli.main", "broker", "--port", str(port), *storage, *options]


@contextmanager
def partita(*options: str) -> Iterator[Server]:
    """`partita broker` in a process of its own, in memory unless the options say otherwise."""
    (port,) = free_ports(1)
    with process(partita_command(port, *options)) as child:
        wait_for_port(port)
        yield Server(OURS, child.pid, port)


@contextmanager
def apache_kafka(
    bench: str, listeners: Mapping[str, str] | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Server | None]:
    """Apache Kafka, or None (reported) when it cannot be had; on the first of `listeners` if there are any."""
    if not wanted(KAFKA):
        yield None
        return
    os.environ["_JAVA_OPTIONS"] = EVERY_COMPILER
    node = KafkaNode(listeners, **(settings or {}))
    try:
        node.__enter__()
    except KafkaUnavailable as reason:
        left_out(bench, KAFKA, str(reason).splitlines()[0])
        yield None
        return
    try:
        assert node._process is not None
        yield Server(KAFKA, node._process.pid, next(iter(node.ports.values()), node.port))
    finally:
        node.__exit__()


def kfake_command(port: int) -> list[str]:
    """One kfake broker. Raises PeerUnavailable."""
    return [str(peers.kfake()), str(port)]


def noida_db_command(port: int, folder: str) -> list[str]:
    """noida-db with nothing but its Kafka service. Raises PeerUnavailable."""
    return [str(peers.noida_db()), "start", "--only", "kafka", "--kafka-port", str(port), "--data-dir", folder]


@contextmanager
def small_peer(bench: str, name: str) -> Iterator[Server | None]:
    """kfake or noida-db, or None (reported) when it cannot be had."""
    if not wanted(name):
        yield None
        return
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="partita-bench-") as folder:
        try:
            command = kfake_command(port) if name == KFAKE else noida_db_command(port, folder)
        except peers.PeerUnavailable as reason:
            left_out(bench, name, str(reason))
            yield None
            return
        with process(command) as child:
            wait_for_port(port)
            yield Server(name, child.pid, port)


def brokers(stack: ExitStack, bench: str, *, small_peers: Sequence[str] = (KFAKE, NOIDA)) -> list[Server]:
    """Partita, Apache Kafka and the small peers that can be had, all running until the stack ends."""
    found = [stack.enter_context(partita()), stack.enter_context(apache_kafka(bench))]
    found += [stack.enter_context(small_peer(bench, name)) for name in small_peers]
    return [server for server in found if server is not None]


def c_program(bench: str, name: str) -> Path | None:
    """A C program of this folder, compiled into a temporary folder; None (reported) without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        left_out(bench, f"bench/{name}.c", "no C compiler")
        return None
    target = Path(tempfile.gettempdir()) / f"partita-bench-{name}-{os.getuid()}-{os.getpid()}"
    subprocess.run([compiler, "-O2", "-o", str(target), str(BENCH / f"{name}.c")], check=True)
    return target


def wire_program(bench: str) -> Path | None:
    """The C load program."""
    return c_program(bench, "wire")


@contextmanager
def c_server(program: Path, name: str = C_ECHO, *arguments: str) -> Iterator[Server]:
    """A C server: `echo` of wire.c unless the arguments name another one."""
    with process([str(program), *(arguments or ("echo",))]) as child:
        assert child.stdout is not None
        yield Server(name, child.pid, int(child.stdout.readline()))


def measured(server: Server, work: Callable[[], float]) -> tuple[float, float]:
    """Run `work`, which returns an amount; return it per second of the server's CPU, and the CPU seconds used."""
    before = server.cpu_s()
    amount = work()
    used = max(server.cpu_s() - before, 1e-4)
    return amount / used, used


def turns(each: int = 1) -> Iterator[int]:
    """Count the turns of a row: ROUNDS of `each`, or fewer where they take long."""
    began = time.monotonic()
    for turn in range(ROUNDS * each):
        if turn % each or turn < 2 * each or time.monotonic() < began + ROW_SECONDS:
            yield turn
        else:
            break


def in_turns(measures: Mapping[str, Callable[[], float]], each: int = 1) -> Medians:
    """Each measure in turns, so that what the machine does otherwise meets all alike; a round are `each` turns."""
    found: dict[str, list[float]] = {who: [] for who in measures}
    for turn in turns(each):
        order = list(measures)[:: 1 if turn % 2 == 0 else -1]
        for who in order:
            found[who].append(measures[who]())
    return Medians(found, each)


def row_is_wanted(name: str) -> bool:
    """Whether this row was picked: BENCH_ROWS names them, separated by bars; all of them when it is empty."""
    picked = os.environ.get("BENCH_ROWS", "")
    return not picked or name in picked.split("|")
