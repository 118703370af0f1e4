"""A day of life in half a minute, the broker killed once in it: every record is where it belongs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "soak.py"


def test_half_a_minute_of_everything_at_once_loses_and_doubles_nothing() -> None:
    command = [sys.executable, str(TOOL), "--minutes", "0.5", "--members", "10", "--kills", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert verdict["problems"] == []
    assert verdict["acknowledged"] > 0
    assert verdict["copies"] == verdict["events"] == verdict["seen"]["classic"] == verdict["seen"]["epochs"]
