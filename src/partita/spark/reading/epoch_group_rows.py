"""The records of groups with epochs in `__consumer_offsets` as rows: KIP-848, share and streams groups.

A classic group is one record; one of these is a record for the group's epoch and some for each member. So the groups
are rebuilt record by record, and a row says the state that its record led to. Assignments hold topic ids, of which the
cluster knows the names. A damaged record is never an error: of an epoch it is kept raw, any other is passed over.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from partita.group.records import consumer_log, share_log
from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember, Partition
from partita.group.records.log_records import kind_of, read_group_key
from partita.group.records.read_back import LogRecord, Row
from partita.protocol.primitives import MalformedRequest, Reader

STREAMS_EPOCH_KEY, STREAMS_MEMBER_KEY = 17, 19
EPOCHS = {consumer_log.EPOCH_KEY: "consumer", share_log.EPOCH_KEY: "share", STREAMS_EPOCH_KEY: "streams"}
"""The kinds of records with a group's epoch, and the protocol of such groups."""
MEMBERS = frozenset({consumer_log.MEMBER_KEY, share_log.MEMBER_KEY, STREAMS_MEMBER_KEY})
FIRST_TARGET_EPOCH = 2
"""The epoch of the first assignment of a group; nothing was assigned before."""


@dataclass(slots=True)
class GroupEpochs:
    """`view=groups`: one row per new epoch of a group, with the number of members that it has then."""

    _members: dict[str, set[str]] = field(default_factory=dict)

    def rows(self, record: LogRecord) -> Iterator[Row]:
        """The row of this record, if it holds an epoch."""
        kind = kind_of(record.key or b"")
        try:
            key = Reader(record.key or b"", 2)
            group = key.string()
            if kind in MEMBERS:
                self._count(group, key.string(), record.value)
        except (MalformedRequest, UnicodeDecodeError):
            return
        if kind not in EPOCHS:
            return
        if record.value is None:
            self._members.pop(group, None)
        epoch = _epoch(record.value)
        is_known = epoch is not None
        yield {
            "group": group,
            "protocolType": EPOCHS[kind] if is_known else None,
            "protocol": EPOCHS[kind] if is_known else None,
            "generation": epoch,
            "leader": None,
            "memberCount": len(self._members.get(group, ())) if is_known else None,
            "stateTimeMs": _logged_ms(record) if is_known else None,
            "isTombstone": record.value is None,
            "unknownValue": None if is_known else record.value,
            **record.place(),
        }

    def _count(self, group: str, member: str, value: bytes | None) -> None:
        if value is None:
            self._members.get(group, set()).discard(member)
        else:
            self._members.setdefault(group, set()).add(member)


