"""A real Spark standalone cluster: the doctor asks its executors, workers are killed, every record is counted.

Issue 13, item 5.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import support.spark.cluster_job
from partita import Producer
from partita.admin import Admin, NewTopic
from support.broker.process import broker_process
from support.spark.cluster_job import TASKS
from support.spark.standalone import Standalone, standalone_cluster

pytestmark = pytest.mark.spark
JOB = Path(str(support.spark.cluster_job.__file__))
PARTITIONS, RECORDS = 4, 3_000


def test_workers_are_killed_during_a_write_and_a_stream_and_every_record_is_counted(tmp_path: Path) -> None:
    with broker_process() as bootstrap, standalone_cluster(tmp_path) as cluster:
        _check_executors(cluster, bootstrap)
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic("t", PARTITIONS), NewTopic("t-copy", 2))
        with Producer(bootstrap_servers=bootstrap) as producer:
            for i in range(RECORDS):
                producer.send("t", f"value {i}", partition=i % PARTITIONS)
        command = [sys.executable, str(JOB), cluster.url, bootstrap, "t", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
            try:
                facts = _follow(driver, cluster, bootstrap)
            finally:
                driver.kill()
    (probe,) = (fact["probe"] for fact in facts if "probe" in fact)
    assert 1 <= len(probe) <= 2
    assert all("no way to 127.0.0.1:1 " in report["fault"] for report in probe)
    assert all(report["packages"]["partita"][:1].isdigit() for report in probe)
    assert {"rows": RECORDS, "tasks": 8} in facts
    (copied,) = (fact for fact in facts if "copied" in fact)
    assert copied["different"] == RECORDS, "records were lost in the write"
    assert copied["copied"] <= RECORDS + RECORDS // TASKS + 1, "more was written twice than the task that was killed"
    assert {"streamed": RECORDS, "distinct": RECORDS} in facts


def _check_executors(cluster: Standalone, bootstrap: str) -> None:
    command = [sys.executable, "-m", "partita.cli.main", "doctor", "--from-executors", cluster.url, "-b", bootstrap]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    executors = [finding for finding in json.loads(done.stdout) if finding["what"].startswith("executor on")]
    assert len(executors) >= 1
    assert all(finding["is_good"] and "pyarrow" in finding["found"] for finding in executors)


def _follow(driver: subprocess.Popen[str], cluster: Standalone, bootstrap: str) -> list[dict[str, Any]]:
    """The facts that the driver tells; a worker is killed in the middle of the write, another after the third batch."""
    facts: list[dict[str, Any]] = []
    assert driver.stdout is not None
    for line in driver.stdout:
        facts.append(json.loads(line))
        if facts[-1].get("writing"):
            _wait_for_half(bootstrap)
        if facts[-1].get("writing") or facts[-1].get("batch") == 2:
            cluster.kill_oldest_worker()
            cluster.add_worker()
    assert driver.wait(60) == 0
    return facts


def _wait_for_half(bootstrap: str) -> None:
    limit = time.monotonic() + 60
    with Admin(bootstrap_servers=bootstrap) as admin:
        while True:
            ends = admin.list_offsets({("t-copy", partition): "latest" for partition in range(2)})
            written = sum(found.offset for found in ends.values())
            if written > RECORDS // 4:
                break
            assert time.monotonic() < limit, "nothing was written"
    assert written < RECORDS, "the write was over before the worker could be killed"
