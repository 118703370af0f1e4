"""Small logs for tests: batches of numbered records, and everything a log serves."""

from __future__ import annotations

from partita.log.compaction import CompactionPlan, swap_group
from partita.log.log_config import Durability, LogConfig
from partita.log.partition_log import PartitionLog
from partita.log.storage import MemoryStorage, Storage
from partita.now import Now
from partita.records.batch import build_batch, iter_batches, iter_records

DIRECTORY = "topics/0a/0"
SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def at(ms: int) -> Now:
    return Now(ms, 1_700_000_000_000 + ms)


def batch(*values: str, key: str | None = None, ms: int = 0, **fields: object) -> bytes:
    """A batch with these values, one record each, all with the same key and timestamp."""
    k = None if key is None else key.encode()
    return build_batch([(at(ms).wall_ms, k, value.encode(), ()) for value in values], **fields)  # type: ignore[arg-type]  # fields by name, passed on


def pairs(*records: tuple[str, str | None], ms: int = 0, **fields: object) -> bytes:
    """A batch of (key, value); a value of None is a tombstone."""
    encoded = [(at(ms).wall_ms, k.encode(), None if v is None else v.encode(), ()) for k, v in records]
    return build_batch(encoded, **fields)  # type: ignore[arg-type]  # fields by name, passed on


def open_log(
    storage: Storage | None = None,
    config: LogConfig = SMALL,
    durability: Durability = Durability.OS,
    *,
    wall_ms: int = at(0).wall_ms,
    **options: object,
) -> PartitionLog:
    """Open the log; what is recovered counts as appended at `wall_ms`, when the records of `batch` were made."""
    return PartitionLog.open(
        storage or MemoryStorage(),
        DIRECTORY,
        config,
        durability=durability,
        wall_ms=wall_ms,
        **options,  # type: ignore[arg-type]  # fields by name, passed on
    )


def text(value: object) -> str:
    """The text of a key or value that is there."""
    assert isinstance(value, bytes)
    return value.decode()


def recovered(storage: Storage, config: LogConfig = SMALL, durability: Durability = Durability.OS) -> PartitionLog:
    """The log after a crash, with what recovery changed made durable."""
    log = open_log(storage, config, durability, was_clean=False)
    log.flush(at(0))
    return log


def fill(log: PartitionLog, count: int, *, start: int = 0, leader_epoch: int = 0) -> None:
    """Append one-record batches with the values v<start>, v<start+1>, ..."""
    for i in range(start, start + count):
        log.append(batch(f"v{i}", ms=i), leader_epoch, at(i))


def served(log: PartitionLog, offset: int | None = None, max_bytes: int = 1 << 20) -> list[tuple[int, str | None]]:
    """(offset, value) of every record a consumer gets that reads from `offset` to the high watermark."""
    offset = log.log_start_offset if offset is None else offset
    found: list[tuple[int, str | None]] = []
    while True:
        chunk = log.read(offset, max_bytes)
        if not len(chunk):
            return found
        for header, view in iter_batches(chunk):
            for record in iter_records(view):
                if record.offset >= offset and not header.is_control:
                    found.append((record.offset, None if record.value is None else text(record.value)))
        offset = header.next_offset


def install_compacted(log: PartitionLog, plan: CompactionPlan) -> None:
    """Put what a finished plan wrote in the place of what it read, oldest first."""
    for group in plan.groups:
        log.replace_segments(group.segments, swap_group(log, group), group.dropped_markers)
    log.cleaned_to(plan.cleaned_to)
