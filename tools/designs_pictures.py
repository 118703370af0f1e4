"""Draws the pictures of docs/why-a-group-coordinator.md into docs/figures from runs on this machine.

Times differ from run to run, so the pictures are not compared; the counts that the page relies on are what tests
assert. `herd` draws the joins, with Kafka 0.8's timeouts so that a busy machine ends no session; `troubles` draws the
rest. Both together take a few minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from partita.designs import pictures
from partita.designs.compare import Comparison, Plan, compare
from partita.pictures.page import STYLE as PAGE_STYLE

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
DESIGNS = ("1", "2", "3")
TROUBLES = ("zk-partition", "pause", "stale")
ALONE = "svg { background: var(--page); }"


class Printed:
    """Progress as lines."""

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)

    def at(self, bar: str, done: int, total: int) -> None:
        """Bars are not shown."""


def keep(name: str, picture: str) -> None:
    """Write a picture that stands alone, with its style."""
    head, _, rest = picture.partition("<defs>")
    text = f"{head}<style>{PAGE_STYLE}{pictures.STYLE}{ALONE}</style><defs>{rest}\n"
    (FIGURES / f"designs-{name}.svg").write_text(text, encoding="utf-8")


def herd() -> Comparison:
    """The pictures of one join."""
    result = compare(Plan(designs=DESIGNS, scenarios=("join",), kafka_timings=True), Printed())
    joins = result.of("join")
    keep("herd", pictures.herd(joins))
    keep("one-join", pictures.one_join([run for run in joins if run.members == min(result.plan.sizes)]))
    return result


def troubles() -> Comparison:
    """The pictures of what goes wrong."""
    result = compare(Plan(sizes=(5,), designs=DESIGNS, scenarios=TROUBLES), Printed())
    for name in TROUBLES:
        keep(name, pictures.timelines(result.of(name), f"Who read what in scenario {name}"))
    keep("offsets", pictures.offsets(result.of("zk-partition")))
    return result


def main(parts: list[str]) -> None:
    """Run and draw."""
    for draw in (herd, troubles):
        if not parts or draw.__name__ in parts:
            for run in draw().runs:
                print(run.as_json())


if __name__ == "__main__":
    main(sys.argv[1:])
