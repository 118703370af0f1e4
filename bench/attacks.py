"""Attacks on a broker beside a canary: `python bench/attacks.py [--only TEXT]`, one JSON line per attack.

Each line says what the canary waited for its answers (p99, max), how long the broker's memory and CPU grew, and how
long the broker waited for a core, which is the machine's fault and not the broker's. Ends with status 1 if an answer
of the canary was refused, or if p99 exceeds 100 ms.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from canary import Canary
from harness import Server, partita, report
from hostile import ATTACKS, Attack, Stage

P99_MS_MAX = 100.0
QUIET_SECONDS = 1.0
AFTERWARDS_SECONDS = 0.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    chosen = {name: attack for name, attack in ATTACKS.items() if parser.parse_args().only in name}
    failed = []
    for name in chosen:
        with partita() as server:
            stage = Stage(server.port)
            if not survives(server, name, ATTACKS[name](stage), stage.close):
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def survives(server: Server, name: str, attack: Attack, close: Callable[[], None]) -> bool:
    """Attack once, then `close` what is left open; print what the canary saw; return whether that is good enough."""
    canary = Canary(server)
    next(attack)
    canary.start()
    time.sleep(QUIET_SECONDS)
    quiet = canary.stop()
    memory, cpu = server.memory_mb(), server.cpu_s()
    canary.start()
    begun = time.monotonic()
    for _ in attack:
        pass
    seconds = time.monotonic() - begun
    peak = server.memory_mb()
    close()
    time.sleep(AFTERWARDS_SECONDS)
    seen = canary.stop()
    canary.close()
    is_good = not seen.refused and seen.p99_ms <= P99_MS_MAX
    report(
        "attacks", attack=name, p99_ms=seen.p99_ms, max_ms=seen.max_ms, slowest=seen.slowest, answers=seen.answers,
        refused=seen.refused, quiet_p99_ms=quiet.p99_ms, quiet_max_ms=quiet.max_ms, broker_queued_ms=seen.queued_ms,
        seconds=seconds, cpu_s=server.cpu_s() - cpu, memory_mb=peak, memory_before_mb=memory,
        memory_after_mb=server.memory_mb(), good=is_good,
    )  # fmt: skip
    return is_good


if __name__ == "__main__":
    sys.exit(main())
