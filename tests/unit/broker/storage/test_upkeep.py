"""Upkeep of many logs: one that cannot be kept in order does not keep the others from it."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from struct import pack_into
from threading import Barrier, Thread
from unittest.mock import Mock

import pytest

from partita import Broker
from partita.broker.config import TopicConfig
from partita.broker.storage import log_store, upkeep
from partita.broker.storage.log_store import log_config
from partita.broker.storage.side_by_side import AT_ONCE, side_by_side
from partita.log import compaction
from partita.log.log_config import Durability, LogConfig
from partita.log.partition_log import PartitionLog
from partita.log.storage import StorageError, StorageFull
from partita.log.sync_ticket import SyncTicket
from partita.now import Now
from partita.records import compression
from partita.records.checksum import crc32c
from support.broker.data_plane import data_plane
from support.log.logs import at, batch, open_log, pairs, served


def garbled(batch: bytes) -> bytes:
    """The batch with a payload that no codec can read, and the checksum of that."""
    copy = bytearray(batch)
    copy[61:] = b"\xff" * (len(copy) - 61)
    pack_into(">I", copy, 17, crc32c(memoryview(copy)[21:]))
    return bytes(copy)


def test_an_unreadable_batch_keeps_only_its_own_log_from_being_compacted(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker:

        def log_of(name: str) -> PartitionLog:
            topic = broker.cluster.create_topic(name, 1, 1)
            broker.cluster.catalogue.configure(topic, {"cleanup.policy": ("compact",)})
            return topic.partitions[0].log

        bad, good = broker.run(lambda: log_of("bad")), broker.run(lambda: log_of("good"))
        for value in ("old", "new"):
            broker.run(partial(good.append, pairs(("k", value)), 0, at(0)))
        broker.run(lambda: bad.append(garbled(pairs(("k", "v"), codec=1)), 0, at(0)))
        size = good.segments[0].size
        assert broker.call(broker.running.upkeep.compact_now(force=True)) == 1
        assert good.segments[0].size < size
        assert bad.log_start_offset == 0
        assert "compaction of" in caplog.text


@pytest.mark.parametrize("is_missing", [True, False], ids=["no package lz4", "an error of its own"])
def test_a_batch_in_lz4_keeps_no_other_log_from_being_compacted(
    is_missing: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker without the package takes such batches, and could not write what was left: no log was compacted."""
    with Broker() as broker:

        def log_of(name: str) -> PartitionLog:
            return broker.cluster.create_topic(name, 1, 1, {"cleanup.policy": ("compact",)}).partitions[0].log

        packed, good = broker.run(lambda: log_of("packed")), broker.run(lambda: log_of("good"))
        for value in ("old", "new"):
            broker.run(partial(packed.append, pairs(("k", value), (value, value), codec=compression.LZ4), 0, at(0)))
            broker.run(partial(good.append, pairs(("k", value)), 0, at(0)))
        if is_missing:
            monkeypatch.setitem(sys.modules, "lz4", None)
            monkeypatch.delitem(sys.modules, "lz4.frame", raising=False)
        else:
            monkeypatch.setattr(compaction, "writable", lambda codec: {compression.NONE: codec}[codec])
        assert broker.call(broker.running.upkeep.compact_now(force=True)) == 1 + is_missing
        assert served(good) == [(1, "new")]
        assert (served(packed) == [(1, "old"), (2, "new"), (3, "new")]) is is_missing
        assert ("in an unexpected way" in caplog.text) is not is_missing


