"""The first look at logs that were not closed in order (issue 26.1, faults.md D5): all is there, and stays there."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from partita import Broker, Consumer
from partita.broker.launch import BrokerSettings, StartError, start_broker
from partita.broker.storage import side_by_side
from partita.broker.storage.side_by_side import side_by_side as run_side_by_side
from partita.log.log_config import Durability
from partita.log.partition_log import PartitionLog
from partita.log.storage import StorageError
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from support.broker.raw import Raw
from support.log.faulty_storage import CrashModel, FaultyStorage
from support.log.logs import fill, served
from support.log.store_world import SETTINGS, Ledger, StoreWorld

SENT = 12
LATEST, READ_UNCOMMITTED, READ_COMMITTED = -1, 0, 1


@pytest.fixture(params=["os", "sync"])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> BrokerSettings:
    """A directory as a kill leaves it, with some records in each of three partitions and a commit of a group."""
    source, target = tmp_path / "running", tmp_path / "killed"
    with Broker(data_dir=str(source), durability=request.param, offsets_topic_num_partitions=1) as broker:
        broker.run(partial(broker.cluster.create_topic, "t", 3, 1))
        for partition in range(3):
            broker.produce("t", *map(str, range(SENT)), partition=partition)
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as member:
            member.commit({("t", 0): 7})
        shutil.copytree(source, target)
    return BrokerSettings(data_dir=str(target), durability=request.param, options={"offsets.topic.num.partitions": 1})


def embedded(settings: BrokerSettings) -> Broker:
    return Broker(dict(settings.options), data_dir=settings.data_dir, durability=settings.durability)


def latest(raw: Raw, partition: int, isolation_level: int) -> int:
    part = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    topics = [ListOffsetsTopic(name="t", partitions=[part])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
    return int(raw.ask(request, 2).topics[0].partitions[0].offset)


def test_the_first_request_after_a_kill_sees_every_record(killed: BrokerSettings) -> None:
    """Issue 26.1: ListOffsets, with and without transactions, a fetch, and the offsets of a group, each the first."""
    with embedded(killed) as broker, Raw(broker.port) as raw:
        assert latest(raw, 0, READ_UNCOMMITTED) == SENT
        assert latest(raw, 1, READ_COMMITTED) == SENT
        part = FetchPartition(partition=2, fetch_offset=0, partition_max_bytes=1 << 20)
        fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="t", partitions=[part])])
        found = raw.ask(fetch, 4).responses[0].partitions[0]
        assert (found.high_watermark, found.last_stable_offset) == (SENT, SENT)
        assert len(found.records)
        assert broker.committed("g") == {("t", 0): 7}


def test_a_consumer_that_begins_at_the_end_reads_no_old_record(killed: BrokerSettings) -> None:
    """Issue 26.1: 360 old records were read."""
    with (
        embedded(killed) as broker,
        Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="latest") as newcomer,
    ):
        newcomer.assign([("t", partition) for partition in range(3)])
        assert [newcomer.position(("t", partition)) for partition in range(3)] == [SENT] * 3
        broker.produce("t", "new", partition=1)
        while not (found := newcomer.poll(1)):
            pass
        assert [record.value for record in found] == [b"new"]


@pytest.mark.parametrize("sync_before_the_kill", [False, True])
def test_whatever_is_shown_after_a_kill_survives_a_loss_of_power(sync_before_the_kill: bool) -> None:
    """Issue 26.1, D3, D5: written, never synced, and found by the next start: shown, so it must not vanish."""
    disk, ledger = FaultyStorage(), Ledger()
    world = StoreWorld(disk, Durability.SYNC, ledger)
    world.create("plain", 1, SETTINGS)
    for i in range(SENT):
        world.produce("plain", 0, "k", f"v{i}")
    if sync_before_the_kill:
        world.sync()
    again = StoreWorld(disk, Durability.SYNC, ledger)
    log = again.catalogue.by_name["plain"].partitions[0].log
    shown = served(log)
    assert [value for _, value in shown] == [f"v{i}" for i in range(SENT)]
    after = StoreWorld(disk.after_crash(CrashModel.NOTHING, lambda _: 0), Durability.SYNC, ledger)
    assert served(after.catalogue.by_name["plain"].partitions[0].log) == shown


def files_synced(patch: pytest.MonkeyPatch, sync: Callable[[int], None]) -> None:
    """`sync` takes the place of the system's."""
    for name in ("fsync", "fdatasync"):
        patch.setattr(os, name, sync)


