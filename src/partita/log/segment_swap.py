"""Replace adjacent segments by one new file, so that a failure at any step leaves the old ones or the new one.

"a.cleaned" is written, synced and renamed to "a-b.swap", which from then on replaces all segments from a up to b. The
old files are removed and the new index gets its name; when that is durable the file gets its final name. An empty file
is removed instead. A swap that has begun must be finished before any segment changes again: the next start would
finish it over newer data. (Kafka: .cleaned, .swap; D11.)
"""

from __future__ import annotations

from partita.log.segment import INDEX_SUFFIX, LOG_SUFFIX, Segment, file_name, scan
from partita.log.sparse_index import SegmentFacts, encode_index
from partita.log.storage import Storage, write_synced

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"


def stage_index(storage: Storage, directory: str, base_offset: int, index: bytes) -> None:
    """Write the index for `finish_swap`, while nothing has changed yet: this needs room. None for an empty file."""
    if index:
        write_synced(storage, _staged(directory, base_offset), index)


def begin_swap(storage: Storage, directory: str, base_offset: int, end_offset: int) -> None:
    """Let the synced ".cleaned" file count for every segment from `base_offset` to `end_offset`, whatever follows.

    After a StorageError nothing has changed.
    """
    storage.sync_dir(directory)
    cleaned = f"{directory}/{file_name(base_offset, CLEANED_SUFFIX)}"
    storage.rename(cleaned, f"{directory}/{_swap_name(base_offset, end_offset)}")


def finish_swap(storage: Storage, directory: str, base_offset: int, end_offset: int, *, is_empty: bool) -> None:
    """Put the file of a swap that has begun, and its staged index, in their places.

    After a StorageError it can be called again, with the index staged again.
    """
    name = _swap_name(base_offset, end_offset)
    if name in storage.list(directory):
        storage.sync_dir(directory)
        _remove_segments(storage, directory, base_offset, end_offset)
        if is_empty:
            storage.unlink(f"{directory}/{name}")
        else:
            # Before the file gets its name: the index records that a gap after the segment is not a loss.
            storage.rename(_staged(directory, base_offset), f"{directory}/{file_name(base_offset, INDEX_SUFFIX)}")
            storage.sync_dir(directory)
            storage.rename(f"{directory}/{name}", f"{directory}/{file_name(base_offset)}")
    storage.sync_dir(directory)


def finish_swaps(storage: Storage, directory: str, interval_bytes: int, wall_ms: int) -> None:
    """Complete swaps that a crash interrupted. Raises StorageError; then the next start has to."""
    for name in storage.list(directory):
        if not name.endswith(SWAP_SUFFIX):
            continue
        base, _, end = name.removesuffix(SWAP_SUFFIX).partition("-")
        if base.isdigit() and end.isdigit():
            index = _index(storage, directory, name, int(base), interval_bytes, wall_ms)
            stage_index(storage, directory, int(base), index)
            finish_swap(storage, directory, int(base), int(end), is_empty=not index)
        else:
            storage.unlink(f"{directory}/{name}")
            storage.sync_dir(directory)


def _swap_name(base_offset: int, end_offset: int) -> str:
    return f"{base_offset:020d}-{end_offset:020d}{SWAP_SUFFIX}"


def _staged(directory: str, base_offset: int) -> str:
    return f"{directory}/{file_name(base_offset, INDEX_SUFFIX)}.tmp"


def _index(storage: Storage, directory: str, swap: str, base_offset: int, interval_bytes: int, wall_ms: int) -> bytes:
    segment = Segment(storage, directory, base_offset, storage.open(f"{directory}/{swap}"), interval_bytes)
    if not segment.file.size():
        return b""
    scan(segment, holes_allowed=True)
    segment.file.close()
    facts = SegmentFacts(
        is_sealed=True,
        log_size=segment.size,
        next_offset=segment.next_offset,
        max_timestamp=segment.max_timestamp,
        last_append_ms=max(wall_ms, segment.max_timestamp),
    )
    return encode_index(segment.index, facts)


def _remove_segments(storage: Storage, directory: str, base_offset: int, end_offset: int) -> None:
    """Remove the files of segments that start in [base_offset, end_offset), each index before its data."""
    names = storage.list(directory)
    for suffix in (INDEX_SUFFIX, LOG_SUFFIX):
        for name in names:
            stem = name.removesuffix(suffix)
            if name.endswith(suffix) and stem.isdigit() and base_offset <= int(stem) < end_offset:
                storage.unlink(f"{directory}/{name}")
    storage.sync_dir(directory)
