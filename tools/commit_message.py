"""Check a commit message: `area: imperative` in at most 72 characters, an empty line, and a body that says why.

Usage: commit_message.py FILE, as git's hook commit-msg calls it (`pre-commit install --hook-type commit-msg`).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUBJECT_MAX = 72
SUBJECT = re.compile(r"[a-z][a-z0-9_/,. -]*: \S.*")
MADE_BY_GIT = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")


def wrong_with(message: str) -> list[str]:
    """Each rule that the message breaks, as a sentence; lines that begin with # are git's comments."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if MADE_BY_GIT.match(subject):
        return []
    found = []
    if not SUBJECT.fullmatch(subject):
        found.append(f"the subject is `area: imperative`, such as `log: sync an unclean log`, not {subject!r}")
    if len(subject) > SUBJECT_MAX:
        found.append(f"the subject has {len(subject)} characters; at most {SUBJECT_MAX}")
    if subject.endswith("."):
        found.append("the subject ends without a full stop")
    if len(lines) > 1 and lines[1].strip():
        found.append("the second line is empty")
    if not any(line.strip() for line in lines[2:]):
        found.append("a body says why the change was made")
    return found


def main() -> int:
    """Print what is wrong with the message in the file; 1 if anything is."""
    found = wrong_with(Path(sys.argv[1]).read_text())
    print("".join(f"commit message: {sentence}\n" for sentence in found), end="")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
