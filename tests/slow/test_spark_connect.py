"""Source, sink and groups over Spark Connect, with a server from pyspark's own jars. Issue 13, item 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import support.spark.connect_job
from partita import Producer
from partita.admin import Admin, NewTopic
from support.broker.process import broker_process
from support.spark.standalone import connect_server

pytestmark = pytest.mark.spark
JOB = Path(str(support.spark.connect_job.__file__))


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
