"""Fill the generated parts of docs/compatibility.md: the table of APIs and the deviations. `--check` only compares."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from partita.broker.requests.apis import markdown_table

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "partita"
PAGE = ROOT / "docs" / "compatibility.md"
MARK = "Deviation: "
SUBJECTS = {
    "broker": "Broker", "group": "Consumer groups", "transactions": "Transactions", "log": "Logs",
    "consumer": "Consumer", "producer": "Producer",
    "net": "All clients", "security": "Security", "admin": "Admin client", "spark": "Spark",
}  # fmt: skip
"""What a reader calls each part of the source, in the order of the page."""


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each deviation in a file: from the mark to the first line that ends with a full stop."""
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        _, mark, text = line.partition(MARK)
        taken = [text.strip()] if mark else []
        for more in lines[number + 1 :] if mark else ():
            if taken[-1].endswith((".", '"""')):
                break
            taken.append(more.strip().removeprefix("#").strip())
        if taken:
            joined = " ".join(taken).removesuffix('"""').rstrip()
            yield number + 1, joined[:1].upper() + joined[1:]


def deviations() -> str:
    """Every deviation that the source declares, by subject."""
    by_part: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE)
        for _, text in sentences(path):
            by_part[name.parts[0]].append(f"- {text} ([source](../src/partita/{name.as_posix()}))")
    unknown = by_part.keys() - SUBJECTS.keys()
    assert not unknown, f"give {unknown} a subject in {Path(__file__).name}"
    parts = [f"### {title}\n" + "\n".join(by_part[part]) for part, title in SUBJECTS.items() if by_part[part]]
    return "\n\n".join(parts)


def filled(text: str) -> str:
    """The page with its generated parts as the code has them now."""
    for name, content in (("apis", markdown_table()), ("deviations", deviations())):
        head, mark, rest = text.partition(f"<!-- {name} -->\n")
        assert mark, f"{PAGE.name} has no place for {name}"
        text = head + mark + content + "\n" + rest[rest.index("<!-- end -->") :]
    return text


def main() -> int:
    wanted = filled(PAGE.read_text())
    if "--check" in sys.argv:
        return int(wanted != PAGE.read_text())
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
