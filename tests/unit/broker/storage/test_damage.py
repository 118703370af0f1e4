"""Every file of a data directory damaged in every way, after a clean stop and after a kill (issue 9.2, finding B5).

The broker starts with everything that was acknowledged, or says what is missing, or refuses with one line that names
the file and the way out. It never serves what nobody wrote, and never forgets in silence.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from partita import Broker, Consumer
from partita.broker.launch import StartError
from partita.broker.options import Value
from partita.broker.storage.data_dir import repair
from partita.log.partition_log import PartitionLog
from partita.log.storage import StorageError
from partita.records.batch import InvalidBatch, iter_batches, iter_records
from support.broker.raw import Raw
from support.log.logs import at, pairs, text

RECORDS, COMMITTED, PRODUCED_IDS = 12, 7, 3
SETTINGS: dict[str, Value] = {"internal.segment.bytes": 300, "index.interval.bytes": 100, "retention.ms": -1}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a clean stop leaves, and what a kill leaves: no mark, and nothing that only a stop writes."""
    clean = tmp_path_factory.mktemp("images") / "clean"
    with Broker(data_dir=str(clean), offsets_topic_num_partitions=1) as broker, Raw(broker.port) as raw:
        topic = broker.run(partial(broker.cluster.create_topic, "t", 1, 1, SETTINGS))
        log = topic.partitions[0].log
        for i in range(RECORDS):
            broker.run(partial(log.append, pairs(("k", f"v{i}"), ms=i), 0, at(i)))
        raw.find("g")
        while raw.commit("g", COMMITTED):
            pass
        for _ in range(PRODUCED_IDS):
            broker.run(broker.cluster.catalogue.allocate_producer_id)
        broker.call(everything_durable(broker))
    killed = clean.with_name("killed")
    shutil.copytree(clean, killed)
    for path in [killed / "clean", killed / "handover", killed / "ends", *last_of(killed, "*.index")]:
        path.unlink(missing_ok=True)
    return {"clean": clean, "killed": killed}


async def everything_durable(broker: Broker) -> None:
    waiting = broker.running.upkeep.durable()
    if waiting is not None:
        await waiting


def folders(root: Path) -> dict[str, Path]:
    """The partition folders of t and of the group log."""
    found = {}
    for path in (root / "topics").iterdir():
        name = "t" if b'"name":"t"' in (path / "topic").read_bytes() else "group"
        found[name] = path / "0"
    return found


def last_of(root: Path, pattern: str) -> list[Path]:
    return [max(folder.glob(pattern)) for folder in folders(root).values()]


FILES: dict[str, Callable[[Path], Path]] = {
    "format": lambda root: root / "format",
    "lock": lambda root: root / "lock",
    "clean": lambda root: root / "clean",
    "handover": lambda root: root / "handover",
    "ends": lambda root: root / "ends",
    "catalogue": lambda root: root / "catalogue",
    "description": lambda root: folders(root)["t"].parent / "topic",
    "first segment": lambda root: min(folders(root)["t"].glob("*.log")),
    "middle segment": lambda root: sorted(folders(root)["t"].glob("*.log"))[1],
    "last segment": lambda root: max(folders(root)["t"].glob("*.log")),
    "index": lambda root: min(folders(root)["t"].glob("*.index")),
    "snapshot of producers": lambda root: max(folders(root)["t"].glob("*.producers")),
    "partition state": lambda root: folders(root)["t"] / "partition.state",
    "group log": lambda root: max(folders(root)["group"].glob("*.log")),
    "group state": lambda root: folders(root)["group"] / "partition.state",
}


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3 - 1])


def flip(path: Path, where: float) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[min(len(content) - 1, int(len(content) * where))] ^= 0x10
    path.write_bytes(content)


def append_garbage(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"garbage\n\0\xff" * 20)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


def point_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere") / "at all")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "empty": lambda path: write(path, b""),
    "cut": cut,
    "flipped at the start": lambda path: flip(path, 0),
    "flipped in the middle": lambda path: flip(path, 0.5),
    "flipped at the end": lambda path: flip(path, 1),
    "garbage appended": append_garbage,
    "zeros": lambda path: write(path, bytes(path.stat().st_size)),
    "a folder": replace_by_folder,
    "a link to nowhere": point_nowhere,
    "forbidden": lambda path: None,
}


def forbid(patch: pytest.MonkeyPatch, path: Path) -> None:
    """Nobody may open the file; root may everywhere, so the system's answer is given in its place."""
    real, doomed = os.open, str(path)

    def refuse(name: str, *rest: object, **options: object) -> int:
        if str(name) == doomed:
            raise PermissionError(13, "Permission denied", doomed)
        return real(name, *rest, **options)  # type: ignore[arg-type]  # as they came

    patch.setattr(os, "open", refuse)


