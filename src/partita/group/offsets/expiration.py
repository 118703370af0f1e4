"""Deletes offsets that have expired or whose topic was deleted.

Both run as sweeps that write tombstones in slices, so that no batch exceeds the limit of the offsets topic and no
other request waits long. The next run repeats work lost in a crash.
(Kafka: OffsetMetadataManager.cleanupExpiredOffsets, specification sections 16.4 and 17.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from partita.group.notes import GroupRefused, OffsetsExpired
from partita.group.offsets import delete
from partita.group.records.log_records import NO_EXPIRY, CommittedOffset, read_offset_value
from partita.group.state.model import EMPTY, STABLE, Group
from partita.group.state.shard import Sweep
from partita.group.state.turn import Turn

_SLICE = 1000
"""Records a slice writes at most."""
_LOOKED_AT = 250
"""Groups and offsets after which a slice ends, though it has nothing to write."""
_FULL_NOTE_EVERY_MS = 1_000
_ID_AWAITED_MS = 1_000
"""How long a group that only issued member ids is kept from making room: clients use an id at once."""


def start(turn: Turn) -> None:
    """Run the expiry task: begin a sweep over all groups, and schedule the next one."""
    state = turn.state
    state.expiry_deadline_ms = turn.now.mono_ms + state.config.offsets_retention_check_interval_ms
    state.sweeps.append(Sweep(state.with_offsets(), topics=None, since_ms=turn.now.mono_ms))


def forget_topics(turn: Turn, names: Collection[str]) -> None:
    """Delete the offsets of deleted topics. The rest after one slice follows when deadlines run."""
    turn.state.sweeps.append(Sweep(turn.state.with_offsets(), frozenset(names), turn.now.mono_ms))
    sweep(turn)


def make_room(turn: Turn, group_id: str) -> bool:
    """Let a broker at its limit of groups end one of this shard without members and offsets; whether there was one.

    Kafka's expiry task would end it some minutes later. Unused member ids, which a client can leave behind in any
    number of groups for half an hour, keep it for a second. If there is none, a note says that `group_id` is refused.
    """
    state = turn.state
    for known in state.with_offsets():
        classic = state.groups.get(known)
        is_awaited = (
            classic is not None and bool(classic.pending) and not turn.has_passed(_ID_AWAITED_MS, classic.since_ms)
        )
        if not is_awaited and delete.is_empty(turn, known) and not state.hard.has_offsets(known):
            turn.write(delete.end_records(turn, known))
            delete.forget(turn, known, "evicted")
            return not state.is_full
    if turn.now.mono_ms >= state.next_full_note_ms:
        state.next_full_note_ms = turn.now.mono_ms + _FULL_NOTE_EVERY_MS
        turn.out.note(GroupRefused(group_id, state.config.partita_groups_max, turn.now.wall_ms))
    return False


def sweep(turn: Turn) -> None:
    """Write one slice of the oldest sweep."""
    written = looked = 0
    oldest = turn.state.sweeps[0]
    while oldest.group_ids and looked < _LOOKED_AT:
        group_id = oldest.group_ids[0]
        if group_id in turn.state.groups or turn.state.epoch_group(group_id) is not None:
            offsets = _expired(turn, group_id) if oldest.topics is None else _forgotten(turn, group_id, oldest.topics)
            tombstones = delete.tombstones(group_id, list(islice(offsets, _SLICE)))
            turn.write(tombstones)
            written += len(tombstones)
            oldest.written += len(tombstones)
            if written >= _SLICE:
                return
            if oldest.topics is None:
                written += _end_group(turn, group_id, oldest.written)
        looked += 1 + len(turn.state.hard.offsets.get(group_id, ()))
        oldest.group_ids.popleft()
        oldest.written = 0
    if not oldest.group_ids:
        turn.state.sweeps.popleft()


def _end_group(turn: Turn, group_id: str, expired: int) -> int:
    """Note the number of expired offsets and delete the group if it is empty; return the count of records."""
    if expired:
        turn.out.note(OffsetsExpired(group_id, expired, turn.now.wall_ms))
    if not delete.is_empty(turn, group_id) or turn.state.hard.has_offsets(group_id):
        return 0
    records = delete.end_records(turn, group_id)
    turn.write(records)
    delete.forget(turn, group_id, "expired")
    return len(records)


def _forgotten(turn: Turn, group_id: str, names: frozenset[str]) -> list[tuple[str, int]]:
    """Return the partitions of these topics that have an offset, unless it is of a topic created again since.

    After a crash the names of topics deleted before it come once more, and such an offset may have been acknowledged.
    """
    committed, image = turn.state.hard.offsets.get(group_id, {}), turn.state.topics
    present = {facts.topic_id for facts in map(image.get, names) if facts is not None}
    return [
        partition
        for partition in delete.all_partitions(turn, group_id)
        if partition[0] in names
        and (partition not in committed or read_offset_value(committed[partition]).topic_id not in present)
    ]


def _expired(turn: Turn, group_id: str) -> Iterator[tuple[str, int]]:
    """Yield partitions whose offset has expired, and has no newer one in an open transaction."""
    epochs, group = turn.state.epoch_group(group_id), turn.state.groups.get(group_id)
    exempt = frozenset(epochs.subscribed_topics()) if epochs is not None else _exempt_topics(group)
    if exempt is None:
        return
    pending = set(turn.state.hard.pending_partitions(group_id))
    for partition, value in turn.state.hard.offsets.get(group_id, {}).items():
        if partition[0] in exempt or partition in pending:
            continue
        if is_expired(read_offset_value(value), group, turn.now.wall_ms, turn.state.config.offsets_retention_ms):
            yield partition


def _exempt_topics(group: Group | None) -> frozenset[str] | None:
    """Return the topics whose offsets do not expire in a classic group; None: all of them."""
    if group is None or group.state is EMPTY:
        return frozenset()
    if group.state is STABLE and group.protocol_type == delete.CONSUMER:
        return group.subscribed_topics()
    return None


def is_expired(committed: CommittedOffset, group: Group | None, wall_ms: int, retention_ms: int) -> bool:
    """Whether the offset is past its own expiry time or, if it has none, past its retention.

    Retention starts when the group became empty, else (and in KIP-848 groups: None) with the commit.
    """
    if committed.expire_ms != NO_EXPIRY:
        return wall_ms >= committed.expire_ms
    since_ms = committed.commit_ms
    if group is not None and group.protocol_type is not None and group.state is EMPTY and group.since_ms != -1:
        since_ms = group.since_ms
    return wall_ms - since_ms >= retention_ms