def test_a_start_that_syncs_what_a_kill_left_leaves_the_loop_free(
    killed: BrokerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26.1: a slow disk holds the start, and nothing else that lives on the loop."""
    waits, goes_on = threading.Event(), threading.Event()
    fdatasync = os.fdatasync

    def slow(fd: int) -> None:
        waits.set()
        assert goes_on.wait(60), "nobody let the disk go on"
        fdatasync(fd)

    async def start() -> None:
        starting = asyncio.ensure_future(start_broker(killed))
        if killed.durability == "sync":
            await asyncio.to_thread(waits.wait, 20)
            assert not starting.done()
        goes_on.set()
        await (await starting).stop()

    files_synced(monkeypatch, slow)
    asyncio.run(start())


@pytest.mark.parametrize("killed", ["sync"], indirect=True)
def test_a_disk_that_fails_at_the_first_sync_refuses_the_start(
    killed: BrokerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26.1, D7: one line that names the file, and no broker that shows what may vanish."""

    def failing(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    files_synced(monkeypatch, failing)
    with pytest.raises(StartError, match=r"topics/.*\.log: Input/output error") as refused:
        asyncio.run(start_broker(killed))
    assert "\n" not in str(refused.value)


def test_work_side_by_side_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 26.10: a slow disk is no silence."""
    monkeypatch.setattr(side_by_side, "PROGRESS_SECONDS", 0.001)
    told, done = threading.Event(), []

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.set()

    def waits(number: int) -> None:
        assert told.wait(60), "it says nothing while it waits"
        done.append(number)

    log = logging.getLogger("partita.broker")
    handler = Told()
    log.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, log.name):
            run_side_by_side([partial(waits, number) for number in range(50)], "closing logs")
    finally:
        log.removeHandler(handler)
    assert sorted(done) == list(range(50))
    assert "closing logs: 0 of 50 done" in caplog.text


@pytest.mark.parametrize("at_once", [1, 2])
def test_work_side_by_side_ends_with_its_first_error(at_once: int) -> None:
    """D7: nothing more is asked of a disk that has failed."""
    failed: list[threading.Thread] = []
    begun = threading.Event()
    done: list[int] = []

    def more() -> None:
        done.append(1)

    def fails() -> None:
        failed.append(threading.current_thread())
        begun.set()
        raise StorageError("the disk")

    def outlasts_it() -> None:
        assert begun.wait(60)
        failed[0].join()

    jobs = [fails, more] if at_once == 1 else [outlasts_it, fails, more]
    with pytest.raises(StorageError, match="the disk"):
        run_side_by_side(jobs, "closing logs", at_once=at_once)
    assert not done


def test_a_stop_closes_logs_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 26.10: with 3,000 partitions it took 46 s, one sync after the other."""
    together = threading.Barrier(side_by_side.AT_ONCE)
    close = PartitionLog.close

    def closes_with_others(log: PartitionLog) -> None:
        together.wait(60)
        close(log)

    with Broker(data_dir=str(tmp_path), partita_log_failure="offline") as broker:
        topic = broker.run(partial(broker.cluster.create_topic, "t", 2 * side_by_side.AT_ONCE, 1))
        for partition in topic.partitions:
            broker.run(partial(fill, partition.log, 1))
        monkeypatch.setattr(PartitionLog, "close", closes_with_others)
    assert (tmp_path / "clean").exists()
