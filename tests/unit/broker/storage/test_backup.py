"""Copies of a data directory, of a stopped and of a running broker: every record and every commit is counted."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer, GroupMetadata, Producer
from partita.broker.options import Value
from partita.broker.storage import cut, upkeep
from partita.broker.storage.backup import back_up
from partita.broker.storage.data_dir import DataDirectoryError
from partita.cli.commands import cli
from support.clients.broker import until


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker looks every 20 ms, not every second, whether a copy is asked for."""
    monkeypatch.setattr(upkeep, "CHECK_SECONDS", 0.02)


def values(broker: Broker, partition: int = 0) -> list[int]:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", partition)])
        (end,) = consumer.end_offsets([("t", partition)]).values()
        found: list[int] = []
        while len(found) < end:
            found += [int(record.value) for record in consumer.poll(1)]
        return found


def test_a_copy_of_a_stopped_broker_is_the_same(tmp_path: Path) -> None:
    source, target = tmp_path / "d", tmp_path / "copy"
    with Broker(data_dir=str(source)) as broker:
        broker.produce("t", *map(str, range(100)))
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            consumer.commit({("t", 0): 42})
    copied = back_up(source, target)
    assert (copied.topics, copied.partitions, copied.is_clean) == (2, 2, True)
    names = {path.relative_to(source) for path in source.rglob("*")} - {Path("lock")}
    assert {path.relative_to(target) for path in target.rglob("*")} == names
    assert all((path.stat().st_mode & 0o077) == 0 for path in target.rglob("*"))
    with Broker(data_dir=str(target)) as broker:
        assert values(broker) == list(range(100))
        assert broker.committed("g") == {("t", 0): 42}
        assert broker.metrics()["kafka_partita_Store_unclean_starts"] == 0


def test_a_copy_of_a_running_broker_holds_all_that_was_acknowledged_before_it_began(tmp_path: Path) -> None:
    """Segments roll while they are copied; offsets are committed meanwhile."""
    with Broker(data_dir=str(tmp_path / "d"), offsets_topic_segment_bytes=4_000) as broker:
        broker.run(lambda: broker.cluster.create_topic("t", 1, 1, {"segment.bytes": 4_000}))
        broker.produce("t", *map(str, range(1000)))
        ends, sent, done, stop = threading.Event(), [1000], [1000], threading.Event()

        def work() -> None:
            with (
                Producer(bootstrap_servers=broker.bootstrap) as producer,
                Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer,
            ):
                consumer.commit({("t", 0): 1000})
                ends.set()
                while not stop.is_set():
                    producer.send("t", str(sent[0]).encode()).result(60)
                    sent[0] += 1
                    consumer.commit({("t", 0): sent[0]})
                    done[0] = sent[0]

        worker = threading.Thread(target=work)
        worker.start()
        assert ends.wait(60)
        copies = []
        for number in range(3):
            before = done[0]
            copied = back_up(tmp_path / "d", tmp_path / f"copy-{number}")
            assert not copied.is_clean
            copies.append((number, before, sent[0]))
        stop.set()
        worker.join()
    for number, before, after in copies:
        with Broker(data_dir=str(tmp_path / f"copy-{number}")) as restored:
            found = values(restored)
            assert found == list(range(len(found))), "nothing is missing in the middle"
            assert before <= len(found) <= after + 1
            committed = restored.committed("g")["t", 0]
            assert before <= committed <= len(found), "no commit lies behind the end"
            assert restored.metrics()["kafka_partita_Store_offsets_missing"] == 0


def are_decided(broker: Broker, partitions: list[tuple[str, int]]) -> bool:
    logs = [broker.run(partial(broker.cluster.catalogue.partition, *partition)) for partition in partitions]
    return all(found is not None and found.log.last_stable_offset == found.log.high_watermark for found in logs)


def has_committed(broker: Broker, offsets: dict[tuple[str, int], int]) -> bool:
    return broker.committed("g") == offsets


def committed_in(broker: Broker, partitions: list[tuple[str, int]]) -> list[set[int]]:
    """What a reader of committed records sees of each partition."""
    found: dict[tuple[str, int], set[int]] = {partition: set() for partition in partitions}
    with Consumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for record in consumer.poll(1):
                found[record.topic, record.partition].add(int(record.value))
    return list(found.values())


def test_a_copy_of_a_running_broker_shows_no_half_of_a_transaction(tmp_path: Path) -> None:
    """Each transaction writes its number to every partition and commits it as an offset."""
    written = [(topic, index) for topic in ("t", "u") for index in range(6)]
    with Broker(data_dir=str(tmp_path / "d")) as broker:
        for topic in ("t", "u"):
            broker.run(partial(broker.cluster.create_topic, topic, 6, 1))
        begun, stop, done = threading.Event(), threading.Event(), [0]

        def work() -> None:
            with Producer(bootstrap_servers=broker.bootstrap, transactional_id="steady") as producer:
                producer.init_transactions()
                while not stop.is_set():
                    with producer.transaction():
                        for topic, partition in written:
                            producer.send(topic, str(done[0]).encode(), partition=partition)
                        producer.send_offsets_to_transaction({("u", 0): done[0] + 1}, GroupMetadata("g"))
                    done[0] += 1
                    begun.set()

        worker = threading.Thread(target=work)
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id="open") as slow:
            slow.init_transactions()
            slow.begin_transaction()
            slow.send("t", b"-1", partition=3).result(60)
            worker.start()
            assert begun.wait(60)
            copies = []
            for number in range(2):
                before = done[0]
                back_up(tmp_path / "d", tmp_path / f"copy-{number}")
                copies.append((tmp_path / f"copy-{number}", before, done[0]))
            slow.abort_transaction()
        stop.set()
        worker.join()
    for folder, before, after in copies:
        with Broker(data_dir=str(folder)) as restored:
            until(partial(are_decided, restored, written), "what was open when the copy was made is aborted")
            found = committed_in(restored, written)
            assert before <= len(found[0]) <= after + 1, "all that were acknowledged before the copy began are in it"
            assert all(values == set(range(len(found[0]))) for values in found), "the same ones in every partition"
            offsets = {("u", 0): len(found[0])}
            until(partial(has_committed, restored, offsets), "the offsets of the last transaction are committed, too")
            aborted = {note["transactional_id"] for note in restored.notes() if note.get("by") == "restore"}
            assert "open" in aborted


