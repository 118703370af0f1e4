"""Share groups on a whole broker, over sockets: the leader, the share coordinator and its log together."""

from __future__ import annotations

import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from partita import Broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from partita.share.coordinator.model import ShareKey
from support.broker.raw import Raw
from support.share.plane import ACCEPT, REJECT, RELEASE, acquired
from support.share.states import find_share, initialize
from support.share.wire import WireMember

SHARE = {"partita.share.version": 1}


def put(raw: Raw, count: int) -> None:
    data = [PartitionProduceData(index=0, records=build_batch([(time.time_ns() // 1_000_000, None, b"v", ())] * count))]
    answer = raw.ask(
        ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name="t", partition_data=data)]), 12
    )
    assert answer.responses[0].partition_responses[0].error_code == 0


def created(raw: Raw) -> bytes:
    """Create topic t; group g begins at its first record."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    topic_id = raw.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics[0].topic_id
    key = ShareKey("g", topic_id, 0)
    assert find_share(raw, f"g:{urlsafe_b64encode(topic_id).decode().rstrip('=')}:0") == 0
    assert raw.ask(initialize(key, 1, 0), 0).results[0].partitions[0].error_code == 0
    return bytes(topic_id)


class Killable:
    """A broker of its own process over a directory, with share groups."""

    def __init__(self, directory: Path, durability: str) -> None:
        command = [sys.executable, "-m", "partita.cli.main", "broker", "--port", "0", "--data-dir", str(directory)]
        options = ["--durability", durability, "--set", "partita.share.version=1"]
        self._process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        bootstrap = next(line.split()[1] for line in self._process.stdout if line.startswith("bootstrap"))
        self.port = int(bootstrap.rpartition(":")[2])

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def killable(directory: Path, durability: str) -> Iterator[Killable]:
    process = Killable(directory, durability)
    try:
        yield process
    finally:
        process.kill()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SHARE) as running:
        yield running


@pytest.mark.case("SG-D01", "SG-F01", "SG-E12")
def test_members_share_a_partition(broker: Broker) -> None:
    with Raw(broker.port) as one, Raw(broker.port) as other:
        topic_id = created(one)
        put(one, 10)
        m, n = WireMember(one, topic_id, "m"), WireMember(other, topic_id, "n")
        assert acquired(m.fetch(max_records=500)) == [(0, 9, 1)]
        assert m.ack((0, 5, ACCEPT), (6, 9, RELEASE)) == 0
        assert acquired(n.fetch()) == [(6, 9, 2)]


@pytest.mark.case("SG-N01", "SG-N03")
@pytest.mark.parametrize("durability", ["os", "sync"])
def test_a_killed_broker_has_forgotten_nothing_that_it_acknowledged(tmp_path: Path, durability: str) -> None:
    with killable(tmp_path, durability) as process, Raw(process.port) as raw:
        topic_id = created(raw)
        put(raw, 10)
        m = WireMember(raw, topic_id)
        assert acquired(m.fetch()) == [(0, 9, 1)]
        assert m.ack((0, 1, ACCEPT), (4, 5, REJECT), (6, 6, RELEASE)) == 0
        assert acquired(m.fetch()) == [(6, 6, 2)]
        process.kill()
    with killable(tmp_path, durability) as process, Raw(process.port) as raw:
        found = acquired(WireMember(raw, topic_id).fetch())
    assert found == [(2, 3, 1), (6, 6, 2), (7, 9, 1)], "held records are given again; the count is the stored one"


@pytest.mark.case("SG-A08")
def test_without_the_feature_requests_are_refused() -> None:
    with Broker({"partita.share.version": 0}) as broker, Raw(broker.port) as raw:
        assert WireMember(raw, bytes(16)).fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
