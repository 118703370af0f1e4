"""A broker process on a small volume that fills to the last byte (issue 9.2, findings B1 and B4, faults.md D8).

The volume is a tmpfs of its own where this user may mount one. Elsewhere the same is shown with a volume that only says
that it is full, in tests/unit/broker/storage/test_sick_disk.py, and here with what the tests' own volume has to give.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch
from support.broker.raw import Raw

MIB = 1 << 20
VOLUME_BYTES = 24 * MIB
RECORD = bytes(200_000)
EARLIEST, LATEST = -2, -1
RECORDS_MAX = 100
"""More than the volume has room for."""


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A folder on a volume of 24 MiB, or else on one whose files may not grow beyond that."""
    mount = tmp_path / "volume"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={VOLUME_BYTES}", "partita-test", str(mount)]
    try:
        is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        is_mounted = False
    try:
        yield mount
    finally:
        if is_mounted:
            subprocess.run(["umount", str(mount)], check=True)


@contextmanager
def broker(data_dir: Path) -> Iterator[Raw]:
    """A broker in a process of its own, which must end with status 0 at SIGTERM, saying nothing of a traceback."""
    settings = ["log.retention.check.interval.ms=100", "offsets.topic.num.partitions=1"]
    options = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "partita.cli.main", "broker", "--port", "0", "--data-dir", str(data_dir), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = next((line for line in process.stdout if line.startswith("bootstrap")), None)
        try:
            assert ready is not None, "the broker does not start"
            with Raw(int(ready.split()[1].rpartition(":")[2])) as raw:
                yield raw
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors, errors


def create(raw: Raw, name: str) -> None:
    configs = [CreatableTopicConfig(name="segment.bytes", value=str(MIB))]
    new = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    assert raw.ask(CreateTopicsRequest(topics=[new]), 5).topics[0].error_code == 0


def produce(raw: Raw, topic: str) -> int:
    data = [PartitionProduceData(index=0, records=build_batch([(int(time.time() * 1000), None, RECORD, [])]))]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    return int(raw.ask(request, 8).responses[0].partition_responses[0].error_code)


def offset(raw: Raw, topic: str, which: int) -> int:
    part = ListOffsetsPartition(partition_index=0, timestamp=which)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])])
    return int(raw.ask(request, 1).topics[0].partitions[0].offset)


def committed(raw: Raw) -> int:
    raw.find("g")
    while (found := raw.committed("g", "t")) == -ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass
    return found


def fill(path: Path, limit: int) -> None:
    """Take what is left of the volume, to the last byte."""
    with path.open("wb") as file, suppress(OSError):
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while file.tell() < limit:
                    os.write(file.fileno(), bytes(size))
                    file.seek(0, os.SEEK_END)


def test_a_full_volume_refuses_producers_and_serves_everybody_else(volume: Path) -> None:
    """B1, B4, D8: commits by their reserve, an orderly stop, a start, deletion and retention on the full disk."""
    data, filler = volume / "data", volume / "filler"
    with broker(data) as raw:
        for name in ("t", "u"):
            create(raw, name)
        raw.find("g")
        while raw.commit("g", 1, "t") != 0:
            pass
        for _ in range(12):
            assert produce(raw, "u") == 0
        is_small = os.statvfs(volume).f_blocks * os.statvfs(volume).f_frsize == VOLUME_BYTES
        sent = 0
        while sent < RECORDS_MAX and produce(raw, "t") == 0:
            sent += 1
        assert (sent < RECORDS_MAX) == is_small
        assert raw.commit("g", 2, "t") == 0, "commits have a reserve of their own"
        assert offset(raw, "t", LATEST) == sent
        fill(filler, VOLUME_BYTES)
        assert committed(raw) == 2
        assert produce(raw, "t") == (ErrorCode.KAFKA_STORAGE_ERROR if is_small else 0)
    end = sent if is_small else sent + 1
    with broker(data) as raw:
        assert (offset(raw, "t", LATEST), committed(raw)) == (end, 2)
        assert raw.ask(DeleteTopicsRequest(topic_names=["u"], timeout_ms=20_000), 4).responses[0].error_code == 0
        change = AlterableConfig(name="retention.bytes", config_operation=0, value=str(MIB))
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
        assert raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
        while offset(raw, "t", EARLIEST) == 0:
            pass
        filler.unlink()
        assert produce(raw, "t") == 0, "when space returns, service resumes"
        while raw.commit("g", 3, "t") != 0:
            pass
    with broker(data) as raw:
        assert (offset(raw, "t", LATEST), committed(raw)) == (end + 1, 3)
