"""Run every benchmark, or the named ones: `python bench/run.py [name ...]`. One JSON line per result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parent
BENCHMARKS = (
    "start",
    "heartbeats",
    "produce_fetch",
    "tls",
    "consume",
    "iteration",
    "close",
    "async_face",
    "send",
    "assignors",
    "groups",
    "replay",
    "spark",
)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    failed = [
        name for name in names or BENCHMARKS if subprocess.run([sys.executable, str(BENCH / f"{name}.py")]).returncode
    ]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
