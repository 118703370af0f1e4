"""The form of commit messages, which a hook of the repository checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent.parent / "tools" / "commit_message.py"
GOOD = "log: sync an unclean log at the start\n\nThe first reader after a crash saw an empty end.\n"


def check(tmp_path: Path, message: str) -> tuple[int, str]:
    """The status of the hook, and what it prints."""
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message)
    done = subprocess.run([sys.executable, str(TOOL), str(file)], capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("message", [GOOD, GOOD + "# Please enter the commit message\n", "Merge branch 'x'\n"])
def test_a_good_message_passes(tmp_path: Path, message: str) -> None:
    assert check(tmp_path, message) == (0, "")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("One refused record takes nothing with it\n\nWhy.\n", "the subject is `area: imperative`"),
        (f"log: {'x' * 68}\n\nWhy.\n", "73 characters; at most 72"),
        ("log: sync the log.\n\nWhy.\n", "without a full stop"),
        ("log: sync the log\nWhy.\n", "the second line is empty"),
        ("log: sync the log\n\n# a comment\n", "a body says why"),
    ],
)
def test_a_bad_message_is_refused_in_words(tmp_path: Path, message: str, said: str) -> None:
    status, printed = check(tmp_path, message)
    assert status == 1
    assert said in printed
