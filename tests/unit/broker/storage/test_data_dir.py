"""The data directory: lock, format, clean-stop mark, catalogue, deleted logs; and real files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita.broker.config import BrokerConfig, TopicConfig
from partita.broker.storage.data_dir import DataDirectoryError, DiskStore
from partita.broker.storage.disk_storage import DiskStorage
from partita.broker.topics.catalogue import TopicCatalogue
from partita.cli.doctor import doctor
from partita.log.log_config import Durability, LogConfig
from partita.log.storage import StorageFull
from support.log.logs import at, batch, fill, open_log, recovered, served

TOPIC = b"\x0a" * 16
SETTINGS = TopicConfig(BrokerConfig())


def test_a_directory_belongs_to_one_process(tmp_path: Path) -> None:
    """D9: the refusal names the owner; a lock file left behind is no hindrance."""
    store = DiskStore(str(tmp_path))
    with pytest.raises(DataDirectoryError, match=f"in use by process {os.getpid()}"):
        DiskStore(str(tmp_path))
    store.close()
    (tmp_path / "lock").write_text("999999\n")
    DiskStore(str(tmp_path)).close()


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    """D9: the lock dies with its process."""
    program = (
        f"from partita.broker.storage.data_dir import DiskStore; import os; DiskStore({str(tmp_path)!r}); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    DiskStore(str(tmp_path)).close()


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    """D12."""
    (tmp_path / "format").write_text("partita data directory, format 99\n")
    with pytest.raises(DataDirectoryError, match="newer Partita"):
        DiskStore(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["format"]


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(DataDirectoryError, match="neither empty nor a Partita data directory"):
        DiskStore(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_only_an_orderly_stop_is_clean(tmp_path: Path) -> None:
    """D10: the mark is gone before the first write after a start."""
    store = DiskStore(str(tmp_path))
    assert not store.unclean
    store.read_catalogue()
    store.close()
    again = DiskStore(str(tmp_path))
    assert not again.unclean
    assert not (tmp_path / "clean").exists()
    os.close(again._lock)
    assert DiskStore(str(tmp_path)).unclean


def test_a_torn_line_of_the_catalogue_is_cut_off(tmp_path: Path) -> None:
    store = DiskStore(str(tmp_path))
    for line in (b"one", b"two"):
        store.append_catalogue(line)
    store.close()
    path = tmp_path / "catalogue"
    path.write_bytes(path.read_bytes() + b"0badc0de thr")
    store = DiskStore(str(tmp_path))
    assert store.read_catalogue() == [b"one", b"two"]
    store.append_catalogue(b"three")
    assert store.read_catalogue() == [b"one", b"two", b"three"]
    store.rewrite_catalogue([b"all"])
    assert store.read_catalogue() == [b"all"]
    store.close()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_line_is_a_refusal_that_names_file_line_and_way_out(tmp_path: Path, number: int, clean: bool) -> None:
    """B5: topics after the line are not forgotten. No crash tears what was durable, and a clean stop leaves no tail."""
    store = DiskStore(str(tmp_path))
    for line in (b"one", b"two", b"three"):
        store.append_catalogue(line)
        store.sync_catalogue()
    store.close()
    if not clean:
        (tmp_path / "clean").unlink()
    path = tmp_path / "catalogue"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(b"o", b"0", 1)
    path.write_bytes(b"".join(lines))
    before = path.read_bytes()
    with pytest.raises(DataDirectoryError, match=rf"catalogue is damaged in line {number}; `partita doctor --repair"):
        DiskStore(str(tmp_path)).read_catalogue()
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_crash_may_tear_any_line_that_was_not_durable(
    tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """D2: a disk may write later sectors first; the start needs no help, and says what was cut."""
    store = DiskStore(str(tmp_path))
    store.append_catalogue(b"durable one")
    store.sync_catalogue()
    store.append_catalogue(b"two", b"three")
    store.append_catalogue(b"four")
    path = tmp_path / "catalogue"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = bytes(len(lines[number - 1]))
    path.write_bytes(b"".join(lines))
    os.close(store._lock)
    assert DiskStore(str(tmp_path)).read_catalogue() == [b"durable one", b"two", b"three"][: number - 1]
    assert [record for record in caplog.records if "bytes were cut off" in record.getMessage()]


def test_a_flipped_byte_in_the_last_line_after_a_clean_stop_is_a_refusal(tmp_path: Path) -> None:
    """B5: what an orderly stop has written whole is no torn tail."""
    store = DiskStore(str(tmp_path))
    store.append_catalogue(b"one", b"two")
    store.close()
    path = tmp_path / "catalogue"
    path.write_bytes(path.read_bytes().replace(b"two", b"twp"))
    with pytest.raises(DataDirectoryError, match="damaged in line 2"):
        DiskStore(str(tmp_path)).read_catalogue()


@pytest.mark.parametrize("content", [None, b"", b"torn"])
def test_an_empty_catalogue_beside_topic_folders_is_a_refusal(tmp_path: Path, content: bytes | None) -> None:
    """B5: it is not taken for a new directory."""
    DiskStore(str(tmp_path)).close()
    (tmp_path / "topics" / TOPIC.hex()).mkdir()
    path = tmp_path / "catalogue"
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataDirectoryError, match="but there are topic folders"):
        DiskStore(str(tmp_path)).read_catalogue()


def test_a_catalogue_without_checksums_still_loads(tmp_path: Path) -> None:
    """B5: lines of an older version are JSON alone."""
    store = DiskStore(str(tmp_path))
    store.append_catalogue(b'{"type":"cluster","id":"new"}')
    store.close()
    path = tmp_path / "catalogue"
    path.write_bytes(b'{"type":"cluster","id":"old"}\n' + path.read_bytes())
    assert len(DiskStore(str(tmp_path)).read_catalogue()) == 2


def test_a_topic_whose_line_is_lost_is_restored_from_its_folder(tmp_path: Path) -> None:
    """B5: the folder says the name, the settings, and how many partitions there are; nothing goes in silence."""
    store = DiskStore(str(tmp_path))
    catalogue = TopicCatalogue(store, BrokerConfig(), lambda: TOPIC)
    catalogue.name_cluster("c")
    kept = len((tmp_path / "catalogue").read_bytes())
    topic = catalogue.create("orders", [[1], [1]], {"retention.ms": 5000})
    fill(topic.partitions[1].log, 3)
    for chore in store.chores:
        chore()
    os.close(store._lock)
    path = tmp_path / "catalogue"
    path.write_bytes(path.read_bytes()[: kept + 20])
    again = DiskStore(str(tmp_path))
    (found,) = TopicCatalogue(again, BrokerConfig(), lambda: TOPIC)
    assert (found.name, len(found.partitions), found.config.own) == ("orders", 2, {"retention.ms": 5000})
    assert served(found.partitions[1].log) == [(i, f"v{i}") for i in range(3)]
    assert [what for what, _ in again.notices] == ["unclean start", "catalogue cut", "topic restored"]


def test_what_recovery_cuts_is_noticed_and_counted(tmp_path: Path) -> None:
    """B6."""
    store = DiskStore(str(tmp_path))
    store.append_catalogue(b'{"type":"cluster","id":"c"}')
    fill(store.open_log(TOPIC, 0, SETTINGS), 3)
    os.close(store._lock)
    (path,) = (tmp_path / "topics" / TOPIC.hex() / "0").glob("*.log")
    path.write_bytes(path.read_bytes()[:-7])
    again = DiskStore(str(tmp_path))
    log = again.open_log(TOPIC, 0, SETTINGS)
    cut = len(batch("v2")) - 7
    assert log.log_end_offset == 2
    counted = {name: count for name, count in again.counters.items() if count}
    assert counted == {"unclean_starts": 1, "logs_cut": 1, "bytes_cut": cut}
    assert [what for what, _ in again.notices] == ["unclean start", "log cut"]


def test_directories_and_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """Audit, posture: no other local user may read records."""
    root = tmp_path / "data"
    store = DiskStore(str(root))
    store.append_catalogue(b"{}")
    fill(store.open_log(TOPIC, 0, SETTINGS, description=lambda: b"{}"), 3)
    for chore in store.chores:
        chore()
    store.logs[f"topics/{TOPIC.hex()}/0"].close()
    store.close()
    found = [root, *root.rglob("*")]
    assert len(found) > 8
    assert {path.stat().st_mode & 0o777 for path in found} == {0o700, 0o600}


def test_the_logs_of_a_wide_topic_cost_the_same_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: the topic is described once, and its folder, which holds all partitions, is not read for each of them."""
    asked: list[str] = []
    described: list[int] = []

    def described_now() -> bytes:
        described.append(1)
        return b"{}"

    list_names = DiskStorage.list

    def noted(self: DiskStorage, directory: str) -> list[str]:
        asked.append(directory)
        return list_names(self, directory)

    store = DiskStore(str(tmp_path))
    monkeypatch.setattr(DiskStorage, "list", noted)
    for partition in range(10):
        assert not store.has_log(TOPIC, partition)
        store.open_log(TOPIC, partition, SETTINGS, description=described_now)
        assert store.has_log(TOPIC, partition)
    assert (len(described), asked.count(f"topics/{TOPIC.hex()}")) == (1, 1)
    for log in store.logs.values():
        log.close()
    store.close()


