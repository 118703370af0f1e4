"""Parts of a Spark stream killed under a live producer, by the tool that does so a hundred times. Issue 13, item 7."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "spark_kills.py"


def killed(*options: str) -> dict[str, Any]:
    """The figures of four rounds, one of each kind."""
    command = [sys.executable, str(TOOL), "--rounds", "4", "--seed", "3", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    assert figures["kills"] == {"driver": 1, "source": 1, "worker": 1, "broker": 1}
    return figures


def test_driver_source_worker_and_broker_are_killed_and_the_files_equal_the_log() -> None:
    """BM-172: nothing is lost, and a file sink takes each batch once."""
    figures = killed()
    assert figures["acknowledged"] == figures["log"] == figures["rows"] > 0
    assert (figures["lost by the stream"], figures["duplicates"], figures["strangers"]) == (0, 0, 0)


def test_a_query_that_shares_its_group_is_killed_and_every_record_reaches_one_of_the_members() -> None:
    """Spec 4.5: nothing is lost; only what was under way at a kill is read twice."""
    figures = killed("--group-mode", "member")
    assert figures["read by the consumer"] > 0
    assert (figures["lost by the stream"], figures["duplicates not allowed"], figures["strangers"]) == (0, 0, 0)
