"""What got slower from one checkout to another: `python bench/compare.py BASE HEAD [ROW ...]`.

BASE and HEAD are revisions, each checked out and built in a temporary folder, or folders that are taken as they are.
The rows are those of `make bench`, without peers; the scripts are those beside this file for both sides. Both are run
in turns. What seems to be slower by more than its noise is measured a second time, and named if that says so too; then
the exit code is 1. A row that one side cannot run is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from series import Change, change
from table import BY_NAME, OURS, Row, chosen, number

BENCH = Path(__file__).parent
ROUNDS = 7
LIMIT_S = 120.0
"""How long one script may take."""

Figures = dict[str, float]


@contextmanager
def checkout(given: str) -> Iterator[Path]:
    """The folder of a checkout, built."""
    if Path(given).is_dir():
        yield Path(given).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="partita-compare-") as parent:
        folder = Path(parent, "checkout")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(folder), given], cwd=BENCH, check=True)
        try:
            build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
            subprocess.run(build, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            yield folder
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=BENCH, check=True)


def measured(folder: Path, script: str, rows: Iterable[str]) -> Figures:
    """What Partita of this checkout does in the rows of one script; empty when the script fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "src"),
        "BENCH_PEERS": "",
        "BENCH_QUICK": "1",
        "BENCH_ROWS": "|".join(rows),
    }
    command = [sys.executable, str(BENCH / f"{script}.py")]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {}
    found = (json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"bench": "row"'))
    return {result["row"]: result["figures"][OURS] for result in found if OURS in result["figures"]}


def compared(base: Path, head: Path, rows: list[Row], rounds: int) -> dict[str, Change]:
    """Measure the rows on both sides in turns; the change of each that ran on both sides each time."""
    pairs: dict[str, list[float]] = {row.name: [] for row in rows}
    for turn in range(rounds):
        for script in dict.fromkeys(row.script for row in rows):
            names = [row.name for row in rows if row.script == script]
            sides = {"base": base, "head": head}
            order = list(sides)[:: 1 if turn % 2 == 0 else -1]
            found = {side: measured(sides[side], script, names) for side in order}
            for name in names:
                if name in found["base"] and name in found["head"]:
                    pairs[name].append(BY_NAME[name].times(found["head"][name], found["base"][name]))
    return {name: change(ratios) for name, ratios in pairs.items() if len(ratios) == rounds}


def print_changes(changes: dict[str, Change], rows: list[Row]) -> None:
    """One line per row."""
    for row in rows:
        found = changes.get(row.name)
        if found is None:
            print(f"{row.name:28} could not be measured on both sides")
            continue
        told = "slower" if found.is_worse else ""
        print(f"{row.name:28} {number(found.ratio):>6} times as good, noise {found.noise:6.1%}  {told}", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="revision or folder that is the measure")
    parser.add_argument("head", help="revision or folder that is judged")
    parser.add_argument("rows", nargs="*", help="rows or scripts, as for bench/run.py; all without one")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="pairs of runs, at least 3 (%(default)s)")
    given = parser.parse_args(arguments)
    try:
        rows = chosen(given.rows)
    except ValueError as problem:
        parser.error(str(problem))
    with ExitStack() as stack:
        base, head = (stack.enter_context(checkout(side)) for side in (given.base, given.head))
        changes = compared(base, head, rows, max(3, given.rounds))
        print_changes(changes, rows)
        suspects = [row for row in rows if row.name in changes and changes[row.name].is_worse]
        if not suspects:
            print("Nothing got slower by more than its noise.")
            return 0
        print("Measured a second time:")
        again = compared(base, head, suspects, max(3, given.rounds))
        print_changes(again, suspects)
        slower = [name for name, found in again.items() if found.is_worse]
    print(f"Slower: {', '.join(slower)}." if slower else "The second time nothing was slower by more than its noise.")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
