"""Parts of a Spark stream killed under a live producer, by the tool that does so a hundred times. Issue 13, item 7."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "spark_kills.py"


def test_driver_source_worker_and_broker_are_killed_and_the_files_equal_the_log() -> None:
    """BM-172: nothing is lost, and a file sink takes each batch once."""
    command = [sys.executable, str(TOOL), "--rounds", "4", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert figures["kills"] == {"driver": 1, "source": 1, "worker": 1, "broker": 1}
    assert figures["acknowledged"] == figures["log"] == figures["rows"] > 0
    assert (figures["lost by the stream"], figures["duplicates"], figures["strangers"]) == (0, 0, 0)
