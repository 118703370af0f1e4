"""What a log cleaner may leave of a group log: the last record per key, or any earlier cut of that."""

from __future__ import annotations

from support.group.shell import Entry


def compacted(log: list[Entry], upto: int | None = None) -> list[Entry]:
    """Clean the first `upto` entries (all by default). Transactional batches and markers are kept, as their
    transaction may be open for whoever reads."""
    upto = len(log) if upto is None else upto
    last: dict[bytes, int] = {}
    for at, entry in enumerate(log[:upto]):
        for record in entry.records:
            last[record.key] = at
    cleaned = []
    for at, entry in enumerate(log):
        if at >= upto or entry.marker is not None or entry.producer is not None:
            cleaned.append(entry)
            continue
        newest = {record.key: record for record in entry.records if last[record.key] == at}
        if newest:
            cleaned.append(Entry(tuple(newest.values())))
    return cleaned