def test_nothing_is_compacted_or_deleted_while_a_copy_is_made(tmp_path: Path) -> None:
    """What follows the cut would take keys away that the copy has no later value of."""
    with Broker(data_dir=str(tmp_path / "d")) as broker:
        settings: dict[str, Value] = {
            "cleanup.policy": ("compact", "delete"),
            "retention.bytes": 1,
            "segment.bytes": 100,
        }
        topic = broker.run(partial(broker.cluster.create_topic, "t", 1, 1, settings))
        for value in ("old", "new"):
            broker.produce("t", value, key="k")
        log, keep = topic.partitions[0].log, broker.running.upkeep
        with cut.held_cut(tmp_path / "d", "of this test") as found:
            (end,) = (end for folder, end in found.cut.ends.items() if folder == log.directory)
            assert end == (log.segments[-1].base_offset, log.segments[-1].size, 2)
            assert broker.call(keep.compact_now(force=True)) == broker.run(keep.retain_now) == 0
            with pytest.raises(DataDirectoryError, match="another copy of it is being made"):
                back_up(tmp_path / "d", tmp_path / "other")
        until(lambda: broker.run(keep.retain_now) > 0, "old segments are deleted again")
        assert not {cut.ASKED, cut.ANSWERED} & {path.name for path in (tmp_path / "d").iterdir()}


def test_a_copy_that_hangs_is_given_up_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It kept compaction and retention from going on for ever, and the disk filled up without a word."""
    with Broker(data_dir=str(tmp_path / "d")) as broker, caplog.at_level(logging.INFO, "partita.broker"):
        topic = broker.run(
            partial(broker.cluster.create_topic, "t", 1, 1, {"retention.bytes": 1, "segment.bytes": 100})
        )
        for value in ("old", "new"):
            broker.produce("t", value, key="k")
        log, keep = topic.partitions[0].log, broker.running.upkeep
        with cut.held_cut(tmp_path / "d", "of this test") as found:
            for _ in range(3):
                broker.control.advance_clock(cut.STALLED_MS // 2)
                found.go_on()
                broker.run(keep._cuts().look)
            assert broker.run(keep.retain_now) == 0, "it goes on"
            broker.control.advance_clock(cut.STALLED_MS)
            broker.run(keep._cuts().look)
            assert broker.run(keep.retain_now) > 0
            with pytest.raises(cut.NoCut, match="copy it again"):
                found.go_on()
        broker.run(keep._cuts().look)
        with cut.held_cut(tmp_path / "d", "of this test") as again:
            assert again.cut.ends[log.directory].log_end_offset == 2
            again.go_on()
    told = [record.getMessage() for record in caplog.records if "copy of" in record.getMessage()]
    kinds = ("is being made:", "is given up", "compaction and retention go on")
    assert [kind for line in told for kind in kinds if kind in line][:4] == [*kinds, "is being made:"]


def test_a_copy_that_died_holds_nothing_up(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "d")) as broker:
        (tmp_path / "d" / cut.ASKED).write_text("0123456789abcdef")
        broker.produce("t", "x")
        assert back_up(tmp_path / "d", tmp_path / "copy").partitions == 1


def test_a_broker_that_looks_just_now_is_no_other_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(data_dir=str(tmp_path / "d")) as broker, (tmp_path / "d" / cut.ASKED).open("w") as looking:
        broker.produce("t", "x")
        fcntl.flock(looking, fcntl.LOCK_SH)

        def goes(seconds: float) -> None:
            fcntl.flock(looking, fcntl.LOCK_UN)
            time.sleep(seconds)

        monkeypatch.setattr(cut, "time", SimpleNamespace(sleep=goes, monotonic=time.monotonic))
        assert back_up(tmp_path / "d", tmp_path / "copy").partitions == 1


def test_a_broker_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(upkeep, "CHECK_SECONDS", 60.0)
    with (
        Broker(data_dir=str(tmp_path / "d")),
        pytest.raises(DataDirectoryError, match=f"the broker, process {os.getpid()}, did not say"),
    ):
        back_up(tmp_path / "d", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_what_cannot_be_copied_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(DataDirectoryError, match="is no data directory"):
        back_up(tmp_path / "d", tmp_path / "copy")
    with Broker(data_dir=str(tmp_path / "d")):
        pass
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(DataDirectoryError, match="exists and is not empty"):
        back_up(tmp_path / "d", tmp_path / "full")
    with pytest.raises(DataDirectoryError, match="the copy is not complete"):
        back_up(tmp_path / "d", tmp_path / "full" / "x" / "y")


def test_the_command_says_what_it_copied(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "d")) as broker:
        broker.produce("t", "x")
        words = ["backup", str(tmp_path / "d"), str(tmp_path / "copy")]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
        assert "of a running broker: the next start checks the logs" in done.output
    refused = CliRunner().invoke(cli, words)
    assert refused.exit_code == 1
    assert "exists and is not empty" in refused.output
    assert '"clean": true' in CliRunner().invoke(cli, [*words[:2], str(tmp_path / "other"), "--json"]).output