def test_a_swap_that_is_half_done_is_finished_although_the_topic_is_not_compacted_any_more() -> None:
    """Until then retention waits, for the files are not those of the segments that the log knows."""
    with Broker() as broker:
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
        settings = broker.cluster.catalogue.configure
        broker.run(lambda: settings(topic, {"cleanup.policy": ("compact",)}))
        kept = topic.partitions[0].log
        for value in ("old", "new"):
            broker.run(partial(kept.append, pairs(("k", value)), 0, at(0)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction, "finish_swap", Mock(side_effect=StorageFull("no room to rename")))
            assert broker.call(broker.running.upkeep.compact_now(force=True)) == 0
        broker.run(lambda: settings(topic, {"cleanup.policy": ("delete",), "retention.ms": 1}))
        assert broker.run(broker.running.upkeep.retain_now) == 0
        assert broker.call(broker.running.upkeep.compact_now()) == 1
        assert [name for name in kept.storage.list(kept.directory) if name.endswith(".swap")] == []
        assert broker.run(broker.running.upkeep.retain_now) == 1


@pytest.mark.parametrize("step", ["_note_keys", "_write"])
def test_a_topic_that_is_deleted_during_its_compaction_harms_no_other(step: str, tmp_path: Path) -> None:
    """Its files were gone: that was taken for a failure of the disk, and the broker ended."""
    work = getattr(compaction.CompactionPlan, step)
    with Broker(data_dir=str(tmp_path)) as broker:
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1, {"cleanup.policy": ("compact",)}))
        other = broker.run(lambda: broker.cluster.create_topic("other", 1, 1).partitions[0].log)
        broker.run(lambda: topic.partitions[0].log.append(pairs(("k", "v")), 0, at(0)))

        def without_files(*args: object) -> object:
            broker.run(lambda: broker.cluster.catalogue.delete([topic]))
            broker.run(lambda: [chore() for chore in broker.running.upkeep._take_chores()])
            return work(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction.CompactionPlan, step, without_files)
            assert broker.call(broker.running.upkeep.compact_now(force=True)) == 0
        assert broker.cluster.store.failure is None
        assert broker.run(lambda: other.append(pairs(("k", "v")), 0, at(0))).base_offset == 0


def test_a_jump_of_the_clock_applies_retention() -> None:
    """Newcomer finding T2: what became due in the time that was passed over happens before the call returns."""
    with Broker() as broker:

        def kept() -> PartitionLog:
            topic = broker.cluster.create_topic("t", 1, 1)
            broker.cluster.catalogue.configure(topic, {"retention.ms": 60_000})
            return topic.partitions[0].log

        log = broker.run(kept)
        clock = broker.cluster.clock
        broker.run(lambda: log.append(pairs(("k", "v"), ms=clock.now().wall_ms - at(0).wall_ms), 0, clock.now()))
        broker.control.advance_clock(1_000)
        assert log.log_start_offset == 0
        broker.control.advance_clock(600_000)
        assert log.log_start_offset == 1


def test_a_changed_topic_costs_nothing_for_the_logs_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change read the settings of every open log again: 2,000 changes beside 20,000 logs took minutes."""
    with data_plane() as plane:
        wide, other = plane.topic("wide", 3), plane.topic("other", 3)
        logs = [partition.log for topic in (wide, other) for partition in topic.partitions]
        read: list[TopicConfig] = []

        def counted(config: TopicConfig) -> LogConfig:
            read.append(config)
            return log_config(config)

        monkeypatch.setattr(log_store, "log_config", counted)
        plane.cluster.catalogue.configure(wide, {"retention.ms": 7})
        assert read == [wide.config]
        assert [log.config.retention_ms == 7 for log in logs] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("walk", ["_retain_everywhere", "compact_now"])
def test_others_have_their_turn_while_many_logs_are_looked_at(walk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 logs held the loop for 0.6 s in each round of retention, and 0.1 s in each of compaction."""
    monkeypatch.setattr(upkeep, "LOOKED_AT_ONCE", 2)
    with data_plane() as plane:
        topic = plane.topic("t", 5, cleanup_policy=("compact", "delete"), retention_ms=1)
        logs = [partition.log for partition in topic.partitions]
        for log in logs:
            log.append(pairs(("k", "v")), 0, at(0))
        turns: list[int] = []

        async def count_turns() -> None:
            done = plane.loop.create_task(getattr(plane.running.upkeep, walk)())
            while not done.done():
                turns.append(sum(log.log_start_offset for log in logs))
                if len(turns) == 2:
                    plane.cluster.catalogue.delete([topic])
                await asyncio.sleep(0)
            await done

        plane.loop.run_until_complete(count_turns())
        assert len(turns) >= 2
        assert walk != "_retain_everywhere" or turns[:2] == [0, 2]


def test_others_have_their_turn_while_empty_logs_are_looked_for() -> None:
    """8,000 partitions that nobody had written to held the loop for 50 ms in each round of retention and compaction."""
    with data_plane() as plane:
        plane.topic("t", 5 * upkeep.OPENED_AT_ONCE)

        async def turns() -> int:
            count, walk = 0, plane.loop.create_task(plane.running.upkeep.open_all())
            while not walk.done():
                count += 1
                await asyncio.sleep(0)
            return count

        assert plane.loop.run_until_complete(turns()) > 5


