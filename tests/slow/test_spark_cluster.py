"""Source and sink on a real Spark standalone cluster, one of whose workers is killed. Issue 13, item 5."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import support.spark.cluster_job
from partita import Producer
from partita.admin import Admin, NewTopic
from support.broker.process import broker_process
from support.spark.standalone import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
JOB = Path(str(support.spark.cluster_job.__file__))
PARTITIONS, RECORDS = 4, 1_500


def test_a_cluster_reads_writes_and_streams_while_a_worker_is_killed(tmp_path: Path) -> None:
    with broker_process() as bootstrap, standalone_cluster(tmp_path) as cluster:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic("t", PARTITIONS), NewTopic("t-copy", 2))
        with Producer(bootstrap_servers=bootstrap) as producer:
            for i in range(RECORDS * PARTITIONS):
                producer.send("t", f"value {i}", partition=i % PARTITIONS)
        command = [sys.executable, str(JOB), cluster.url, bootstrap, "t", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
            try:
                facts = _follow(driver, cluster.workers[0])
            finally:
                driver.kill()
    (probe,) = (fact["probe"] for fact in facts if "probe" in fact)
    assert 1 <= len(probe) <= 2
    assert all("no way to 127.0.0.1:1 " in report["fault"] for report in probe)
    assert all(report["packages"]["partita"][:1].isdigit() for report in probe)
    assert {"rows": RECORDS * PARTITIONS, "tasks": 8} in facts
    assert {"copied": RECORDS * PARTITIONS} in facts
    assert {"streamed": RECORDS * PARTITIONS, "distinct": RECORDS * PARTITIONS} in facts


def _follow(driver: subprocess.Popen[str], worker: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """The facts that the driver tells; the worker and its executor are killed after the third batch."""
    facts: list[dict[str, Any]] = []
    assert driver.stdout is not None
    for line in driver.stdout:
        facts.append(json.loads(line))
        if facts[-1].get("batch") == 2:
            os.killpg(worker.pid, signal.SIGKILL)
    assert driver.wait(60) == 0
    return facts
