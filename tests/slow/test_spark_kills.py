"""Parts of a Spark stream killed under a live producer, by the tool that does so a hundred times. Issue 13, item 7."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
Run = Callable[..., dict[str, Any]]
PLACES = pytest.mark.parametrize("place", [("--cluster",), ("--connect",)], ids=["cluster", "connect"])
"""A standalone cluster whose executors are killed; a Connect server, which is killed as the driver."""


@pytest.fixture
def run(pytestconfig: pytest.Config) -> Run:
    """The figures of a tool that found nothing wrong, on our broker or on Apache Kafka."""
    on_kafka = {"spark_kills.py": ["--on", "kafka"], "exactly_once_rounds.py": ["--kafka"]}

    def of(tool: str, *options: str) -> dict[str, Any]:
        where = on_kafka[tool] if pytestconfig.getoption("--on-kafka") else []
        command = [sys.executable, str(TOOLS / tool), "--seed", "3", *where, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures

    return of


def killed(run: Run, *options: str) -> dict[str, Any]:
    """The figures of four rounds, one of each kind."""
    figures = run("spark_kills.py", "--rounds", "4", *options)
    assert figures["kills"] == {"driver": 1, "source": 1, "worker": 1, "broker": 1}
    return figures


def test_driver_source_worker_and_broker_are_killed_and_the_files_equal_the_log(run: Run) -> None:
    """BM-172: nothing is lost, and a file sink takes each batch once."""
    figures = killed(run)
    assert figures["acknowledged"] == figures["log"] == figures["rows"] > 0
    assert (figures["lost by the stream"], figures["duplicates"], figures["strangers"]) == (0, 0, 0)


def test_a_query_that_shares_its_group_is_killed_and_every_record_reaches_one_of_the_members(run: Run) -> None:
    """Spec 4.5: nothing is lost; only what was under way at a kill is read twice."""
    figures = killed(run, "--group-mode", "member")
    assert figures["read by the consumer"] > 0
    assert (figures["lost by the stream"], figures["duplicates not allowed"], figures["strangers"]) == (0, 0, 0)


def test_a_query_on_a_share_group_is_killed_and_every_record_reaches_the_files(run: Run) -> None:
    """Issue 32, item 5: nothing is lost over kills of driver, source, worker and broker; records may come again."""
    figures = killed(run, "--group-mode", "share")
    assert figures["acknowledged"] == figures["log"] > 0
    assert (figures["lost by the stream"], figures["not read yet"], figures["strangers"]) == (0, 0, 0)


@PLACES
def test_a_query_that_shares_its_group_is_killed_where_its_driver_is_elsewhere(
    run: Run, place: tuple[str, ...]
) -> None:
    """Issue 31, item 8: nothing is lost; only what was under way at a kill is read twice."""
    what = ["driver", "executor"] if "--cluster" in place else ["driver"]
    kinds = [word for kind in what for word in ("--what", kind)]
    figures = run("spark_kills.py", "--rounds", "2", "--group-mode", "member", *kinds, *place)
    assert figures["kills"] == {kind: 2 // len(what) for kind in what}
    assert (figures["lost by the stream"], figures["duplicates not allowed"], figures["strangers"]) == (0, 0, 0)


@PLACES
def test_a_sink_that_writes_exactly_once_is_killed_where_its_driver_is_elsewhere(
    run: Run, place: tuple[str, ...]
) -> None:
    """Issue 31, item 8: executors, workers and drivers die, and every number is there once."""
    # With this seed the first round kills two executors or workers, the second one the driver.
    figures = run("exactly_once_rounds.py", "--seed", "9", "--rounds", "3", "--minutes", "2", *place)
    assert (figures["lost"], figures["twice"]) == (0, 0)
    assert figures["written"] > 0
    assert figures["executors_killed" if "--cluster" in place else "workers_killed"] > 0