def test_logs_are_found_by_topic_id_and_deleted_with_their_files(tmp_path: Path) -> None:
    store = DiskStore(str(tmp_path))
    log = store.open_log(TOPIC, 3, SETTINGS)
    fill(log, 5)
    assert (tmp_path / "topics" / TOPIC.hex() / "3").is_dir()
    log.discard()
    store.delete_log(TOPIC, 3)
    for chore in store.chores:
        chore()
    assert list((tmp_path / "topics").iterdir()) == []
    store.close()


def test_a_deletion_cut_short_is_finished_by_the_next_start(tmp_path: Path) -> None:
    """D11."""
    DiskStore(str(tmp_path)).close()
    (tmp_path / "topics" / f"{TOPIC.hex()}-3.deleted").mkdir()
    store = DiskStore(str(tmp_path))
    assert list((tmp_path / "topics").iterdir()) == []
    store.close()


@pytest.mark.parametrize("went", [0, 1])
def test_data_of_a_topic_that_is_deleted_in_the_catalogue_goes_with_the_next_start(tmp_path: Path, went: int) -> None:
    """D11: the line is written first; here the process died after it, or after the first partition."""
    ids = iter([TOPIC, b"\x0b" * 16, b"\x0c" * 16])
    store = DiskStore(str(tmp_path))
    catalogue = TopicCatalogue(store, BrokerConfig(), lambda: next(ids))
    for name in ("gone", "kept"):
        for partition in catalogue.create(name, [[1], [1]]).partitions:
            fill(partition.log, 1)
    delete_log = store.delete_log

    def crash(topic_id: bytes, partition: int) -> None:
        if partition == went:
            raise InterruptedError
        delete_log(topic_id, partition)

    store.delete_log = crash  # type: ignore[method-assign]  # the test steps in between
    with pytest.raises(InterruptedError):
        catalogue.delete([catalogue.by_name["gone"]])
    os.close(store._lock)
    again = DiskStore(str(tmp_path))
    (topic,) = TopicCatalogue(again, BrokerConfig(), lambda: next(ids))
    for chore in again.chores:
        chore()
    assert [path.name for path in (tmp_path / "topics").iterdir()] == [topic.topic_id.hex()]
    assert len(served(topic.partitions[1].log)) == 1


