"""`make bench`: run what measures the rows of the table, and print the table at the end.

`python bench/run.py [NAME ...]` picks rows by a part of their names or by the script that measures them, or runs one of
the scripts that measure no row. All rows take eleven minutes, at up to three rounds each; `--rounds 9` measures each of
them nine times. `--page` writes the table into docs/numbers.md and some of its rows into README.md. One JSON line per
result comes first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from table import BY_NAME, ROWS, chosen, short_table, table

BENCH = Path(__file__).parent
PAGE, README = BENCH.parent / "docs" / "numbers.md", BENCH.parent / "README.md"
BEGIN, END = "<!-- rows: written by `python bench/run.py --page` -->", "<!-- end of rows -->"
OTHERS = (
    "growth",
    "iteration",
    "async_face",
    "replay",
    "spark",
    "attacks",
    "handshakes",
    "slow_disk",
    "log",
    "instructions",
)
"""Scripts that measure no row of the table; each runs when it is named."""


def run(script: str, rows: Iterable[str] = ()) -> tuple[bool, list[dict[str, object]]]:
    """Run one script; whether it ended well, and its results. Everything it prints is passed on."""
    command = [sys.executable, str(BENCH / f"{script}.py")]
    environment = {**os.environ, "BENCH_ROWS": "|".join(rows)}
    results: list[dict[str, object]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            if line.startswith("{"):
                results.append(json.loads(line))
    return child.returncode == 0, results


def rows_of(results: Iterable[dict[str, object]]) -> dict[str, dict[str, float]]:
    """The rows among the results: name and figures."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        name, figures = result.get("row"), result.get("figures")
        if isinstance(name, str) and isinstance(figures, dict) and name in BY_NAME:
            found[name] = figures
    return found


def rounds_of(results: Iterable[dict[str, object]]) -> dict[str, list[dict[str, float]]]:
    """What each round measured, of the rows that are measured in rounds."""
    found: dict[str, list[dict[str, float]]] = {}
    for result in results:
        name, rounds = result.get("row"), result.get("rounds")
        if isinstance(name, str) and isinstance(rounds, list):
            found[name] = rounds
    return found


def missing_peers(results: Iterable[dict[str, object]]) -> list[str]:
    """One line per peer and reason."""
    told = {(result["peer"], result["left_out"]) for result in results if "left_out" in result}
    return [f"Left out: {peer}: {reason}." for peer, reason in sorted(told, key=str)]


def write_page(page: Path, text: str) -> None:
    """Put the table between the two marks of a page."""
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="rows or scripts; all rows without one")
    parser.add_argument("--rounds", type=int, help="so many rounds of each row, however long they take")
    parser.add_argument("--page", action="store_true", help="write the table into docs/numbers.md")
    given = parser.parse_args(arguments)
    if given.rounds is not None:
        if given.rounds < 1:
            parser.error(f"--rounds: at least 1 expected, not {given.rounds}")
        os.environ["BENCH_ROUNDS"] = str(given.rounds)
    others = [name for name in given.names if name in OTHERS]
    names = [name for name in given.names if name not in OTHERS]
    try:
        rows = [] if others and not names else chosen(names)
    except ValueError as problem:
        print(f"{problem}; and {', '.join(OTHERS)}")
        return 2
    began, results, failed = time.monotonic(), [], []
    for script in [*dict.fromkeys(row.script for row in rows), *others]:
        ended_well, found = run(script, [row.name for row in rows if row.script == script])
        results += found
        failed += [] if ended_well else [script]
    measured, rounds = rows_of(results), rounds_of(results)
    if rows:
        print(f"\n{table(measured, rounds)}\n")
        print("In brackets: the least and the largest round. A row is met if every round meets it.")
        print("\n".join(missing_peers(results)))
        print(
            f"{len(measured)} of {len(ROWS)} rows in {time.monotonic() - began:.0f} s; load {os.getloadavg()[0]:.1f}."
        )
    if given.page:
        write_page(PAGE, table(measured, rounds))
        write_page(README, short_table(table(measured, rounds)))
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
