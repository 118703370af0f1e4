"""Copies of a data directory, of a stopped and of a running broker: every record and every commit is counted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer, Producer
from partita.broker.storage import backup as backup_module
from partita.broker.storage.backup import back_up
from partita.broker.storage.data_dir import DataDirectoryError
from partita.cli.main import cli


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
        ends, sent, stop = threading.Event(), [1000], threading.Event()

        def work() -> None:
            with (
                Producer(bootstrap_servers=broker.bootstrap) as producer,
                Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer,
            ):
                consumer.commit({("t", 0): 1000})
                ends.set()
                while not stop.is_set():
                    producer.send("t", str(sent[0]).encode()).result(10)
                    sent[0] += 1
                    consumer.commit({("t", 0): sent[0]})

        worker = threading.Thread(target=work)
        worker.start()
        assert ends.wait(20)
        copies = []
        for number in range(3):
            before = sent[0]
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


def test_a_partition_whose_sealed_files_change_is_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As compaction does: a segment is replaced by one that holds the next one's records, too."""
    folder = tmp_path / "d" / "topics" / ("0" * 32) / "0"
    folder.mkdir(parents=True)
    (tmp_path / "d" / "format").write_text("x")
    (tmp_path / "d" / "catalogue").write_text("")
    (folder.parent / "topic").write_text("")
    names = [f"{number:020}.log" for number in (0, 5, 9)]
    for name in names:
        (folder / name).write_text(f"old {name}")
    kept, copies = backup_module._copy, []

    def copy_and_compact(source: Path, target: Path) -> int:
        size = kept(source, target)
        copies.append(source.name)
        if copies.count(names[0]) == 1 and source.name == names[0]:
            (folder / "new").write_text("compacted")
            (folder / "new").rename(folder / names[0])
            (folder / names[1]).unlink()
        return size

    monkeypatch.setattr(backup_module, "_copy", copy_and_compact)
    back_up(tmp_path / "d", tmp_path / "copy")
    copied = tmp_path / "copy" / "topics" / ("0" * 32) / "0"
    assert {path.name: path.read_text() for path in copied.iterdir()} == {
        names[0]: "compacted", names[2]: f"old {names[2]}",
    }  # fmt: skip

    def always_changes(source: Path, target: Path) -> int:
        size = kept(source, target)
        if source.name == names[0]:
            (folder / "new").write_text("x")
            (folder / "new").rename(folder / names[0])
        return size

    monkeypatch.setattr(backup_module, "_copy", always_changes)
    with pytest.raises(DataDirectoryError, match="changes faster than it is copied"):
        back_up(tmp_path / "d", tmp_path / "other")


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
