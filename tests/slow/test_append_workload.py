"""Transactions append to lists while the broker is killed: what readers saw is judged by the tool that does so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "append_workload.py"
BROKEN = ("lost", "twice", "aborted_seen", "half", "strange_reads", "clients_left")


@pytest.mark.case("TX-R05")
@pytest.mark.parametrize("durability", ["os", "sync"])
def test_no_append_is_lost_doubled_or_seen_before_its_transaction_is_committed(durability: str) -> None:
    command = [sys.executable, str(TOOL), "--seconds", "15", "--kills", "3", "--durability", durability]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert {name: figures[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
    assert figures["kills"] == 3
    assert min(figures["committed"], figures["aborted"], figures["reads"]) > 0