def test_logs_on_disk_survive_a_clean_stop_and_a_kill(tmp_path: Path) -> None:
    """D1, D10."""
    config = LogConfig(segment_bytes=500)
    log = open_log(DiskStorage(str(tmp_path)), config)
    fill(log, 20)
    killed = open_log(DiskStorage(str(tmp_path)), config, was_clean=False)
    assert served(killed) == [(i, f"v{i}") for i in range(20)]
    killed.close()
    clean = open_log(DiskStorage(str(tmp_path)), config)
    assert clean.report.segments_checked == 0
    assert served(clean) == [(i, f"v{i}") for i in range(20)]


def test_views_outlive_everything_that_happens_to_the_file(tmp_path: Path) -> None:
    storage = DiskStorage(str(tmp_path))
    log = open_log(storage, LogConfig())
    log.append(batch("x" * 200_000), 0, at(0))
    log.append(batch("y" * 200_000), 0, at(0))
    view = log.read(0, 1 << 20)
    before = bytes(view)
    log.truncate_to(1)
    assert log.append(batch("z"), 0, at(0)).base_offset == 1
    log.close()
    storage.remove_dir("topics")
    assert view == before


def test_an_append_of_more_chunks_than_the_kernel_takes_at_once(tmp_path: Path) -> None:
    file = DiskStorage(str(tmp_path)).open("many", create=True)
    chunks = [b"%04d" % number for number in range(5000)]
    file.append(chunks)
    assert bytes(file.read_at(0, file.size())) == b"".join(chunks)