class ConsumerGroups:
    """The KIP-848 groups of a log, rebuilt; `names` asks the cluster for the names of topics by their ids."""

    def __init__(self, names: Callable[[], Mapping[bytes, str]]) -> None:
        self._ask_names = names
        self._names: dict[bytes, str] = {}
        self._groups: dict[str, ConsumerGroup] = {}
        self._targets: dict[str, _Targets] = {}

    def member_rows(self, record: LogRecord) -> Iterator[Row]:
        """Return one row when a member's epoch, assignment or properties changed."""
        for group, member in self._changed(record, consumer_log.ASSIGNMENT_KEY, consumer_log.MEMBER_KEY):
            classic = member.classic
            yield {
                **_holder(group, member),
                "clientHost": member.client_host,
                "isLeader": None,
                "sessionTimeoutMs": None if classic is None else classic.session_timeout_ms,
                "rebalanceTimeoutMs": member.rebalance_timeout_ms,
                "topics": list(group.topics_of(member)),
                "partitionCount": len(member.assigned),
                "userDataBytes": None,
                **record.place(),
            }

    def assignment_rows(self, record: LogRecord) -> Iterator[Row]:
        """Return one row per partition that a member holds in its new epoch."""
        for group, member in self._changed(record, consumer_log.ASSIGNMENT_KEY):
            for topic, partition in self._named(member.assigned):
                yield {**_holder(group, member), "topic": topic, "partition": partition, **record.place()}

    def rebalance_rows(self, record: LogRecord) -> Iterator[Row]:
        """Return one row for each new target of a group that follows another, or is its first."""
        group = self._replayed(record)
        if group is None or kind_of(record.key or b"") != consumer_log.TARGET_EPOCH_KEY or record.value is None:
            return
        now = _Targets.of(group, group.assigned_ms or _logged_ms(record))
        before = self._targets.get(group.group_id)
        self._targets[group.group_id] = now
        if before is None and now.epoch > FIRST_TARGET_EPOCH:
            return
        before = before or _Targets(now.epoch - 1)
        moved = [key for key, owner in now.owners.items() if before.owners.get(key, owner) != owner]
        yield {
            "group": group.group_id,
            "generation": now.epoch,
            "previousGeneration": before.epoch,
            "stateTimeMs": now.at_ms,
            "sincePreviousMs": None if None in (now.at_ms, before.at_ms) else (now.at_ms or 0) - (before.at_ms or 0),
            "memberCount": len(now.members),
            "added": sorted(now.members - before.members),
            "removed": sorted(before.members - now.members),
            "moved": [f"{topic}-{partition}" for topic, partition in self._named(moved)],
            "unassigned": [f"{t}-{p}" for t, p in self._named(before.owners.keys() - now.owners.keys())],
            **record.place(),
        }

    def _changed(self, record: LogRecord, *kinds: int) -> Iterator[tuple[ConsumerGroup, ConsumerMember]]:
        """Yield the member of a record of these kinds, once it has an epoch."""
        group = self._replayed(record)
        if group is not None and kind_of(record.key or b"") in kinds and record.value is not None:
            key = Reader(record.key or b"", 2)
            key.string()
            member = group.members.get(key.string())
            if member is not None and member.epoch > 0:
                yield group, member

    def _replayed(self, record: LogRecord) -> ConsumerGroup | None:
        """The group of this record after it; None for other records and for a group that is gone."""
        key = record.key or b""
        try:
            if kind_of(key) not in consumer_log.KINDS:
                return None
            group_id = read_group_key(key)
            consumer_log.replay(self._groups, kind_of(key), key, record.value)
        except (MalformedRequest, UnicodeDecodeError):
            return None
        if group_id not in self._groups:
            self._targets.pop(group_id, None)
        return self._groups.get(group_id)

    def _named(self, partitions: Iterable[Partition]) -> list[tuple[str, int]]:
        """Return the partitions by topic name, sorted. A topic that no longer exists has its id in place of a name."""
        found = list(partitions)
        unknown = {topic_id for topic_id, _ in found} - self._names.keys()
        if unknown:
            self._names |= self._ask_names()
            # Not asked for again, a deleted topic does not come back.
            self._names |= {t: urlsafe_b64encode(t).decode().rstrip("=") for t in unknown - self._names.keys()}
        return sorted((self._names[topic_id], partition) for topic_id, partition in found)


@dataclass(frozen=True, slots=True)
class _Targets:
    """The partitions that each member is meant to have from an epoch on, and the names of the members."""

    epoch: int
    at_ms: int | None = None
    members: frozenset[str] = frozenset()
    owners: Mapping[Partition, str] = field(default_factory=dict)

    @staticmethod
    def of(group: ConsumerGroup, at_ms: int | None) -> _Targets:
        names = {name: member.instance_id or name for name, member in group.members.items()}
        owners = {key: names[name] for name, keys in group.targets.items() if name in names for key in keys}
        return _Targets(group.assignment_epoch, at_ms, frozenset(names.values()), owners)


def _holder(group: ConsumerGroup, member: ConsumerMember) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "generation": member.epoch,
        "memberId": member.member_id,
        "groupInstanceId": member.instance_id,
        "clientId": member.client_id,
    }


def _epoch(value: bytes | None) -> int | None:
    try:
        body = Reader(value or b"")
        return body.int32() if body.int16() == 0 else None
    except MalformedRequest:
        return None


def _logged_ms(record: LogRecord) -> int | None:
    """Milliseconds at which the record was logged: the coordinator's clock."""
    return None if record.timestamp is None else round(record.timestamp.timestamp() * 1000)
