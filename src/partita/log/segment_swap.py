"""Replace adjacent segments by one new file, so that a crash at any step leaves the old ones or the new one.

"a.cleaned" is written and synced, renamed to "a-b.swap", which from then on stands for all segments from a up to b; the
old files are removed, and only when that is durable does it take its final name. (Kafka: .cleaned, .swap; D11.)
"""

from __future__ import annotations

from partita.log.segment import INDEX_SUFFIX, LOG_SUFFIX, file_name
from partita.log.storage import Storage

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"


def swap_in(storage: Storage, directory: str, base_offset: int, end_offset: int) -> None:
    """Put the synced `.cleaned` file of `base_offset` in the place of every segment from there to `end_offset`."""
    storage.sync_dir(directory)
    cleaned = f"{directory}/{file_name(base_offset, CLEANED_SUFFIX)}"
    swap = f"{base_offset:020d}-{end_offset:020d}{SWAP_SUFFIX}"
    storage.rename(cleaned, f"{directory}/{swap}")
    storage.sync_dir(directory)
    _finish(storage, directory, swap)


def finish_swaps(storage: Storage, directory: str) -> None:
    """Complete what a crash interrupted."""
    for name in storage.list(directory):
        if name.endswith(SWAP_SUFFIX):
            _finish(storage, directory, name)


def remove_segments(storage: Storage, directory: str, base_offset: int, end_offset: int) -> None:
    """Remove the files of all segments that start in [base_offset, end_offset), each index before its data."""
    names = storage.list(directory)
    for suffix in (INDEX_SUFFIX, LOG_SUFFIX):
        for name in names:
            stem = name.removesuffix(suffix)
            if name.endswith(suffix) and stem.isdigit() and base_offset <= int(stem) < end_offset:
                storage.unlink(f"{directory}/{name}")
    storage.sync_dir(directory)


def _finish(storage: Storage, directory: str, swap: str) -> None:
    base, _, end = swap.removesuffix(SWAP_SUFFIX).partition("-")
    if base.isdigit() and end.isdigit():
        remove_segments(storage, directory, int(base), int(end))
        storage.rename(f"{directory}/{swap}", f"{directory}/{file_name(int(base))}")
    else:
        storage.unlink(f"{directory}/{swap}")
    storage.sync_dir(directory)
