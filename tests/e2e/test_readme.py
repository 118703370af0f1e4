"""The README tells the truth: its first run runs, its tables are what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def test_the_first_run_prints_what_was_sent() -> None:
    found = re.search(r"<!-- first run -->\n```python\n(.*?)```", README, re.S)
    assert found is not None
    done = subprocess.run([sys.executable, "-W", "error", "-c", found[1]], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout == "b'hello'\n"


def test_its_tables_are_current() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "readme.py"), "--check"])
    assert done.returncode == 0, "README.md is stale; run: python tools/readme.py"
