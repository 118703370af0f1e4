"""The broker itself killed under producers and a committing group, by the tool that does so a hundred times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "kill_loop.py"


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_a_broker_killed_again_and_again_keeps_what_it_acknowledged(durability: str) -> None:
    """D1, S20, S21, S25: records where they were acknowledged, commits that never go back, topics gone for good."""
    command = [sys.executable, str(TOOL), "--rounds", "3", "--durability", durability]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert figures["problems"] == []
    assert figures["kills"] == 3
    assert figures["acknowledged"] > 0
    assert figures["committed"] > 0
