"""Fill the generated parts of docs/compatibility.md: the table of APIs and the deviations. `--check` only compares."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from partita.broker.api.apis import SERVED

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "partita"
PAGE = ROOT / "docs" / "compatibility.md"
MARK = "Deviation: "
SUBJECTS = {
    "broker": "Broker", "group": "Consumer groups", "transactions": "Transactions", "log": "Logs",
    "consumer": "Consumer", "producer": "Producer",
    "share": "Share groups", "net": "All clients", "security": "Security", "admin": "Admin client", "spark": "Spark",
}  # fmt: skip
"""What a reader calls each part of the source, in the order of the page."""
_VOTERS = "`kafka-metadata-quorum.sh"
MISSING = {
    64: ("UnregisterBroker", "`kafka-cluster.sh unregister` reports that the cluster does not support it"),
    80: ("AddRaftVoter", f"{_VOTERS} add-controller` ends with UnsupportedVersionException"),
    81: ("RemoveRaftVoter", f"{_VOTERS} remove-controller` ends with UnsupportedVersionException"),
    94: ("UnregisterController", "nothing, since no program of Kafka 4.3 sends it"),
}
"""APIs that a broker of Kafka 4.4.0 serves and this one does not, with what a client sees."""


def api_list() -> str:
    """What is served: name and versions of each API."""
    return ", ".join(f"{api.name} {api.min_version}-{api.max_version}" for api in SERVED.values()) + "."


def missing_list() -> str:
    """What is not served, and what a client that needs it sees."""
    return "\n".join(f"- {name}: {sees}" for name, sees in MISSING.values())


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each deviation in a file: from the mark to the end of its paragraph.

    Raises ValueError for one that a reader of the page cannot understand: it names no other side, or begins with it.
    """
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        before, mark, text = line.partition(MARK)
        if not mark:
            continue
        is_comment = before.lstrip().startswith("#")
        taken = [text.strip()]
        for more in lines[number + 1 :]:
            is_end = not more.strip().startswith("#") if is_comment else not more.strip() or MARK in more
            if is_end or taken[-1].endswith('"""'):
                break
            taken.append(more.strip().removeprefix("#").strip())
        joined = " ".join(taken).removesuffix('"""').rstrip()
        yield number + 1, understood(joined, f"{path.name}:{number + 1}")


def understood(text: str, place: str) -> str:
    """The text with a capital. Raises ValueError as `sentences` does."""
    if "Kafka" not in text or text.startswith(("Kafka", "it ")):
        raise ValueError(f"{place}: expected 'Partita ... where Kafka ...', found {text!r}")
    return text[:1].upper() + text[1:]


def deviations() -> str:
    """Every deviation that the source declares, by subject; those of handlers come first."""
    by_part: dict[str, list[str]] = defaultdict(list)
    for api in SERVED.values():
        if api.declared.deviation:
            by_part["broker"].append(f"- {understood(api.declared.deviation, api.name)} ({api.name}).")
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE)
        for _, text in sentences(path):
            first, _, rest = text.partition(" ")
            by_part[name.parts[0]].append(f"- [{first}](../src/partita/{name.as_posix()}) {rest}")
    unknown = by_part.keys() - SUBJECTS.keys()
    assert not unknown, f"give {unknown} a subject in {Path(__file__).name}"
    parts = [f"### {title}\n" + "\n".join(by_part[part]) for part, title in SUBJECTS.items() if by_part[part]]
    return "\n\n".join(parts)


def filled(text: str) -> str:
    """The page with its generated parts as the code has them now."""
    for name, content in (("apis", api_list()), ("missing", missing_list()), ("deviations", deviations())):
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
