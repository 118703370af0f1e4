"""A worker process that meets an error reports the reason to the program that waits for it (clients, D6)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from partita import Admin, Broker, Producer

PROGRAM = '''
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

from partita import Admin, Consumer


def read(way):
    """Meet one error of the clients, each in the way that users do."""
    options = {"bootstrap_servers": sys.argv[1], "auto_offset_reset": "earliest" if way == "bad" else "none"}
    if way == "bad":
        options["value_deserializer"] = "json"
    if way == "some":
        with Admin(bootstrap_servers=sys.argv[1]) as admin:
            admin.delete_topics(["no-such-topic", "nor-this"])
    with Consumer(**options, group_id=way) as consumer:
        consumer.assign([("t", 0)])
        if way == "range":
            consumer.seek(("t", 0), 1000)
        while True:
            consumer.poll(1.0)


def told(result):
    try:
        return result()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    for way in ("bad", "range", "none", "some"):
        with multiprocessing.Pool(1) as pool:
            print(way, told(lambda: pool.apply_async(read, (way,)).get(60)))
        with ProcessPoolExecutor(1) as executor:
            print(way, told(lambda: executor.submit(read, way).result(60)))
'''


def test_pools_of_processes_report_the_reason(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("t", 1)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("t", b"{no json")
        ran = [sys.executable, str(program), broker.bootstrap]
        done = subprocess.run(ran, capture_output=True, text=True, timeout=240)
    lines = done.stdout.splitlines()
    assert len(lines) == 8, done.stderr
    reasons = {
        "bad": "RecordDeserializationError: value of t-0 at offset 0 cannot be deserialized",
        "range": "OffsetsOutOfRangeError: OFFSET_OUT_OF_RANGE: positions outside the log: t-0 at 1000",
        "none": "NoOffsetForPartitionError: no offset is committed for t-0 ",
        "some": "SomeFailed: no-such-topic: UNKNOWN_TOPIC_OR_PARTITION",
    }
    for line in lines:
        way, _, reason = line.partition(" ")
        assert reason.startswith(reasons[way]), line
