"""Plants known faults, one at a time, and asks who notices: `python tools/mutants.py [--only TEXT] [--seeds N]`.

The faults stand in tools/mutants.txt, at least one per row of the bug museum that has code. Each is planted in a copy
of the source; then the tests of its judges run, and with `--seeds N` also the simulator's seeds 1 to N in both modes,
one virtual minute each; a line that begins with "~" says why no history can show a fault. Ends with status 1 if a fault
survives the tests. A judge has `--seconds`: tests that do not end by then have noticed the fault, for without it they
do; seeds have not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = ROOT / "tools" / "mutants.txt"
TESTS = {
    "g": ("tests/scenarios/group", "tests/unit/group", "tests/unit/broker/groups"),
    "c": ("tests/unit/consumer", "tests/scenarios/consumer"),
    "a": ("tests/unit/assignors", "tests/property/test_assignors.py"),
    "b": ("tests/unit/broker/groups",),
    "t": (
        "tests/unit/transactions",
        "tests/unit/broker/transactions",
        "tests/unit/group/test_markers.py",
        "tests/unit/log/test_producer_state.py",
        "tests/unit/log/test_guards.py",
        "tests/unit/log/test_marker_compaction.py",
        "tests/unit/log/test_transaction_vectors.py",
        "tests/unit/log/test_partition_log.py",
        "tests/unit/producer/test_transactions.py",
        "tests/unit/producer/test_refused_records.py",
        "tests/unit/producer/test_producer_core.py",
        "tests/unit/consumer/test_records.py",
        "tests/unit/broker/topics",
        "tests/unit/broker/storage/test_sick_disk.py",
        "tests/simulation/test_transactions.py",
    ),
}
SEEDS_FROM = """
from functools import partial
from itertools import product
from partita.sim.fault_plan import PROTOCOLS
from partita.sim.run import simulate, simulate_transactions
import sys
plays = [(name, partial(simulate, protocol=name)) for name in PROTOCOLS]
if "t" in sys.argv[2]:
    plays = [("transactions", simulate_transactions)]
for seed, (name, play), liveness in product(range(1, int(sys.argv[1]) + 1), plays, (False, True)):
    verdict = play(seed, liveness=liveness, minutes=1)
    if verdict.broken:
        mode = "liveness" if liveness else "safety"
        sys.exit(f"seed {seed} {name} {mode} {verdict.broken.partition(':')[0]}")
"""


@dataclass
class Mutant:
    """One fault: `edits` are (file under src/partita, old text, new text)."""

    row: str
    judges: str
    what: str
    edits: list[tuple[str, str, str]] = field(default_factory=list)
    unseen: str = ""
    """Why no seed of the simulator can notice it."""

    def plant(self, package: Path) -> None:
        """Change the files. Raises ValueError if a file is not as the fault expects it."""
        for name, old, new in self.edits:
            path = package / name
            text = path.read_text()
            if text.count(old) != 1:
                raise ValueError(f"{self.row} {self.what}: its lines stand {text.count(old)} times in {name}, not once")
            path.write_text(text.replace(old, new))


def mutants() -> list[Mutant]:
    """The faults of the list, in order."""
    found: list[Mutant] = []
    for block in LISTED.read_text().split("\n\n"):
        if block.startswith("= "):
            head, _, rest = block.removeprefix("= ").partition("\n")
            row, judges, what = head.split(" ", 2)
            reason = rest.partition("\n")[0].removeprefix("~ ") if rest.startswith("~ ") else ""
            found.append(Mutant(row, judges, what, list(_edits(rest)), reason))
    return found


def _edits(text: str) -> Iterator[tuple[str, str, str]]:
    for part in text.strip("\n").split("@ ")[1:]:
        name, *lines = part.strip("\n").split("\n")
        old = "\n".join(line[2:] for line in lines if line.startswith("-"))
        new = "\n".join(line[2:] for line in lines if line.startswith("+"))
        yield name, old, new


def copy_source(to: Path) -> Path:
    """The package under `to`, uncompiled; returns its folder."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    shutil.copytree(ROOT / "src", to / "src", ignore=ignored)
    return to / "src" / "partita"


def killed_by_tests(mutant: Mutant, source: Path, seconds: int) -> str:
    """The first test that fails; empty if all pass in time."""
    paths = [path for judge in mutant.judges for path in TESTS[judge]]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths]
    try:
        out = _run(command, source, seconds)
    except subprocess.TimeoutExpired:
        return f"the tests do not end within {seconds} s"
    failed = [line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" - ")[0].split(" ", 1)[1] if failed else ""


def killed_by_seeds(mutant: Mutant, source: Path, seeds: int, seconds: int) -> str:
    """The first seed that breaks a rule, and the rule; empty if none does in time."""
    try:
        out = _run([sys.executable, "-c", SEEDS_FROM, str(seeds), mutant.judges], source, seconds)
    except subprocess.TimeoutExpired:
        return ""
    lines = out.strip().splitlines()
    return "" if not lines else lines[-1] if lines[-1].startswith("seed ") else f"crash: {lines[-1]}"


def _run(command: list[str], source: Path, seconds: int) -> str:
    environment = os.environ | {"PYTHONPATH": str(source.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds)
    return done.stdout + done.stderr if done.returncode else ""


def judge(mutant: Mutant, *, seeds: int, seconds: int) -> tuple[str, str]:
    """Who notices the fault: a test, and a seed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        package = copy_source(Path(folder))
        mutant.plant(package)
        by_test = killed_by_tests(mutant, package, seconds)
        asks_seeds = seeds and set(mutant.judges) & {"g", "c", "b", "t"} and not mutant.unseen
        by_seed = killed_by_seeds(mutant, package, seeds, seconds) if asks_seeds else mutant.unseen
    return by_test, by_seed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults whose row or description has this text")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="let the simulator's seeds 1 to N judge too")
    parser.add_argument("--seconds", type=int, default=240, help="patience with one judge (240)")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    given = parser.parse_args()
    chosen = [m for m in mutants() if given.only in f"{m.row} {m.what}"]
    survivors = 0
    for mutant in chosen:
        if given.list:
            print(f"{mutant.row} {mutant.judges} {mutant.what}")
            continue
        by_test, by_seed = judge(mutant, seeds=given.seeds, seconds=given.seconds)
        survivors += not by_test
        print(f"{mutant.row} {mutant.what}\n    test: {by_test or 'SURVIVES'}", flush=True)
        if given.seeds:
            print(f"    seed: {by_seed or 'nothing'}", flush=True)
    print(f"{len(chosen)} faults" + ("" if given.list else f", {survivors} survive the tests"))
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
