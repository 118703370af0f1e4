"""Source, sink and groups over Spark Connect, with a server from pyspark's own jars. Issue 13, item 1."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import support.spark.connect_job
from partita import Producer
from partita.admin import Admin, NewTopic
from support.broker.process import broker_process
from support.spark.standalone import connect_server, python_without_partita

pytestmark = pytest.mark.spark
JOB = Path(str(support.spark.connect_job.__file__))
UPLOADED = JOB.with_name("uploaded_job.py")
PAGE = Path(__file__).parents[2] / "docs" / "spark-clusters.md"


def test_a_client_of_spark_connect_reads_writes_and_commits(tmp_path: Path) -> None:
    with broker_process() as bootstrap, connect_server(tmp_path) as remote:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic("t", 2), NewTopic("t-copy", 1))
        with Producer(bootstrap_servers=bootstrap) as producer:
            for i in range(10):
                producer.send("t", str(i), partition=i % 2)
        command = [sys.executable, str(JOB), remote, bootstrap, "t", str(tmp_path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, env=dict(os.environ))
    facts = {name: fact for line in done.stdout.splitlines() for name, fact in json.loads(line).items()}
    assert facts == {
        "rows": 10, "later": 4, "copied": 10, "told": True, "lag": {"0": 3, "1": 3}, "has_metrics": True,
        "before": [], "after": [2, 2], "watched": True, "shared": 10, "group": [5, 5],
    }  # fmt: skip
    assert done.returncode == 0


def test_a_server_without_the_package_is_given_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/spark-clusters.md says of platforms that take no jars, with the zip that it makes."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(import zipfile.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert block is not None
    exec(block[1], {})
    python = python_without_partita(tmp_path)
    with broker_process() as bootstrap, connect_server(tmp_path, python) as remote:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic("t", 2))
        with Producer(bootstrap_servers=bootstrap) as producer:
            for i in range(10):
                producer.send("t", str(i), partition=i % 2)
        command = [sys.executable, str(UPLOADED), remote, bootstrap, str(tmp_path / "partita.zip"), str(tmp_path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, env=dict(os.environ))
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "before": "DATA_SOURCE_NOT_FOUND", "read": 10, "written": 10,
        "from-files": 10, "from-plan": 10, "from-tasks": 10,
    }  # fmt: skip
