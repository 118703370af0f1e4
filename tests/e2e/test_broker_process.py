"""`partita broker` as a process: start, stop, kill, start again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw, join_request

COMMAND = [sys.executable, "-m", "partita.cli.main", "broker"]


class Process:
    """A running broker: its banner, its port."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen
        self.banner = [self._line() for _ in range(3)]
        self.port = int(self.banner[0].split()[1].rstrip(",").rpartition(":")[2])

    def _line(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline()

    def end(self, signum: signal.Signals) -> int:
        self.popen.send_signal(signum)
        return self.popen.wait(60)


@contextmanager
def running(*options: str) -> Iterator[Process]:
    with subprocess.Popen(
        [*COMMAND, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as popen:
        try:
            yield Process(popen)
        finally:
            popen.kill()


def refused(*options: str) -> str:
    """The one line a start ends with; its exit code is 2."""
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    return line


def test_the_banner_says_address_data_and_what_differs_from_kafka() -> None:
    with running("--memory", "--set", "num.partitions=3") as broker:
        assert broker.banner[0].startswith("bootstrap  127.0.0.1:")
        assert "in memory, gone when the broker stops" in broker.banner[1]
        assert "num.partitions=3" in broker.banner[2]
        assert "group.initial.rebalance.delay.ms=0" in broker.banner[2]
    with running("--kafka-defaults") as broker:
        assert "all as in Apache Kafka" in broker.banner[2]
        missing = "__consumer_offsets needs 3 nodes (offsets.topic.replication.factor) and there are 1"
        assert broker._line() == f"groups     not served: {missing}\n"


def test_the_banner_names_further_listeners_by_their_advertised_addresses() -> None:
    command = [*COMMAND, "--set", "listeners=A://127.0.0.1:0,B://127.0.0.1:0"]
    command += ["--set", "advertised.listeners=A://localhost:9092,B://kafka:29092"]
    command += ["--set", "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
        try:
            broker = Process(popen)
            assert broker.banner[0] == "bootstrap  localhost:9092\n"
            assert broker._line() == "listener   B kafka:29092\n"
        finally:
            popen.kill()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_in_order(tmp_path: Path, signum: signal.Signals) -> None:
    with running("--data-dir", str(tmp_path)) as broker:
        with Raw(broker.port) as raw:
            leader = raw.stable("g")
            with Raw(broker.port) as second:
                given = second.ask(join_request("g"), 9)
                second.send(join_request("g", given.member_id), 9)
                heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=leader.member_id)
                while raw.ask(heartbeat, 4).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                    pass
                broker.popen.send_signal(signum)
                assert second.recv(11, 9)[1].error_code == ErrorCode.NOT_COORDINATOR
        assert broker.popen.wait(60) == 0
        assert (tmp_path / "clean").exists()


@pytest.mark.parametrize("more", [(), ("--log-level", "info")], ids=["read plainly", "read by click"])
def test_a_broker_that_cannot_tell_its_port_has_failed(more: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, "--memory", "--port", "0", *more], stdout=writer, timeout=60, check=False)
    os.close(writer)
    assert done.returncode == 1


def produce(raw: Raw, value: bytes) -> int:
    batch = build_batch([(0, None, value, ())])
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
    answer = raw.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 8)
    return int(answer.responses[0].partition_responses[0].base_offset)


@pytest.mark.parametrize("durability", ["os", "sync"])
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_everything_acknowledged_is_there_again(tmp_path: Path, signum: signal.Signals, durability: str) -> None:
    options = ("--data-dir", str(tmp_path / "data"), "--durability", durability)
    with running(*options) as broker, Raw(broker.port) as raw:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        topic_id = raw.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].topic_id
        assert [produce(raw, b"x") for _ in range(3)] == [0, 1, 2]
        joined = raw.stable("g", group_instance_id="i1")
        assert raw.commit("other", 17) == 0
        broker.end(signum)
    with running(*options) as broker, Raw(broker.port) as raw:
        (found,) = [t for t in raw.ask(MetadataRequest(topics=None), 12).topics if t.name == "t"]
        assert (found.topic_id, len(found.partitions)) == (topic_id, 2)
        assert found.partitions[0].leader_epoch == (1 if signum is signal.SIGKILL else 0)
        heartbeat = HeartbeatRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, group_instance_id="i1"
        )
        while (code := raw.ask(heartbeat, 4).error_code) in (14, 16):
            pass
        assert code == 0
        while (committed := raw.committed("other")) == -14:
            pass
        assert committed == 17
        assert produce(raw, b"x") == 3


