"""Attacks on a broker beside a canary: `python bench/attacks.py [--only TEXT]`, one JSON line per attack.

Each line says the longest slice of the broker's loop in CPU time (`timed_broker.py`), what the canary waited for its
answers (p99, max), how long the broker's memory and CPU grew, and how long the broker waited for a core, which is the
machine's fault and not the broker's. Ends with status 1 if an answer of the canary was refused, if p99 exceeds 100 ms,
or if a slice exceeds 10 ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct

from canary import Canary
from harness import BENCH, Server, partita_command, process, report, wait_for_port
from hostile import ATTACKS, Attack, Stage

from partita.designs.zookeeper.ports import free_ports

P99_MS_MAX, SLICE_MS_MAX = 100.0, 10.0
SLICE_S = Struct("d")
QUIET_SECONDS = 1.0
AFTERWARDS_SECONDS = 0.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    chosen = {name: attack for name, attack in ATTACKS.items() if parser.parse_args().only in name}
    failed = []
    for name in chosen:
        with timed_broker() as (server, slices):
            stage = Stage(server.port)
            stage.warm_up()
            if not survives(server, name, ATTACKS[name](stage), stage.close, slices):
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


@contextmanager
def timed_broker() -> Iterator[tuple[Server, Path]]:
    """A broker that measures its slices, with a data directory; and the file that holds the longest one."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="partita-attacks-") as folder:
        slices = Path(folder) / "longest"
        slices.write_bytes(bytes(SLICE_S.size))
        options = partita_command(port, "--data-dir", f"{folder}/data", "--log-level", "error")[4:]
        with process([sys.executable, str(BENCH / "timed_broker.py"), str(slices), *options]) as child:
            wait_for_port(port)
            yield Server("partita", child.pid, port), slices


def longest_slice_ms(slices: Path | None) -> float:
    """The longest slice since the last look, in ms of CPU time; 0 for a broker that does not measure it."""
    if slices is None:
        return 0.0
    with slices.open("r+b") as file:
        (seconds,) = SLICE_S.unpack(file.read())
        file.seek(0)
        file.write(bytes(SLICE_S.size))
    return float(seconds) * 1000


def survives(server: Server, name: str, attack: Attack, close: Callable[[], None], slices: Path | None = None) -> bool:
    """Attack once, then `close` what is left open; print what the canary saw; return whether that is good enough."""
    canary = Canary(server)
    next(attack)
    canary.start()
    time.sleep(QUIET_SECONDS)
    quiet = canary.stop()
    memory, cpu = server.memory_mb(), server.cpu_s()
    longest_slice_ms(slices)
    canary.start()
    begun = time.monotonic()
    for _ in attack:
        pass
    seconds = time.monotonic() - begun
    peak, slice_ms = server.memory_mb(), longest_slice_ms(slices)
    close()
    time.sleep(AFTERWARDS_SECONDS)
    seen = canary.stop()
    canary.close()
    is_good = not seen.refused and seen.p99_ms <= P99_MS_MAX and slice_ms <= SLICE_MS_MAX
    report(
        "attacks", attack=name, slice_ms=slice_ms, p99_ms=seen.p99_ms, max_ms=seen.max_ms, slowest=seen.slowest,
        answers=seen.answers, refused=seen.refused, quiet_p99_ms=quiet.p99_ms, quiet_max_ms=quiet.max_ms,
        broker_queued_ms=seen.queued_ms, seconds=seconds, cpu_s=server.cpu_s() - cpu, memory_mb=peak,
        memory_before_mb=memory, memory_after_mb=server.memory_mb(), good=is_good,
    )  # fmt: skip
    return is_good


if __name__ == "__main__":
    sys.exit(main())
