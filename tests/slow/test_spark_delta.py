"""A pipeline into a Delta table, on a Spark that Delta has jars for; Maven fetches them, and pip that Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conformance.test_spark_versions import INSTALL_LIMIT_S, PROGRAMS, pyspark_of, run_with
from partita import Admin, Broker

pytestmark = [pytest.mark.conformance, pytest.mark.spark]

PROGRAM = PROGRAMS.with_name("delta_pipeline.py")
DELTA, SPARK = "io.delta:delta-spark_4.2_2.13:4.4.0", "4.2.1"


def test_a_new_checkpoint_of_a_pipeline_adds_to_its_delta_table(tmp_path: Path) -> None:
    """Delta skips batches of an application that it has seen, and their numbers begin at 0 with each checkpoint."""
    subprocess.run(["mvn", "-q", "-B", "dependency:get", f"-Dartifact={DELTA}"], check=True, timeout=INSTALL_LIMIT_S)
    repository = Path.home() / ".m2" / "repository" / "io" / "delta"
    jars = ",".join(map(str, repository.glob(f"*/{DELTA.rpartition(':')[2]}/*.jar")))
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("in", 1)
        found = run_with(pyspark_of(SPARK), PROGRAM, broker.bootstrap, str(tmp_path), jars)
    assert found == ["a", "b", "c", "d"]
