"""The example of Spark's own declarative pipelines in docs/spark-pipelines.md runs. Issue 13, item 3."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partita import Producer
from partita.admin import Admin, NewTopic
from partita.spark import ensure_java
from support.broker.process import broker_process
from support.spark.standalone import SPARK_HOME

pytestmark = pytest.mark.spark
PAGE = (Path(__file__).parents[2] / "docs" / "spark-pipelines.md").read_text()
RECORDS = 10


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    ensure_java()
    specification, definitions = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)[-1] for kind in ("yaml", "python"))
    (tmp_path / "spark-pipeline.yml").write_text(specification.replace("/srv/delays", str(tmp_path)))
    (tmp_path / "definitions").mkdir()
    with broker_process() as bootstrap:
        (tmp_path / "definitions" / "delays.py").write_text(definitions.replace("localhost:9092", bootstrap))
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic("flights", 2))
        with Producer(bootstrap_servers=bootstrap) as producer:
            for i in range(RECORDS):
                producer.send("flights", str(i), partition=i % 2)
        _run(tmp_path)
    flights = _read(tmp_path, "flights").select(["partition", "offset"]).to_pylist()
    assert sorted((row["partition"], row["offset"]) for row in flights) == [
        (partition, offset) for partition in range(2) for offset in range(RECORDS // 2)
    ]
    counts = {row["partition"]: row["count"] for row in _read(tmp_path, "delays").to_pylist()}
    assert counts == dict.fromkeys(range(2), RECORDS // 2)


def _run(folder: Path) -> None:
    environment = {
        **os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    command = [str(SPARK_HOME / "bin" / "spark-pipelines"), "run", "--spec", "spark-pipeline.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def _read(folder: Path, table: str) -> pa.Table:
    return pq.read_table(folder / "spark-warehouse" / table)
