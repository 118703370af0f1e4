"""Is a tag the version that this tree would be built as, and does the changelog tell of it?

`python tools/release_check.py v0.1.0`; the hosted builds of a release run it first.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def faults(tag: str, package: str, changelog: str) -> list[str]:
    """What is wrong with a tag, given the text of partita/__init__.py and of the changelog."""
    (version,) = re.findall(r'^__version__ = "([^"]+)"$', package, re.MULTILINE)
    found = []
    if tag != f"v{version}":
        found.append(f"the tag {tag} does not name version {version} of src/partita/__init__.py; expected v{version}")
    heading = re.search(rf"^## {re.escape(version)} \((.*)\)$", changelog, re.MULTILINE)
    if heading is None:
        found.append(f"CHANGELOG.md has no section '## {version} (date)'")
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[1]):
        found.append(f"CHANGELOG.md calls {version} {heading[1]!r}; expected the date of the release")
    return found


def main() -> int:
    """Print what is wrong with the tag that was given; return 1 if anything is."""
    wrong = faults(sys.argv[1], (ROOT / "src/partita/__init__.py").read_text(), (ROOT / "CHANGELOG.md").read_text())
    print("".join(f"{fault}\n" for fault in wrong), end="")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
