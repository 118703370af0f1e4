"""Fill the generated parts of README.md: the table of APIs and the list of deviations. `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from partita.broker.requests.apis import markdown_table

ROOT = Path(__file__).resolve().parent.parent


def deviations() -> list[str]:
    """Every `Deviation:` of the source as one bullet: the sentence, and the file it stands in."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            _, mark, text = line.partition("Deviation: ")
            if mark:
                rest = _continued(lines[number + 1 :]) if not text.rstrip().endswith(('"""', ".")) else []
                sentence = " ".join([text, *rest]).replace('"""', "").split(" Must not")[0].strip()
                sentence = sentence[:1].upper() + sentence[1:]
                found.append(f"- {sentence} (`{path.relative_to(ROOT / 'src' / 'partita')}`)")
    return found


def _continued(lines: list[str]) -> list[str]:
    """The lines that go on with the sentence, to its full stop."""
    taken: list[str] = []
    for line in lines:
        text = line.strip().lstrip("#").strip()
        if not text or "Deviation:" in text or len(taken) == 3:
            break
        end = text.find(". ")
        taken.append(text if end < 0 else text[: end + 1])
        if end >= 0 or text.rstrip('"').endswith("."):
            break
    return taken


def filled(text: str) -> str:
    for name, content in (("apis", markdown_table()), ("deviations", "\n".join(deviations()))):
        head, mark, rest = text.partition(f"<!-- {name} -->\n")
        assert mark, f"README.md has no place for {name}"
        text = head + mark + content + "\n" + rest[rest.index("<!-- end -->") :]
    return text


def main() -> int:
    readme = ROOT / "README.md"
    wanted = filled(readme.read_text())
    if "--check" in sys.argv:
        return int(wanted != readme.read_text())
    readme.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
