"""A stranger's first minutes by the clock: clone, Ctrl-C in the middle of the set-up, again, and the demo to its end.

Usage: cold_start.py [--no-cache] [--target demo|taste]. Works in a temporary folder, with the commit that is checked
out. Prints when each step of the set-up was said, the seconds of set-up and target, and the sizes; README's figures are
its figures. `--no-cache` has pip and uv download everything, as on a new machine.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = (2, 130, -signal.SIGINT)
"""How make may end after a Ctrl-C: with its own status, with that of what it ran, or by the signal."""


class ColdStart:
    """One clone and the targets that are made in it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.clone = folder / "partita"
        self._environment = environment
        command = ["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(self.clone)]
        subprocess.run(command, check=True)

    def make(self, target: str, *, interrupt_at: str | None = None) -> tuple[int, list[str]]:
        """Make a target and print its lines; Ctrl-C, for make and all it runs, at the first that has a text."""
        began = time.monotonic()
        command = ["make", target, f"PYTHON={sys.executable}"]
        # An interrupt is ignored in what a shell runs in the background, and what is ignored stays so in children.
        child = subprocess.Popen(
            command, cwd=self.clone, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        assert child.stdout is not None
        said = []
        for line in child.stdout:
            print(f"{time.monotonic() - began:6.1f} s | {line}", end="", flush=True)
            said.append(line.rstrip())
            if interrupt_at and interrupt_at in line:
                interrupt_at = None
                os.killpg(child.pid, signal.SIGINT)
        return child.wait(), said

    def size_mb(self, folder: str) -> float:
        """Size of the files in a folder of the clone."""
        files = (path for path in (self.clone / folder).rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files) / 1e6


def faults_of_interrupt(status: int, said: list[str]) -> list[str]:
    """What an interrupted set-up must not do: end well, show a traceback, or leave out how to go on."""
    text = "\n".join(said)
    found = [] if status in INTERRUPTED else [f"make ended with {status} after Ctrl-C; expected 130"]
    found += ["a Ctrl-C shows a traceback"] if "Traceback" in text else []
    found += [] if "the same command goes on" in text else ["a Ctrl-C does not say how to go on"]
    return found


def main() -> int:
    """Measure; return 1 when a target failed or an interrupt was not taken as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=("demo", "taste"), default="demo")
    parser.add_argument("--no-cache", action="store_true", help="as on a new machine: nothing was downloaded before")
    options = parser.parse_args()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if options.no_cache:
        environment |= {"PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1"}
    with tempfile.TemporaryDirectory(prefix="partita-cold-") as folder:
        cold = ColdStart(Path(folder), environment)
        wrong = faults_of_interrupt(*cold.make(options.target, interrupt_at="set-up 2/"))
        began = time.monotonic()
        status, said = cold.make(options.target)
        took_s = time.monotonic() - began
        set_up = re.findall(r"^set-up done in (\d+) s", "\n".join(said), re.MULTILINE)
        wrong += [] if set_up else ["after a Ctrl-C nothing was set up"]
        wrong += [f"make {options.target} ended with {status}"] if status else []
        print(
            f"\nmake {options.target} in a new clone: {took_s:.0f} s, {' and '.join(set_up) or '?'} s of them set-up; "
            f".venv {cold.size_mb('.venv'):,.0f} MB; {os.cpu_count()} cores, "
            f"{'nothing' if options.no_cache else 'downloads'} cached, load {os.getloadavg()[0]:.1f}"
        )
    print("".join(f"{fault}\n" for fault in wrong), end="")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