def test_topics_of_a_broker_in_memory_are_gone() -> None:
    for _ in range(2):
        with running("--memory") as broker, Raw(broker.port) as raw:
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            assert raw.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def test_three_nodes_listen_on_three_ports() -> None:
    with running("--nodes", "3") as broker, Raw(broker.port) as raw:
        brokers = raw.ask(MetadataRequest(topics=[]), 5).brokers
        assert [b.node_id for b in brokers] == [1, 2, 3]
        for b in brokers:
            with Raw(b.port) as other:
                assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_what_is_in_the_way_of_a_start_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    assert "did you mean num.partitions?" in refused("--set", "num.partitons=3")
    assert "must be at least 1" in refused("--set", "num.partitions=0")
    assert "--set expects NAME=VALUE, not 'x'" in refused("--set", "x")
    assert "cannot be combined" in refused("--memory", "--data-dir", str(tmp_path))
    assert "needs a data directory" in refused("--durability", "sync")
    assert "3 ports from 65534 on are wanted" in refused("--port", "65534", "--nodes", "3")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in refused("--port", port)
        listeners = ("--set", "listeners=A://127.0.0.1:0")
        assert "replaces --host and --port" in refused("--port", port, *listeners)
        assert "must be NAME://HOST:PORT" in refused("--set", "listeners=127.0.0.1:0")
        assert "choose another host" in refused("--port", "0", "--host", "203.0.113.1")
        assert "choose another --admin-port" in refused("--port", "0", "--admin-port", port)
    assert "cannot write notes to /nowhere/n: No such file" in refused("--port", "0", "--notes", "/nowhere/n")


def test_a_data_directory_has_one_owner_and_a_format(tmp_path: Path) -> None:
    with running("--data-dir", str(tmp_path)) as broker:
        line = refused("--port", "0", "--data-dir", str(tmp_path))
        assert f"is in use by process {broker.popen.pid}" in line
    (tmp_path / "format").write_text("partita data directory, format 99\n")
    assert "has format 99, written by a newer Partita" in refused("--port", "0", "--data-dir", str(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    assert "neither empty nor a Partita data directory" in refused("--port", "0", "--data-dir", str(other))
    assert os.listdir(other) == ["thesis.txt"]


def test_what_is_slow_to_import_stays_out_of_the_broker() -> None:
    heavy = ("pyarrow", "numpy", "kio", "pyspark", "rich", "cramjam", "pandas")
    code = (
        "import sys\nfrom partita import Broker\nwith Broker() as b:\n b.cluster.groups if False else None\n"
        f"print(','.join(m for m in {heavy!r} if m in sys.modules) + '.')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "."


def test_the_coordinator_loads_what_share_and_streams_groups_need_when_there_is_one() -> None:
    code = """
import sys
from partita.broker.groups import coordinators
from partita.group.coordinator import GroupCoordinator
from partita.group.config import GroupConfig
from partita.now import Now
shard = GroupCoordinator(GroupConfig(), str)
shard.resume(Now(0, 0)), shard.on_topics_deleted(["t"], Now(0, 0)), shard.handover(Now(0, 0)), shard.unload()
print([name for name in sys.modules if "share_" in name or "streams_" in name or "sticky" in name])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_a_broker_whose_disk_fails_says_so_in_one_line_and_ends_with_status_1(tmp_path: Path) -> None:
    """B2, B3, D7: never a healthy face."""
    program = """
import errno, os, sys
from partita.cli.main import main
sync, calls = os.fdatasync, []
def failing(fd):
    calls.append(fd)
    if os.path.exists(sys.argv[-1] + "/fails"):
        raise OSError(errno.EIO, "Input/output error")
    sync(fd)
os.fdatasync = failing
main()
"""
    command = [sys.executable, "-c", program, "broker", "--port", "0", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as popen:
        try:
            with Raw(Process(popen).port) as raw:
                topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
                assert raw.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
                (tmp_path / "fails").touch()
                assert produce(raw, b"x") == 0
            assert popen.wait(60) == 1
            assert popen.stderr is not None
            said = popen.stderr.read()
        finally:
            popen.kill()
    assert "Traceback" not in said
    assert said.count("is offline, the broker ends with status 1") == 1
    assert not (tmp_path / "clean").exists()
