"""Commits that a power loss left beyond the ends of their logs (finding B11, faults.md D4, BM-169)."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from partita import Broker
from partita.broker.groups.lost_tails import AHEAD
from partita.broker.groups.runner import ShardRunner
from partita.group.contract import Handover
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import iter_batches, iter_records
from support.broker.raw import Raw
from support.log.logs import batch

PRODUCED, LEFT = 10, 6


def produce(raw: Raw, count: int, topic: str = "t") -> None:
    for i in range(count):
        data = [PartitionProduceData(index=0, records=batch(f"v{i}"))]
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        assert raw.ask(request, 8).responses[0].partition_responses[0].error_code == 0


def lose_tail(root: Path, topic_id: bytes, kept: int) -> None:
    """Leave `kept` records of one partition, as if the rest had never reached the disk."""
    folder = root / "topics" / topic_id.hex() / "0"
    size = len(batch("v0"))
    for file in folder.iterdir():
        if file.suffix != ".log":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: kept * size])


def committed_then_crashed(root: Path, commits: dict[str, int], *, kept: int) -> Path:
    """What the disk holds after a crash: `PRODUCED` records were written, `kept` of them survived, all commits did."""
    with Broker(data_dir=str(root)) as broker, Raw(broker.port) as raw:
        topic = broker.run(lambda: broker.cluster.create_topic("t", 1, 1))
        produce(raw, PRODUCED)
        raw.find("g")
        for group_id, offset in commits.items():
            assert raw.commit(group_id, offset) == 0
    for name in ("clean", "ends"):
        (root / name).unlink()
    if kept < PRODUCED:
        lose_tail(root, topic.topic_id, kept)
    return root


def test_a_commit_whose_records_are_lost_becomes_the_end_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B11, D4: the group reads what takes the lost offsets; a note, a counter and one line say so."""
    image = committed_then_crashed(tmp_path, {"g": PRODUCED, "behind": 4, "exact": LEFT}, kept=LEFT)
    with caplog.at_level(logging.WARNING), Broker(data_dir=str(image)) as broker, Raw(broker.port) as raw:
        assert [raw.committed(group) for group in ("g", "behind", "exact")] == [LEFT, 4, LEFT]
        (note,) = [note for note in broker.notes() if note.get("note") == "OffsetClamped"]
        assert (note["group_id"], note["topic"], note["partition"]) == ("g", "t", 0)
        assert (note["committed_offset"], note["log_end_offset"]) == (PRODUCED, LEFT)
        assert broker.cluster.store.counters["offsets_clamped"] == 1
    assert len([r for r in caplog.records if "committed offsets of shard" in r.getMessage()]) == 1
    with Broker(data_dir=str(image)) as broker, Raw(broker.port) as raw:
        assert raw.committed("g") == LEFT
        assert broker.cluster.store.counters["offsets_clamped"] == 0


def test_records_that_come_before_the_shard_is_loaded_do_not_hide_the_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B11: what counts is where the log ended at the start, not where it ends when the shard looks."""
    image = committed_then_crashed(tmp_path, {"g": PRODUCED}, kept=LEFT)
    load = ShardRunner.load
    delayed: list[tuple[ShardRunner, Handover | None]] = []

    def later(runner: ShardRunner, handover: Handover | None) -> None:
        delayed.append((runner, handover))

    monkeypatch.setattr(ShardRunner, "load", later)
    with Broker(data_dir=str(image)) as broker, Raw(broker.port) as raw:
        produce(raw, PRODUCED)
        broker.run(lambda: [load(runner, handover) for runner, handover in delayed])
        while (found := raw.committed("g")) < 0:
            assert found == -14
        assert found == LEFT


def test_a_commit_that_was_meant_to_be_beyond_the_end_stays(tmp_path: Path) -> None:
    """B11: marked with a header when it is written, whatever is lost later; compaction keeps the header."""
    image = committed_then_crashed(tmp_path, {"far": 50, "next": PRODUCED + 1, "g": PRODUCED}, kept=LEFT)
    with Broker(data_dir=str(image)) as broker, Raw(broker.port) as raw:
        assert [raw.committed(group) for group in ("far", "next", "g")] == [50, PRODUCED + 1, LEFT]
        offsets = broker.cluster.catalogue.by_name["__consumer_offsets"]
        logs = [partition.log for partition in offsets.partitions if not partition.is_untouched]
        for each in logs:
            broker.run(partial(each.roll, broker.cluster.clock.now()))
        assert broker.call(broker.running.upkeep.compact_now(force=True)) > 0
        batches = [whole for each in logs for _, whole in iter_batches(each.read(0, 1 << 20))]
        marked = [record for whole in batches for record in iter_records(whole) if (AHEAD, b"") in record.headers]
        assert len(marked) == 2


def test_after_a_kill_that_lost_nothing_every_commit_is_as_it_was(tmp_path: Path) -> None:
    """D1: an unclean start alone changes no commit."""
    image = committed_then_crashed(tmp_path, {"g": PRODUCED, "far": 50}, kept=PRODUCED)
    with Broker(data_dir=str(image)) as broker, Raw(broker.port) as raw:
        assert [raw.committed("g"), raw.committed("far")] == [PRODUCED, 50]
        assert broker.cluster.store.counters["offsets_clamped"] == 0
        assert not [note for note in broker.notes() if note.get("note") == "OffsetClamped"]