def outcome(root: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Start, read everything, and say how it went; fails when something is forgotten in silence, or made up."""
    caplog.clear()
    try:
        broker = Broker(data_dir=str(root), offsets_topic_num_partitions=1, partita_log_failure="offline")
        broker.start()
    except StartError as error:
        return f"refused: {error}"
    try:
        missing = what_is_missing(broker)
    finally:
        broker.stop()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert not [record for record in caplog.records if record.exc_info], "no traceback"
    if missing:
        assert [line for line in said if "was not closed in order" not in line], f"{missing}, in silence"
    return f"started, {', '.join(missing) or 'everything is there'}; {' | '.join(said)}"


def what_is_missing(broker: Broker) -> list[str]:
    catalogue = broker.cluster.catalogue
    topic = catalogue.get("t")
    missing = []
    if topic is None:
        missing.append("topic t")
    else:
        try:
            log = broker.run(lambda: topic.partitions[0].log)
            found = dict(broker.run(partial(readable, log)))
        except StorageError:
            found = {}
        assert all(value == f"v{offset}" for offset, value in found.items()), "never anything that nobody wrote"
        if len(found) < RECORDS:
            missing.append(f"{RECORDS - len(found)} records")
    with Raw(broker.port) as raw:
        raw.find("g")
        while (committed := raw.committed("g")) == -14:
            pass
    if committed != COMMITTED:
        missing.append(f"the commit ({committed})")
    with contextlib.suppress(StorageError):
        assert broker.run(catalogue.allocate_producer_id) >= PRODUCED_IDS
    return missing


def readable(log: PartitionLog) -> list[tuple[int, str | None]]:
    """What is served, record by record, wherever a reader begins; damaged batches are passed over."""
    found: list[tuple[int, str | None]] = []
    for offset in range(log.log_start_offset, log.log_end_offset):
        with contextlib.suppress(InvalidBatch, StorageError):
            for _, batch in iter_batches(log.read(offset, 1)):
                found += [(r.offset, text(r.value)) for r in iter_records(batch) if r.offset == offset]
    return found


@pytest.mark.parametrize("stopped", ["clean", "killed"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_repaired_told_or_refused(
    images: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    file: str,
    damage: str,
    stopped: str,
) -> None:
    """B5, D2, D9, D10, D12."""
    root = tmp_path / "data"
    shutil.copytree(images[stopped], root, symlinks=True)
    path = FILES[file](root)
    if not path.exists():
        path.write_bytes(b"left over\n")
    DAMAGES[damage](path)
    if damage == "forbidden":
        forbid(monkeypatch, path)
    found = outcome(root, caplog)
    print(f"{file}, {damage}, {stopped}: {found}".replace(str(tmp_path), ""))
    if found.startswith("refused"):
        assert "\n" not in found
        assert str(path) in found or path.name in found
        monkeypatch.undo()
        if "--repair" in found:
            assert repair(str(root))
            assert outcome(root, caplog).startswith("started")


def remove_partition(folder: Path) -> None:
    shutil.rmtree(folder)


def remove_topic(folder: Path) -> None:
    shutil.rmtree(folder.parent)


def remove_last_segment(folder: Path) -> None:
    for path in folder.glob(f"{max(folder.glob('*.log')).stem}*"):
        path.unlink()


def empty_last_segment(folder: Path) -> None:
    write(max(folder.glob("*.log")), b"")


def remove_last_segment_and_snapshots(folder: Path) -> None:
    remove_last_segment(folder)
    for path in folder.glob("*.producers"):
        path.unlink()


@pytest.mark.parametrize("is_killed_later", [False, True])
@pytest.mark.parametrize(
    "damage",
    [remove_partition, remove_topic, remove_last_segment, empty_last_segment, remove_last_segment_and_snapshots],
)
def test_what_is_missing_of_a_log_since_an_orderly_stop_is_told_and_counted(
    images: dict[str, Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
    is_killed_later: bool,
) -> None:
    """Issue 26.9: a backup restored by half does not look whole. Offsets that were given are not given again."""
    root = tmp_path / "data"
    shutil.copytree(images["clean"], root)
    damage(folders(root)["t"])
    if is_killed_later:
        (root / "clean").unlink()
    caplog.clear()
    with Broker(data_dir=str(root), offsets_topic_num_partitions=1) as broker:
        broker.call(broker.running.upkeep.open_all())
        topic = broker.cluster.catalogue.by_name["t"]
        assert not topic.partitions[0].is_untouched
        assert broker.run(lambda: topic.partitions[0].log.log_end_offset) == RECORDS
        assert broker.metrics()["kafka_partita_Store_offsets_missing"] > 0
    assert f"to {RECORDS - 1}" in caplog.text
    with Broker(data_dir=str(root), offsets_topic_num_partitions=1) as broker:
        assert broker.run(lambda: broker.cluster.catalogue.by_name["t"].partitions[0].log.log_end_offset) == RECORDS


@pytest.mark.parametrize("damage", [remove_last_segment, empty_last_segment, remove_last_segment_and_snapshots])
def test_a_reader_to_the_end_passes_a_gap_at_the_end(
    images: dict[str, Path], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """It was given nothing inside the gap, and waited for a record although the high watermark lay behind it."""
    root = tmp_path / "data"
    shutil.copytree(images["clean"], root)
    damage(folders(root)["t"])
    for _ in range(2):
        with (
            Broker(data_dir=str(root), offsets_topic_num_partitions=1) as broker,
            Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign([("t", 0)])
            found = [record.offset for record in consumer.until_end()]
            assert found == list(range(len(found)))
            assert len(found) < consumer.position(("t", 0)) == RECORDS


def test_a_directory_of_an_older_version_has_no_ends_and_starts(images: dict[str, Path], tmp_path: Path) -> None:
    """Issue 26.9: the mark of a stop without ends is as good as before."""
    root = tmp_path / "data"
    shutil.copytree(images["clean"], root)
    (root / "ends").unlink()
    with Broker(data_dir=str(root), offsets_topic_num_partitions=1) as broker:
        assert not what_is_missing(broker)
        assert broker.metrics()["kafka_partita_Store_unclean_starts"] == 0