def test_a_disk_below_its_reserve_refuses_appends_and_serves_reads(tmp_path: Path) -> None:
    """D8."""
    storage = DiskStorage(str(tmp_path), reserve_bytes=1 << 60)
    log = open_log(storage, LogConfig())
    with pytest.raises(StorageFull):
        log.append(batch("a"), 0, at(0))
    assert (log.failure, log.log_end_offset) == (None, 0)


def test_under_sync_a_kill_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """D1 with a real process, real files, and SIGKILL."""
    program = f"""
import os, signal
from support.log.logs import at, batch, open_log
from partita.broker.storage.disk_storage import DiskStorage
from partita.broker.topics.catalogue import TopicCatalogue
from partita.cli.doctor import doctor
from partita.log.log_config import Durability
log = open_log(DiskStorage({str(tmp_path)!r}), durability=Durability.SYNC)
for i in range(30):
    log.append(batch(f"v{{i}}"), 0, at(i))
    log.flush(at(i))
    print(i, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    here = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": here},
    )
    acknowledged = len(done.stdout.split())
    assert acknowledged == 30, done.stderr
    log = recovered(DiskStorage(str(tmp_path)), durability=Durability.SYNC)
    assert served(log) == [(i, f"v{i}") for i in range(30)]


def test_doctor_rebuilds_the_catalogue_and_says_what_it_did(tmp_path: Path) -> None:
    """B5: good lines first, then what the folders say; offsets, settings and epochs are kept, ids not given again."""
    ids = iter([TOPIC, b"\x0b" * 16, b"\x0c" * 16])
    store = DiskStore(str(tmp_path))
    catalogue = TopicCatalogue(store, BrokerConfig(), lambda: next(ids))
    catalogue.name_cluster("c")
    last_id = catalogue.allocate_producer_id()
    for name in ("orders", "idle", "gone"):
        topic = catalogue.create(name, [[1]], {"retention.ms": 5000})
        if name != "idle":
            fill(topic.partitions[0].log, 3, leader_epoch=4)
    catalogue.delete([catalogue.by_name["gone"]])
    for chore in store.chores:
        chore()
    catalogue.close()
    path = tmp_path / "catalogue"
    path.write_bytes(path.read_bytes().replace(b"orders", b"0rders"))
    done = CliRunner().invoke(doctor, ["--repair", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "line 4 is damaged and was left out" in done.output
    assert "topic orders was restored from its folder" in done.output
    assert b"0rders" in (tmp_path / "catalogue.damaged").read_bytes()
    again = TopicCatalogue(DiskStore(str(tmp_path)), BrokerConfig(), lambda: next(ids))
    assert sorted(again.by_name) == ["idle", "orders"]
    found = again.by_name["orders"]
    assert (found.config.own, found.partitions[0].leader_epoch) == ({"retention.ms": 5000}, 5)
    assert len(served(found.partitions[0].log)) == 3
    assert again.cluster_id == "c"
    assert again.allocate_producer_id() > last_id


def test_doctor_leaves_a_good_catalogue_and_a_used_directory_alone(tmp_path: Path) -> None:
    store = DiskStore(str(tmp_path))
    store.append_catalogue(b'{"type":"cluster","id":"c"}')
    in_use = CliRunner().invoke(doctor, ["--repair", str(tmp_path)])
    assert (in_use.exit_code, "in use by process" in in_use.output) == (2, True)
    store.close()
    before = (tmp_path / "catalogue").read_bytes()
    done = CliRunner().invoke(doctor, ["--repair", str(tmp_path)])
    assert (done.exit_code, done.output) == (0, "the catalogue is in order\n")
    assert (tmp_path / "catalogue").read_bytes() == before


def test_doctor_keeps_data_whose_topic_nobody_knows(tmp_path: Path) -> None:
    """B5: an empty catalogue, and a folder that does not say its name."""
    store = DiskStore(str(tmp_path))
    fill(store.open_log(TOPIC, 1, SETTINGS), 3)
    for chore in store.chores:
        chore()
    store.close()
    done = CliRunner().invoke(doctor, ["--repair", str(tmp_path), "--json"])
    assert "does not say its name" in done.output
    again = TopicCatalogue(DiskStore(str(tmp_path)), BrokerConfig(), lambda: TOPIC)
    (topic,) = again
    assert (topic.name, len(topic.partitions)) == (f"recovered-{TOPIC.hex()}", 2)
    assert len(served(topic.partitions[1].log)) == 3
