"""Sends damaged requests of every API to a broker: `python tools/fuzz.py --seconds 600 [--seed N]`.

A new seed every few thousand requests, a broker process of its own, and at the end one line: what was sent, what was
wrong, what the broker logged as a failure, how its memory grew. Ends with status 1 if anything was wrong, if the broker
logged a failure, or if it grew by more than 256 MiB. A seed replays: `--seed N --requests M`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from partita.designs.zookeeper.ports import free_ports  # noqa: E402
from support.broker.fuzzing import Fuzzer  # noqa: E402

REQUESTS_OF_A_SEED = 5_000
GROWTH_MB_MAX = 256


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--requests", type=int, help="only so many requests of the first seed")
    chosen = parser.parse_args()
    (port,) = free_ports(1)
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "partita.cli.main", "broker", "--memory", "--port", str(port)]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert broker.stdout is not None
        broker.stdout.readline()
        try:
            return attack(chosen, port, broker, log)
        finally:
            broker.terminate()
            broker.wait(30)


def attack(chosen: argparse.Namespace, port: int, broker: subprocess.Popen[bytes], log: IO[str]) -> int:
    before, until, seed = memory_mb(broker), time.monotonic() + chosen.seconds, chosen.seed
    sent, wrong = 0, []
    while time.monotonic() < until and broker.poll() is None:
        found = Fuzzer(port, seed).run(requests=chosen.requests or REQUESTS_OF_A_SEED)
        sent, seed = sent + found.requests, seed + 1
        wrong += found.wrong
        if chosen.requests:
            break
    log.seek(0)
    failures = [line.strip() for line in log if " ERROR " in line or "Traceback" in line]
    ended = broker.poll() is not None
    growth = 0.0 if ended else memory_mb(broker) - before
    for line in [*wrong[:20], *failures[:20]]:
        print(line[:1000])
    print(f"{sent} requests, seeds {chosen.seed} to {seed - 1}: {len(wrong)} wrong, {len(failures)} failures logged, "
          f"{growth:+.0f} MiB{', the broker ended' if ended else ''}")  # fmt: skip
    return 1 if wrong or failures or ended or growth > GROWTH_MB_MAX else 0


def memory_mb(broker: subprocess.Popen[bytes]) -> float:
    """Resident memory, in MiB."""
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    sys.exit(main())
