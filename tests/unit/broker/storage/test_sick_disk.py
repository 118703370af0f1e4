"""A disk that is slow, full, broken or gone, under a running broker (findings B1 to B14, faults.md D7 and D8)."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.config import BrokerConfig
from partita.broker.options import Value
from partita.broker.running import RunningBroker
from partita.broker.storage import log_store
from partita.broker.storage.data_dir import DiskStore
from partita.broker.storage.disk_storage import DiskStorage
from partita.broker.storage.open_files import OpenFiles
from partita.broker.wire.listeners import PLAINTEXT, Endpoint, Listener
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Message
from support.broker.raw import Raw, commit_request
from support.log.logs import at, batch, fill

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


class Disk:
    """Takes the place of the system's syncs: they wait while `stall` is set, and fail with `fails` if that is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.runs = threading.Event()
        self.runs.set()
        self.stalled = threading.Event()
        self.fails: int | None = None
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._slow(getattr(os, name)))

    def _slow(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def slow(fd: int) -> None:
            if not self.runs.is_set():
                self.stalled.set()
                assert self.runs.wait(60), "nobody let the disk go on"
            if self.fails is not None:
                raise OSError(self.fails, os.strerror(self.fails))
            sync(fd)

        return slow

    @contextmanager
    def stall(self) -> Iterator[None]:
        """No sync ends before the block does."""
        self.stalled.clear()
        self.runs.clear()
        try:
            yield
        finally:
            self.runs.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def produce_request(value: bytes = b"x", topic: str = "t") -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch(value.decode()))]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def produce(raw: Raw, value: bytes = b"x", topic: str = "t") -> int:
    """Produce one record; return the error code."""
    return int(raw.ask(produce_request(value, topic), 8).responses[0].partition_responses[0].error_code)


CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=3, replication_factor=1)])
DELETE = DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000)
SHORTEN = DeleteRecordsRequest(
    topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])]
)


