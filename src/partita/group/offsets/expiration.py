"""Offsets nobody needs any more: the expiry task, and topics that were deleted.

Both run as sweeps: a generator that writes tombstones slice by slice, so that no batch grows beyond what the offsets
topic takes and no other request waits long. Whatever is lost with a crash is found again by the next run.
(Kafka: OffsetMetadataManager.cleanupExpiredOffsets, specification sections 16.4 and 17.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from partita.group.contract import Step
from partita.group.notes import GroupDeleted, OffsetsExpired
from partita.group.offsets import delete
from partita.group.records.log_records import NO_EXPIRY, CommittedOffset, read_offset_value
from partita.group.state.model import DEAD, EMPTY, STABLE, Group, subscribed_topics
from partita.group.state.shard import Shard
from partita.now import Now

_SLICE = 1000
"""Records a slice writes at most."""


def start(shard: Shard) -> None:
    """The expiry task is due: begin a sweep over all groups, and plan the next one."""
    shard.expiry_deadline_ms = shard.now.mono_ms + shard.config.offsets_retention_check_interval_ms
    shard.sweeps.append(_expire_all(shard, list(shard.groups.values())))


def sweep(shard: Shard) -> None:
    """One slice of the oldest sweep."""
    if next(shard.sweeps[0], shard) is shard:
        del shard.sweeps[0]


def forget_topics(shard: Shard, names: Collection[str], now: Now) -> Step:
    shard.now = now
    shard.sweeps.append(_forget(shard, frozenset(names)))
    sweep(shard)
    return shard.take()


def _expire_all(shard: Shard, groups: list[Group]) -> Iterator[None]:
    written = 0
    for group in groups:
        count = 0
        while group.state is not DEAD and (expired := list(islice(_expired(shard, group), _SLICE))):
            shard.write(delete.tombstones(group.group_id, expired))
            count += len(expired)
            written += len(expired)
            if written >= _SLICE:
                yield
                written = 0
        if count:
            shard.note(OffsetsExpired(group.group_id, count, shard.now.wall_ms))
        if group.state is EMPTY and not shard.hard.has_offsets(group.group_id):
            shard.write([delete.group_tombstone(group.group_id)])
            shard.forget(group)
            shard.note(GroupDeleted(group.group_id, "expired", shard.now.wall_ms))
            written += 1


def _expired(shard: Shard, group: Group) -> Iterator[tuple[str, int]]:
    """Partitions whose offset has outlived its retention, and has no newer one in an open transaction."""
    exempt = _exempt_topics(group)
    if exempt is None:
        return
    pending = set(shard.hard.pending_partitions(group.group_id))
    for partition, value in shard.hard.offsets.get(group.group_id, {}).items():
        if partition[0] in exempt or partition in pending:
            continue
        if is_expired(read_offset_value(value), group, shard.now.wall_ms, shard.config.offsets_retention_ms):
            yield partition


def _exempt_topics(group: Group) -> frozenset[str] | None:
    """Topics whose offsets stay; None: all of them."""
    if group.state is EMPTY:
        return frozenset()
    if group.state is STABLE and group.protocol_type == delete.CONSUMER:
        return subscribed_topics(group)
    return None


def is_expired(committed: CommittedOffset, group: Group, wall_ms: int, retention_ms: int) -> bool:
    """An expiry of its own counts alone; else retention runs from the commit, or from when the group became empty."""
    if committed.expire_ms != NO_EXPIRY:
        return wall_ms >= committed.expire_ms
    since_ms = committed.commit_ms
    if group.protocol_type is not None and group.state is EMPTY and group.since_ms != -1:
        since_ms = group.since_ms
    return wall_ms - since_ms >= retention_ms


def _forget(shard: Shard, names: frozenset[str]) -> Iterator[None]:
    written = 0
    for group_id in list(shard.groups):
        gone = [partition for partition in delete.all_partitions(shard, group_id) if partition[0] in names]
        for at in range(0, len(gone), _SLICE):
            shard.write(delete.tombstones(group_id, gone[at : at + _SLICE]))
            written += len(gone[at : at + _SLICE])
            if written >= _SLICE:
                yield
                written = 0
