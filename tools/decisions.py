"""Write docs/decisions/README.md, which lists the decisions. `--check` only says whether it is current."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "decisions"
PAGE = FOLDER / "README.md"
HEAD = """# Decisions

One page each: what was decided, why, and what else was weighed. Numbers are given by subject, so some are not taken.
`python tools/decisions.py` writes this list.

"""


def page() -> str:
    """The whole page. Raises ValueError if a heading is not "# NUMBER. Title", with the number of its file."""
    return HEAD + "".join(_line(path) for path in sorted(FOLDER.glob("[0-9]*.md")))


def _line(path: Path) -> str:
    number = int(path.name[:4])
    heading = path.read_text().partition("\n")[0]
    title = re.fullmatch(rf"# {number}\. (.+)", heading)
    if title is None:
        raise ValueError(f"{path.name} begins with {heading!r}; expected '# {number}. Title'")
    return f"- {number}: [{title[1]}]({path.name})\n"


def main(argv: list[str]) -> int:
    """Write the page, or check it; return the exit code."""
    if "--check" in argv:
        is_current = PAGE.exists() and PAGE.read_text() == page()
        print("docs/decisions/README.md is current" if is_current else "stale: run python tools/decisions.py")
        return 0 if is_current else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