@pytest.mark.parametrize("durability", ["os", "sync"])
@pytest.mark.parametrize(
    ("request_", "version"),
    [
        pytest.param(CREATE, 5, id="create topics"),
        pytest.param(DELETE, 4, id="delete topics"),
        pytest.param(SHORTEN, 2, id="delete records"),
        pytest.param(produce_request(topic="fresh"), 8, id="first record of a partition"),
        pytest.param(produce_request(b"x" * 3000), 8, id="a segment rolls"),
        pytest.param(commit_request("g2", 5), 8, id="first commit of a shard"),
    ],
)
def test_others_are_answered_while_a_sync_does_not_end(
    tmp_path: Path, disk: Disk, durability: str, request_: Message, version: int
) -> None:
    """B10: no fsync of a file or a folder on the event loop."""
    with Broker(data_dir=str(tmp_path), durability=durability) as broker:
        broker.run(lambda: broker.cluster.create_topic("fresh", 1, 1))
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1, {"internal.segment.bytes": 1000}))
        with Raw(broker.port) as slow, Raw(broker.port) as other:
            assert produce(slow) == produce(slow) == 0
            joined = other.stable("g")
            heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
            with disk.stall():
                slow.send(request_, version)
                for _ in range(20):
                    assert other.ask(ApiVersionsRequest(), 0).error_code == 0
                    assert other.ask(heartbeat, 4).error_code in (0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            slow.recv(request_.API_KEY, version)
        assert topic.name == "t"


def test_a_change_of_the_catalogue_is_answered_when_it_is_durable(tmp_path: Path, disk: Disk) -> None:
    """B10: off the loop, and yet no promise before its time."""
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw, Raw(broker.port) as other:
        with disk.stall():
            raw.send(CREATE, 5)
            assert disk.stalled.wait(60)
            other.ask(ApiVersionsRequest(), 0)
            raw.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                raw.socket.recv(1)
            raw.socket.settimeout(60)
        assert raw.recv(19, 5)[1].topics[0].error_code == 0


def test_creating_a_topic_on_a_slow_disk_ends_with_its_timeout_and_goes_on(tmp_path: Path, disk: Disk) -> None:
    """Issue 26.10: 29 s with a timeout of 5 s. As in Kafka the topic is there later."""
    create = CreateTopicsRequest(topics=CREATE.topics, timeout_ms=20)
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        with disk.stall():
            assert raw.ask(create, 5).topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert raw.ask(CREATE, 5).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    with Broker(data_dir=str(tmp_path)) as broker:
        assert [(topic.name, len(topic.partitions)) for topic in broker.cluster.catalogue] == [("new", 3)]


def test_a_producer_id_is_told_when_its_block_is_durable(tmp_path: Path, disk: Disk) -> None:
    """D1: a power loss would give the id to somebody else, and mix up their sequence numbers."""
    ask = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    with (
        Broker(data_dir=str(tmp_path), durability="sync") as broker,
        Raw(broker.port) as raw,
        Raw(broker.port) as other,
    ):
        with disk.stall():
            raw.send(ask, 2)
            assert disk.stalled.wait(60)
            other.ask(ApiVersionsRequest(), 0)
            raw.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                raw.socket.recv(1)
            raw.socket.settimeout(60)
        assert raw.recv(ask.API_KEY, 2)[1].producer_id == 0


def test_what_else_lives_on_the_loop_goes_on_while_a_stop_syncs(tmp_path: Path, disk: Disk) -> None:
    """B10: the logs are closed beside the loop."""
    store = DiskStore(str(tmp_path))

    async def stop_slowly() -> None:
        running = RunningBroker(BrokerConfig({}), store, 1)
        await running.start([Listener(PLAINTEXT, Endpoint("127.0.0.1", 0))])
        topic = running.cluster.create_topic("t", 1, 1)
        fill(topic.partitions[0].log, 3)
        with disk.stall():
            stopping = asyncio.ensure_future(running.stop())
            await asyncio.to_thread(disk.stalled.wait, 60)
            assert not stopping.done()
        await stopping

    asyncio.run(stop_slowly())
    assert (tmp_path / "clean").exists()


@pytest.mark.parametrize("policy", ["exit", "offline"])
@pytest.mark.parametrize("durability", ["os", "sync"])
def test_a_failed_sync_takes_the_log_directory_offline(
    tmp_path: Path, disk: Disk, durability: str, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B2, B3, D7: every partition says so, no shard is replayed, no request stays unanswered, one clear line."""
    with Broker({"partita.log.failure": policy}, data_dir=str(tmp_path), durability=durability) as broker:
        for name in ("t", "u"):
            broker.run(partial(broker.cluster.create_topic, name, 1, 1))
        with Raw(broker.port) as raw:
            assert produce(raw) == produce(raw, topic="u") == 0
            raw.stable("warm-up")
            assert raw.commit("g", 1) == 0
            disk.fails = errno.EIO
            codes = set()
            while raw.commit("g", 2) == 0:
                pass
            for _ in range(20):
                codes.add((produce(raw), produce(raw, topic="u"), raw.commit("g", 3), -raw.committed("g")))
            assert codes == {(STORAGE, STORAGE, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)}
        assert (broker.running.failure is not None) == (policy == "exit")
        notes = [note.get("what") for note in broker.notes()]
        assert notes.count("log directory offline") == 1
        assert "shard replayed" not in notes
        disk.fails = None
    offline = [record for record in caplog.records if "is offline" in record.getMessage()]
    assert len(offline) == 1
    assert not [record for record in caplog.records if record.exc_info]
    assert not (tmp_path / "clean").exists()


def test_a_failed_append_takes_the_log_directory_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B3, D7: one EIO of an append."""

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
        assert produce(raw) == 0
        monkeypatch.setattr(os, "pwritev", broken)
        assert produce(raw) == STORAGE
        monkeypatch.undo()
        assert produce(raw) == STORAGE
        assert broker.cluster.store.failure is not None


def full_disk(patch: pytest.MonkeyPatch, free: list[int]) -> None:
    """The volume has `free[0]` bytes left, whoever asks and whoever writes."""
    statvfs, pwritev = os.statvfs, os.pwritev

    class Volume:
        def __init__(self, path: Any) -> None:
            found = statvfs(path)
            self.f_frsize, self.f_blocks, self.f_bavail = 1, found.f_blocks * found.f_frsize, free[0]

    def write(fd: int, chunks: Any, position: int) -> int:
        size = sum(map(len, chunks))
        if size > free[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        free[0] -= size
        return pwritev(fd, chunks, position)

    patch.setattr(os, "statvfs", Volume)
    patch.setattr(os, "pwritev", write)


def giving_room(free: list[int]) -> Callable[..., None]:
    """What removes folders, and leaves 4 kB more on the disk each time."""
    rmtree = shutil.rmtree

    def remove(*args: Any, **options: Any) -> None:
        rmtree(*args, **options)
        free[0] += 4096

    return remove


@pytest.mark.parametrize(("every_ms", "times"), [(log_store.NO_ROOM_EVERY_MS, 1), (0, 3)])
def test_a_full_disk_is_told_in_the_log_but_not_for_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, every_ms: int, times: int
) -> None:
    """D8: only producers heard of it."""
    free = [1 << 30]
    full_disk(monkeypatch, free)
    monkeypatch.setattr(log_store, "NO_ROOM_EVERY_MS", every_ms)
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
        free[0] = 0
        assert [produce(raw) for _ in range(3)] == [STORAGE] * 3
        told = [entry.getMessage() for entry in caplog.records if entry.levelname == "ERROR"]
        free[0] = 1 << 30
        assert produce(raw) == 0
    assert len(told) == times
    assert all(line.startswith("batches are refused: ") for line in told)
    assert "the disk has no room" in told[0]


def test_a_deletion_that_finds_no_room_for_its_line_holds_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26.6, D8, S26: on a disk that stays full the topic is not back after a kill, nor takes another one away."""
    before, after = tmp_path / "killed-on-a-full-disk", tmp_path / "killed-later"
    free = [1 << 30]
    full_disk(monkeypatch, free)
    with Broker(data_dir=str(tmp_path / "data")) as broker, Raw(broker.port) as raw:
        for name in ("t", "new"):
            broker.run(partial(broker.cluster.create_topic, name, 1, 1))
            assert produce(raw, topic=name) == 0
        free[0] = 0
        for name in ("t", "new"):
            doomed = DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
            assert raw.ask(doomed, 4).responses[0].error_code == 0
        assert raw.ask(CREATE, 5).topics[0].error_code == STORAGE
        shutil.copytree(tmp_path / "data", before)
        free[0] = 1 << 30
        assert raw.ask(CREATE, 5).topics[0].error_code == 0
        shutil.copytree(tmp_path / "data", after)
    for image, names in ((before, []), (after, ["new"]), (after, ["new"]), (tmp_path / "data", ["new"])):
        with Broker(data_dir=str(image)) as broker:
            assert [topic.name for topic in broker.cluster.catalogue] == names
            assert len(os.listdir(image / "topics")) == 0 or image != tmp_path / "data"


@pytest.mark.parametrize("left", [0, 100, 8 << 20])
def test_on_a_full_disk_the_broker_stops_starts_and_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """B1, B4, D8: SIGTERM is clean, the start works, what is acknowledged is readable, room comes back by deletion."""
    free = [1 << 30]
    full_disk(monkeypatch, free)
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        for name in ("t", "u"):
            broker.run(partial(broker.cluster.create_topic, name, 1, 1))
        assert produce(raw) == produce(raw, topic="u") == 0
        raw.stable("warm-up")
        assert raw.commit("g", 1) == 0
        free[0] = left
        while produce(raw, b"x" * 500_000) == 0:
            pass
        end = broker.run(lambda: broker.cluster.catalogue.by_name["t"].partitions[0].log.log_end_offset)
        accepted = raw.commit("g", 2) == 0
        assert accepted == (left > 1 << 20), "commits have a reserve of their own"
        assert raw.committed("g") == (2 if accepted else 1)
        assert [note for note in broker.notes() if note.get("what") == "shard replayed"][1:] == []
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        assert produce(raw, b"x" * 500_000) == STORAGE
        raw.find("g")
        while (found := raw.committed("g")) == -ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert found == (2 if accepted else 1)
        monkeypatch.setattr(shutil, "rmtree", giving_room(free))
        assert raw.ask(DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 4).responses[0].error_code == 0
        while len(os.listdir(tmp_path / "topics")) > 2:
            raw.ask(ApiVersionsRequest(), 0)
        log = broker.cluster.catalogue.by_name["t"].partitions[0].log
        assert broker.run(lambda: log.log_end_offset) == end
        free[0] = 1 << 30
        assert produce(raw) == 0, "when space returns, service resumes"
        while raw.commit("g", 3) != 0:
            pass


def test_retention_works_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1: the log start offset cannot be written before the files are gone, so they go first, oldest first."""
    free = [1 << 30]
    full_disk(monkeypatch, free)
    with Broker(data_dir=str(tmp_path)) as broker:
        settings: dict[str, Value] = {"internal.segment.bytes": 200, "retention.bytes": 0}
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1, settings))
        log = topic.partitions[0].log
        broker.run(lambda: fill(log, 10))
        broker.run(lambda: log.flush(at(0)))
        free[0] = 0
        assert broker.run(broker.running.upkeep.retain_now) > 1

        async def durable() -> None:
            waiting = broker.running.upkeep.durable()
            assert waiting is not None
            await waiting

        broker.call(durable())
        assert len(list((tmp_path / "topics" / topic.topic_id.hex() / "0").glob("*.log"))) == 1


