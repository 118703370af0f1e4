"""Write docs/rights.md from the table of rights. `--check` only says whether it is current."""

from __future__ import annotations

import sys
from pathlib import Path

from partita.broker.rights.table import markdown_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rights.md"
HEAD = """# Which rights each API needs

Printed from `partita.broker.rights.table` by `tools/rights.py`; do not edit. [Security](security.md) says how rights
are given. The checks of an API stand in Apache Kafka's order, and before every other check: the answer to a refusal is
the same whether the thing exists or not. A right on CLUSTER is one on the resource `kafka-cluster`.

"""


def page() -> str:
    """The whole page."""
    return f"{HEAD}{markdown_table()}\n"


def main(argv: list[str]) -> int:
    """Write the page, or check it; return the exit code."""
    if "--check" in argv:
        is_current = PAGE.exists() and PAGE.read_text() == page()
        print("docs/rights.md is current" if is_current else "stale: run python tools/rights.py")
        return 0 if is_current else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
