"""Write docs/decisions/README.md, the list of the decisions by chapter.

`--check` says whether it is current, and whether each decision that a file of the project cites by number has a place.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "decisions"
PAGE = FOLDER / "README.md"
HEAD = """# Decisions

Choices, their reasons and the alternatives that were weighed, one page per subject. A decision keeps its number: to
find decision 70, search this page for it. `python tools/decisions.py` writes the list.
"""
CHAPTERS = {
    "building": "Building and documents",
    "testing": "Testing",
    "storage": "Storage",
    "broker": "The broker",
    "coordinators": "Coordinators of groups and transactions",
    "clients": "Clients",
    "security": "Security",
    "spark": "Spark",
    "speed": "Speed",
    "tools": "Dashboard, command line, designs",
}
"""What the first word of a page's name stands for, in the order of the list."""
NUMBERED = re.compile(r'^<a id="(\d+)"></a>\n## \1\. \S', re.M)
CITED = re.compile(r"\b[Dd]ecisions? 0*(\d+)(?: and 0*(\d+))?|docs/decisions/(?:[a-z0-9-]+\.md#)?0*(\d+)")


def page() -> str:
    """The whole page. Raises ValueError if a page has no title, no decision, or a name of no chapter."""
    sections = []
    listed = 0
    for prefix, chapter in CHAPTERS.items():
        paths = sorted(FOLDER.glob(f"{prefix}-*.md"))
        listed += len(paths)
        sections.append(f"\n## {chapter}\n\n" + "".join(map(_line, paths)))
    if listed != len(_pages()):
        raise ValueError(f"{len(_pages()) - listed} pages belong to no chapter; expected names {', '.join(CHAPTERS)}")
    return HEAD + "".join(sections)


def missing() -> list[str]:
    """Decisions that are cited and have no place, or have two, with where that is."""
    numbers = [number for path in _pages() for number in NUMBERED.findall(path.read_text())]
    twice = [f"decision {number} has two places" for number in sorted(set(numbers)) if numbers.count(number) > 1]
    cited = [f"{place}: decision {number} has no place" for place, number in _cited() if number not in numbers]
    return [*twice, *cited]


def _pages() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if path != PAGE)


def _line(path: Path) -> str:
    text = path.read_text()
    numbers = NUMBERED.findall(text)
    title = re.match(r"# (\S.+)\n", text)
    if title is None or not numbers:
        raise ValueError(f"{path.name}: expected '# Title' and at least one decision with its number")
    links = ", ".join(f"[{number}]({path.name}#{number})" for number in numbers)
    return f"- [{title[1]}]({path.name}): {links}\n"


def _cited() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in sorted(listed.stdout.split("\0")):
        path = ROOT / name
        if path.suffix not in {".py", ".md", ".txt", ".toml", ".yml"} or not path.is_file():
            continue
        for found in CITED.finditer(path.read_text()):
            yield from ((name, number) for number in found.groups() if number)


def main(argv: list[str]) -> int:
    """Write the page, or check it and the citations; return the exit code."""
    if "--check" not in argv:
        PAGE.write_text(page())
        return 0
    wrong = missing()
    if not PAGE.exists() or PAGE.read_text() != page():
        wrong.append("stale: run python tools/decisions.py")
    print("\n".join(wrong) or "docs/decisions/README.md is current, and each number that is cited has a place")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