def test_retention_reaches_logs_that_nobody_has_touched_since_the_start(tmp_path: Path) -> None:
    """B7."""
    options = {"log.retention.check.interval.ms": 1}
    settings: dict[str, Value] = {"internal.segment.bytes": 200}
    with Broker(options, data_dir=str(tmp_path)) as broker:
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1, settings))
        broker.run(lambda: fill(topic.partitions[0].log, 10))
        broker.run(lambda: broker.cluster.catalogue.configure(topic, {**settings, "retention.ms": 1}))
    with Broker(options, data_dir=str(tmp_path)) as broker:
        partition = broker.cluster.catalogue.by_name["t"].partitions[0]
        while partition.opened_log is None or partition.opened_log.log_start_offset < 10:
            broker.run(lambda: None)


def test_a_data_directory_that_is_removed_is_noticed(tmp_path: Path) -> None:
    """B12."""
    root = tmp_path / "data"
    with Broker(data_dir=str(root)) as broker, Raw(broker.port) as raw:
        broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
        assert produce(raw) == 0
        while root.exists():
            shutil.rmtree(root, ignore_errors=True)
        broker.run(broker.cluster.store.check)
        assert produce(raw) == STORAGE
        assert broker.running.failure is not None


def test_a_file_that_is_removed_fails_its_next_sync(tmp_path: Path) -> None:
    """B12: what is appended to a file without a name is lost."""
    file = DiskStorage(str(tmp_path)).open("a.log", create=True)
    file.append([b"x"])
    file.sync()
    (tmp_path / "a.log").unlink()
    with pytest.raises(StorageError, match="was removed"):
        file.sync()


