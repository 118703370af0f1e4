"""Prints the figures of docs/consumer-protocol.md from the simulator: `python tools/moves.py` rewrites the page.

A test compares the page with what the simulator says.
"""

from __future__ import annotations

from pathlib import Path

from partita.sim.moves import table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "consumer-protocol.md"
BEGINS, ENDS = "<!-- moves -->\n", "<!-- end -->\n"


def page(text: str) -> str:
    """The page with the table of today."""
    head, rest = text.split(BEGINS)
    tail = rest.split(ENDS)[1]
    return "".join([head, BEGINS, *(f"{line}\n" for line in table()), ENDS, tail])


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
