"""The stored state of one share partition: what a leader wrote last, as batches of offsets."""

from __future__ import annotations

from typing import NamedTuple

KEEP_START = -1
"""A start offset that leaves the stored one as it is, or says that none is stored."""
UNKNOWN_COUNT = -1


class ShareKey(NamedTuple):
    """One share partition: a partition as one group reads it."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Offsets `first` to `last` with one delivery state (0 available, 2 acknowledged, 4 archived) and count."""

    first: int
    last: int
    state: int
    delivery_count: int


class ShareState(NamedTuple):
    """Everything that is stored of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    """The group epoch of the initialization: what an older view of the group writes is refused."""
    leader_epoch: int
    start_offset: int
    completed: int
    """Acknowledged and archived records at or above the start offset; `UNKNOWN_COUNT` where none was reported."""
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int
