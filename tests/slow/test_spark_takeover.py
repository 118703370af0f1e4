"""A checkpoint of Spark's own Kafka connector, whose jars come by Maven, is continued. Issue 31, item 8."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.test_spark_versions import PROGRAMS, pyspark_of, run_with
from partita import Admin, Broker, Producer
from support.kafka.node import KafkaNode

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from spark import connector_jars

pytestmark = [pytest.mark.conformance, pytest.mark.spark]

PROGRAM = PROGRAMS.with_name("takeover_job.py")
PARTITIONS, RECORDS, MORE = 3, 240, 120


@contextmanager
def broker(which: str) -> Iterator[str]:
    with KafkaNode() if which == "kafka" else Broker() as found:
        yield found.bootstrap


def produce(bootstrap: str, partitions: int, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send("t", str(number), partition=number % partitions)


def undo_last_batch(folder: Path) -> None:
    """As if the driver had been killed in the middle of it: planned, its files written, nothing of it in the logs."""
    last = max(int(entry.name) for entry in (folder / "checkpoint" / "offsets").iterdir() if entry.name.isdecimal())
    for log in (folder / "checkpoint" / "commits", folder / "out" / "_spark_metadata"):
        (log / str(last)).unlink()
        (log / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("on", ["partita", "kafka"])
@pytest.mark.parametrize(("connector", "release"), [("4.0.0", "4.0.5"), ("4.2.0", "4.2.1")])
def test_a_checkpoint_of_the_connector_is_continued(connector: str, release: str, on: str, tmp_path: Path) -> None:
    """With an unfinished batch, a new partition and new records."""
    jars = connector_jars(connector)
    assert jars is not None
    pyspark = pyspark_of(release)
    with broker(on) as bootstrap:
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic("t", PARTITIONS)
            produce(bootstrap, PARTITIONS, RECORDS)
            before = run_with(pyspark, PROGRAM, "kafka", bootstrap, str(tmp_path), jars)
            assert len(before) == RECORDS
            undo_last_batch(tmp_path)
            admin.create_partitions("t", PARTITIONS + 1)
            produce(bootstrap, PARTITIONS + 1, MORE)
            ends = admin.list_offsets({("t", partition): "latest" for partition in range(PARTITIONS + 1)})
        after = run_with(pyspark, PROGRAM, "partita", bootstrap, str(tmp_path), "")
    assert sorted(after) == [[key[1], offset] for key, end in ends.items() for offset in range(end.offset)]
    assert len(after) == RECORDS + MORE