def test_idle_files_are_closed_and_opened_again(tmp_path: Path) -> None:
    """B8: more partitions than descriptors."""
    files = OpenFiles(10)
    storage = DiskStorage(str(tmp_path), files=files)
    opened = [storage.open(f"{i}.log", create=True) for i in range(50)]
    for turn in range(3):
        for i, file in enumerate(opened):
            file.append([b"%d-%d " % (turn, i)])
            assert len(files) <= 10
    for i, file in enumerate(opened):
        assert bytes(file.read_at(0, 100)) == b"".join(b"%d-%d " % (turn, i) for turn in range(3))
        file.sync()
    assert len(files) <= 10


def test_a_file_in_use_or_held_keeps_its_descriptor(tmp_path: Path) -> None:
    """B8: what a compaction has replaced by another file of the same name stays readable."""
    files = OpenFiles(2)
    storage = DiskStorage(str(tmp_path), files=files)
    old = storage.open("a.log", create=True)
    old.append([b"old"])
    old.hold()
    storage.open("b.log", create=True).append([b"new"])
    storage.rename("b.log", "a.log")
    for i in range(5):
        storage.open(f"{i}.log", create=True).append([b"x"])
    assert bytes(old.read_at(0, 3)) == b"old"
    old.close()
    assert bytes(storage.open("a.log").read_at(0, 3)) == b"new"


def test_without_descriptors_left_the_logs_make_do_with_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: clients took them."""
    files = OpenFiles(100)
    storage = DiskStorage(str(tmp_path), files=files)
    opened = [storage.open(f"{i}.log", create=True) for i in range(20)]
    for file in opened[:10]:
        file.append([b"x"])
    system_open, limit = os.open, len(files)

    def scarce(path: str, *rest: Any) -> int:
        if path.endswith(".log") and len(files) >= limit:
            raise OSError(errno.EMFILE, "Too many open files")
        return system_open(path, *rest)

    monkeypatch.setattr(os, "open", scarce)
    for file in opened:
        file.append([b"y"])
    assert len(files) <= limit


def test_a_damaged_batch_is_told_once_and_the_good_ones_before_it_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B13: one line in the log, CORRUPT_MESSAGE for the batch itself."""
    from partita.broker.config import BrokerConfig, TopicConfig
    from partita.records.header import InvalidBatch

    settings = TopicConfig(BrokerConfig())
    store = DiskStore(str(tmp_path))
    store.append_catalogue(b"{}")
    log = store.open_log(b"\x0a" * 16, 0, settings)
    fill(log, 5)
    log.close()
    store.close()
    (path,) = (tmp_path / "topics" / ("0a" * 16) / "0").glob("*.log")
    size = len(batch("v0"))
    content = bytearray(path.read_bytes())
    content[4 * size - 1] ^= 1
    path.write_bytes(content)
    again = DiskStore(str(tmp_path)).open_log(b"\x0a" * 16, 0, settings)
    with caplog.at_level(logging.ERROR):
        assert len(again.read(0, 1 << 20)) == 3 * size
        for _ in range(3):
            with pytest.raises(InvalidBatch):
                again.read(3, 1 << 20)
        assert len(again.read(4, 1 << 20)) == size
    assert caplog.text.count("fetches of it are refused") == 1