def test_others_have_their_turn_while_many_logs_are_synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A sync of 5,000 logs held the loop for 12 ms before it, and for 8 ms behind it."""
    monkeypatch.setattr(upkeep, "LOOKED_AT_ONCE", 2)
    with Broker(data_dir=str(tmp_path), durability="sync") as broker:

        async def synced() -> list[int]:
            loop = asyncio.get_running_loop()
            logs = [partition.log for partition in broker.cluster.create_topic("t", 9, 1).partitions]
            for log in logs:
                log.append(pairs(("k", "v")), 0, broker.cluster.clock.now())
            counts: list[int] = []
            done = loop.create_future()

            def look() -> None:
                counts.append(sum(log.high_watermark for log in logs))
                if counts[-1] == len(logs):
                    done.set_result(counts)
                else:
                    loop.call_soon(look)

            look()
            return await done  # type: ignore[no-any-return]

        assert set(broker.call(synced())) == {0, 2, 4, 6, 8, 9}


def test_no_other_sync_begins_beside_that_of_a_compaction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would not have the sync of the sealed segment: a power failure left acknowledged records behind a gap."""
    run, begin = SyncTicket.run, PartitionLog.begin_sync
    begun: list[int] = []
    beside: list[int] = []
    with Broker(data_dir=str(tmp_path), durability="sync") as broker:
        kept = broker.running.upkeep
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1, {"cleanup.policy": ("compact",)}))
        log = topic.partitions[0].log

        def begin_noted(of: PartitionLog, now: Now) -> SyncTicket | None:
            if of is log:
                begun.append(of.log_end_offset)
            return begin(of, now)

        def run_slowly(ticket: SyncTicket) -> None:
            """A record comes while the segment before it is being synced, and a sync is due."""
            if ticket.chores and log.log_end_offset == 1:
                broker.run(partial(log.append, pairs(("k", "behind")), 0, at(0)))
                broker.run(kept._sync)
                broker.call(asyncio.sleep(0))
                beside.extend(begun[1:])
            run(ticket)

        def append_synced() -> None:
            log.append(pairs(("k", "sealed")), 0, at(0))
            log.flush(at(0))

        async def settled() -> None:
            """No sync of what has happened so far is due or under way."""
            while (waiting := kept.durable()) is not None:
                await waiting

        broker.run(append_synced)
        broker.call(settled())
        monkeypatch.setattr(PartitionLog, "begin_sync", begin_noted)
        monkeypatch.setattr(SyncTicket, "run", run_slowly)
        assert broker.call(kept.compact_now(force=True)) >= 1
        assert begun[0] == 1
        assert beside == []


def test_many_logs_are_synced_side_by_side() -> None:
    """A stop waits for the sync under way: one after the other, 3,000 logs took 14 s of it, and nothing was said."""
    meeting = Barrier(AT_ONCE)

    class Meeting:
        def sync(self) -> None:
            meeting.wait(60)

    with data_plane() as plane:
        log = plane.topic("t").partitions[0].log
        tickets = [SyncTicket([], Meeting(), 0, 0, 0) for _ in range(2 * AT_ONCE)]  # type: ignore[arg-type]  # all a ticket asks of a file
        work = upkeep.SyncRound([], [(log, ticket) for ticket in tickets])
        work.run()
        assert [ticket.error for ticket in tickets] == [None] * len(tickets)
        assert work.error is None


def test_a_log_whose_sync_did_not_take_place_makes_nothing_durable() -> None:
    """A chore of the store that failed kept the logs from being synced, and their records were acknowledged."""

    def fail() -> None:
        raise StorageError("the catalogue cannot be written")

    with data_plane() as plane:
        log = open_log(durability=Durability.SYNC)
        log.append(batch("a"), 0, at(0))
        ticket = log.begin_sync(at(0))
        assert ticket is not None
        work = upkeep.SyncRound([fail], [(log, ticket)])
        work.run()
        list(work.finish(plane.store))
        assert (log.high_watermark, log.durable_offset) == (0, 0)
        assert log.failure is not None
        assert plane.store.failure == "the catalogue cannot be written"


@pytest.mark.parametrize("threads", [0, 2])
def test_disk_work_goes_on_with_the_threads_that_there_are(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error at the start of a thread came back at once, while the threads before it were at work."""
    left, start = [None] * threads, Thread.start

    def scarce(thread: Thread) -> None:
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    monkeypatch.setattr(Thread, "start", scarce)
    done: list[int] = []
    side_by_side([partial(done.append, job) for job in range(40)], "working")
    assert sorted(done) == list(range(40))
