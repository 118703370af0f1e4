"""S20 to S25: committed offsets are registers, judged by requests and answers, and by what the group log takes.

Writes are numbered as they are decided: commits, and deletions of offsets. An acknowledged write is never lost; one
that was finally refused never shows; one with unknown outcome may show. A read returns the value (offset, leader epoch,
metadata) of a write that is no older than any acknowledged before the request came, or read before. Nothing expires
before its time or while its group has members.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from partita.group.contract import Record
from partita.group.coordinator import GroupCoordinator
from partita.group.records.log_records import NO_EXPIRY, OFFSET_KEY, kind_of, read_offset_key, read_offset_value
from partita.group.requests import DeleteGroup, FetchOffsets
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_groups import DeletableGroupResult
from partita.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from partita.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from partita.protocol.messages.offset_fetch import OffsetFetchResponseGroup
from partita.protocol.primitives import Structure
from partita.sim.rules.rule import must
from partita.sim.world.asked import Asked

Key = tuple[str, str, int]
"""(group id, topic, partition)."""
_LAST_WITH_RETENTION = 4
_UNDECIDED = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)


class Value(NamedTuple):
    """Committed value of a partition (S22: it is returned unchanged)."""

    offset: int
    leader_epoch: int
    metadata: str


NOTHING = Value(-1, -1, "")


class OffsetRules:
    """The committed offsets of every group. `retention_ms` and `metadata_max_bytes` are the coordinator's settings."""

    def __init__(self, retention_ms: int, metadata_max_bytes: int) -> None:
        self._retention_ms = retention_ms
        self._metadata_max_bytes = metadata_max_bytes
        self._writes: dict[Key, dict[int, Value]] = {}
        """By number: values that may be, or become, the committed one."""
        self._floor: dict[Key, int] = {}
        """The newest write known to have happened; older ones are over."""
        self._floors_seen: dict[int, dict[Key, int]] = {}
        self._numbers: dict[int, int] = {}
        """Of requests that are not answered: their numbers here."""
        self._written = 0
        self._log: dict[Key, tuple[int, int]] = {}
        """Of offsets in the log: when they were committed, and when they expire (`NO_EXPIRY`: by retention)."""
        self._inhabited_ms: dict[str, int] = {}
        """When each classic group was last seen with members."""
        self._since_empty: frozenset[str] = frozenset()
        """Classic groups that had members: retention runs from when they became empty, elsewhere from the commit."""

    # What the broker is about to decide, and has answered

    def before(self, asked: Asked) -> None:
        """The broker is about to decide a request."""
        wire = asked.wire
        number = self._numbers[asked.number] = self._next()
        if isinstance(wire, FetchOffsets):
            self._floors_seen[number] = dict(self._floor)
        for key, value in self._asked_for(asked):
            self._writes.setdefault(key, {})[number] = value

    def _next(self) -> int:
        self._written += 1
        return self._written

    def _asked_for(self, asked: Asked) -> Iterable[tuple[Key, Value]]:
        wire = asked.wire
        if isinstance(wire, OffsetCommitRequest):
            for topic in wire.topics:
                for p in topic.partitions:
                    value = Value(p.committed_offset, p.committed_leader_epoch, p.committed_metadata or "")
                    yield (wire.group_id, topic.name, p.partition_index), value
        elif isinstance(wire, OffsetDeleteRequest):
            for gone in wire.topics:
                for part in gone.partitions:
                    yield (wire.group_id, gone.name, part.partition_index), NOTHING
        elif isinstance(wire, DeleteGroup):
            group_id = wire.group_id
            yield from [(key, NOTHING) for key in self._writes if key[0] == group_id]

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        number = self._numbers.pop(asked.number, None)
        if number is None:
            return
        wire = asked.wire
        if isinstance(response, OffsetCommitResponse) and isinstance(wire, OffsetCommitRequest):
            self._commit_answered(number, wire, response)
        elif isinstance(response, OffsetDeleteResponse) and isinstance(wire, OffsetDeleteRequest):
            codes = {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}
            for key, _ in self._asked_for(asked):
                self._ended(key, number, ErrorCode(response.error_code or codes[key[1:]]))
        elif isinstance(response, DeletableGroupResult):
            for key in [key for key, writes in self._writes.items() if number in writes]:
                self._ended(key, number, ErrorCode(response.error_code))
        elif isinstance(response, OffsetFetchResponseGroup):
            floors = self._floors_seen.pop(number, {})
            if response.error_code == ErrorCode.NONE:
                self._fetched(number, response, floors)

    def crashed(self) -> None:
        """Drop all pending requests, which get no answer."""
        self._floors_seen.clear()
        self._numbers.clear()

    def _commit_answered(self, number: int, wire: OffsetCommitRequest, response: OffsetCommitResponse) -> None:
        for topic in response.topics:
            for p in topic.partitions:
                key = (wire.group_id, topic.name, p.partition_index)
                value = self._writes[key].get(number, NOTHING)
                too_long = len(value.metadata) > self._metadata_max_bytes
                must(p.error_code or not too_long, "S23", f"{key}: metadata of {len(value.metadata)} are stored")
                self._ended(key, number, ErrorCode(p.error_code))

    def _ended(self, key: Key, number: int, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            self._raise_floor(key, number)
        elif code not in _UNDECIDED:
            self._writes.get(key, {}).pop(number, None)

    def _fetched(self, number: int, response: OffsetFetchResponseGroup, floors: dict[Key, int]) -> None:
        for topic in response.topics:
            for p in topic.partitions:
                if p.error_code == ErrorCode.NONE:
                    value = Value(p.committed_offset, p.committed_leader_epoch, p.metadata or "")
                    self._read((response.group_id, topic.name, p.partition_index), number, value, floors)

    def _read(self, key: Key, number: int, value: Value, floors: dict[Key, int]) -> None:
        floor = floors.get(key, 0)
        writes = self._writes.get(key, {})
        possible = [n for n, written in writes.items() if floor <= n < number and written == value]
        if value == NOTHING and not floor:
            return
        must(possible, "S20", f"{key}: {value} was read; writes that may count: {writes}, from number {floor}")
        self._raise_floor(key, possible[0])

    def _raise_floor(self, key: Key, number: int) -> None:
        floor = self._floor[key] = max(number, self._floor.get(key, 0))
        writes = self._writes.get(key, {})
        in_flight = min((f.get(key, 0) for f in self._floors_seen.values()), default=floor)
        for old in [n for n in writes if n < min(floor, in_flight)]:
            del writes[old]

    # Topics

    def topic_deleted(self, name: str) -> int:
        """A topic is gone; its offsets are being forgotten. Returns the number of that write."""
        number = self._next()
        for key, writes in self._writes.items():
            if key[1] == name:
                writes[number] = NOTHING
        return number

    def topic_forgotten(self, name: str, number: int) -> None:
        """S25: no offset of the topic may be seen any more."""
        for key in [key for key, writes in self._writes.items() if key[1] == name and number in writes]:
            self._raise_floor(key, number)

    # The log

    def observe(self, coordinator: GroupCoordinator, wall_ms: int) -> None:
        """Something is about to be decided."""
        for group in coordinator.groups.values():
            if group.members:
                self._inhabited_ms[group.group_id] = wall_ms
        classic = coordinator.groups.values()
        self._since_empty = frozenset(group.group_id for group in classic if group.protocol_type is not None)

    def appended(
        self, records: tuple[Record, ...], coordinator: GroupCoordinator, wall_ms: int, cause: Asked | str | None
    ) -> None:
        """A batch was appended: for a request, for a topic that was deleted, or (None) because something was due."""
        for record in records:
            if kind_of(record.key) != OFFSET_KEY:
                continue
            key = read_offset_key(record.key)
            if record.value is not None:
                committed = read_offset_value(record.value)
                self._log[key] = committed.commit_ms, committed.expire_ms
                self._check_expiry(key, committed.expire_ms, wall_ms, cause)
                continue
            stored = self._log.pop(key, None)
            if cause is None:
                must(stored is not None, "S24", f"{key} expires and has no offset")
                self._writes.setdefault(key, {})[self._next()] = NOTHING
                if stored is not None:
                    self._check_expired(key, *stored, wall_ms, coordinator)

    def _check_expiry(self, key: Key, expire_ms: int, wall_ms: int, cause: Asked | str | None) -> None:
        """S24: an offset has an expiry of its own if an old client asked for one."""
        wire = cause.wire if isinstance(cause, Asked) else None
        if isinstance(cause, Asked) and isinstance(wire, OffsetCommitRequest):
            has_own = cause.version <= _LAST_WITH_RETENTION and wire.retention_time_ms > 0
            expected = wall_ms + wire.retention_time_ms if has_own else NO_EXPIRY
            must(expire_ms == expected, "S24", f"{key} expires at {expire_ms}, asked for was {expected}")

    def _check_expired(
        self, key: Key, commit_ms: int, expire_ms: int, wall_ms: int, coordinator: GroupCoordinator
    ) -> None:
        consumers = coordinator.consumer_groups.get(key[0])
        if consumers is not None:
            must(key[1] not in consumers.subscribed_topics(), "S24", f"{key} expires while its group reads the topic")
            due_ms = expire_ms if expire_ms != NO_EXPIRY else commit_ms + self._retention_ms
            must(wall_ms >= due_ms, "S24", f"{key} expires {due_ms - wall_ms} ms too early")
            return
        group = coordinator.groups.get(key[0])
        must(group is None or not group.members, "S24", f"{key} expires while its group has members")
        due_ms = self._due_ms(key, commit_ms, expire_ms)
        must(wall_ms >= due_ms, "S24", f"{key} expires {due_ms - wall_ms} ms too early")

    def _due_ms(self, key: Key, commit_ms: int, expire_ms: int) -> int:
        if expire_ms != NO_EXPIRY:
            return expire_ms
        since_ms = self._inhabited_ms.get(key[0], 0) if key[0] in self._since_empty else 0
        return max(commit_ms, since_ms) + self._retention_ms

    def overdue(self, coordinator: GroupCoordinator, wall_ms: int) -> list[Key]:
        """Offsets of groups without members that should have expired by now."""
        return [
            key
            for key, stored in self._log.items()
            if not coordinator.members_of(key[0]) and wall_ms > self._due_ms(key, *stored)
        ]

    def loaded(self, coordinator: GroupCoordinator) -> None:
        """A coordinator has replayed the log. Members that came and went without a record have left no trace there."""
        for group in coordinator.groups.values():
            if not group.members and group.group_id in self._inhabited_ms:
                known_ms = self._inhabited_ms[group.group_id]
                self._inhabited_ms[group.group_id] = min(known_ms, group.since_ms)
        found = {
            (group_id, *partition): read_offset_value(value)
            for group_id, offsets in coordinator.hard_state.offsets.items()
            for partition, value in offsets.items()
        }
        self._log = {key: (committed.commit_ms, committed.expire_ms) for key, committed in found.items()}
