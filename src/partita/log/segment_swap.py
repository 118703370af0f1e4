"""Replace adjacent segments by one new file, so that a crash at any step leaves the old ones or the new one.

"a.cleaned" is written, synced and renamed to "a-b.swap", which from then on replaces all segments from a up to b. The
old files are removed and the new index is written; when that is durable the file gets its final name. (Kafka:
.cleaned, .swap; D11.)
"""

from __future__ import annotations

from contextlib import suppress

from partita.log.segment import INDEX_SUFFIX, LOG_SUFFIX, Segment, file_name, scan
from partita.log.storage import Storage, StorageFull, replace_file

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"


def swap_in(storage: Storage, directory: str, base_offset: int, end_offset: int, index: bytes) -> None:
    """Replace every segment from `base_offset` to `end_offset` by the synced ".cleaned" file.

    `index` is the content of the new segment's index file. Raises StorageError.
    """
    storage.sync_dir(directory)
    cleaned = f"{directory}/{file_name(base_offset, CLEANED_SUFFIX)}"
    swap = f"{base_offset:020d}-{end_offset:020d}{SWAP_SUFFIX}"
    storage.rename(cleaned, f"{directory}/{swap}")
    storage.sync_dir(directory)
    remove_segments(storage, directory, base_offset, end_offset)
    replace_file(storage, directory, file_name(base_offset, INDEX_SUFFIX), index)
    storage.rename(f"{directory}/{swap}", f"{directory}/{file_name(base_offset)}")
    storage.sync_dir(directory)


def finish_swaps(storage: Storage, directory: str, interval_bytes: int, wall_ms: int) -> None:
    """Complete swaps that a crash interrupted: the new file replaces the old ones and gets an index."""
    for name in storage.list(directory):
        if not name.endswith(SWAP_SUFFIX):
            continue
        base, _, end = name.removesuffix(SWAP_SUFFIX).partition("-")
        if base.isdigit() and end.isdigit():
            remove_segments(storage, directory, int(base), int(end))
            _index(storage, directory, name, int(base), interval_bytes, wall_ms)
            storage.rename(f"{directory}/{name}", f"{directory}/{file_name(int(base))}")
        else:
            storage.unlink(f"{directory}/{name}")
        storage.sync_dir(directory)


def _index(storage: Storage, directory: str, swap: str, base_offset: int, interval_bytes: int, wall_ms: int) -> None:
    """Write the index before the file gets its name: it records that a gap after the segment is not a loss."""
    segment = Segment(storage, directory, base_offset, storage.open(f"{directory}/{swap}"), interval_bytes)
    scan(segment, holes_allowed=True)
    segment.is_sealed = True
    segment.last_append_ms = wall_ms
    with suppress(StorageFull):
        segment.write_index()
    segment.file.close()


def remove_segments(storage: Storage, directory: str, base_offset: int, end_offset: int) -> None:
    """Remove the files of segments that start in [base_offset, end_offset), each index before its data."""
    names = storage.list(directory)
    for suffix in (INDEX_SUFFIX, LOG_SUFFIX):
        for name in names:
            stem = name.removesuffix(suffix)
            if name.endswith(suffix) and stem.isdigit() and base_offset <= int(stem) < end_offset:
                storage.unlink(f"{directory}/{name}")
    storage.sync_dir(directory)
