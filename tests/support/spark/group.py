"""A group in memory that a simulated query shares with plain consumers: cooperative or eager, static, fencing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from partita.spark.planning.lookups import Committed
from partita.spark.planning.membership import Holding, Refusal
from partita.spark.settings.positions import TopicPartition
from support.spark.cluster import MemoryCluster


class Fenced(Exception):
    """Another process holds the static id."""


@dataclass(slots=True)
class _Seat:
    """One member as the coordinator sees it; `session` is the process that holds it, `generation` the last it saw."""

    session: object
    generation: int
    owned: set[TopicPartition] = field(default_factory=set)


@dataclass(slots=True)
class MemoryGroup:
    """Partitions are dealt out in turns to the members in order of their ids; each takes part only when it calls."""

    cluster: MemoryCluster
    name: str = "g"
    is_eager: bool = False
    generation: int = 0
    seats: dict[str, _Seat] = field(default_factory=dict)
    known: tuple[TopicPartition, ...] = ()

    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted((t, p) for t, (_, parts) in self.cluster.topics.items() for p in range(len(parts))))

    def take_part(self, member: str, session: object) -> set[TopicPartition]:
        """What the member holds afterwards. Raises Fenced for a process that was replaced."""
        seat = self.seats.get(member)
        if seat is None:
            self.generation += 1
            seat = self.seats[member] = _Seat(session, -1)
        if seat.session is not session:
            raise Fenced(member)
        if self.known != self.partitions():
            self.known = self.partitions()
            self.generation += 1
        if seat.generation != self.generation:
            target = self._target(member)
            others = {key for name, other in self.seats.items() if name != member for key in other.owned}
            seat.owned = target - others
            if seat.owned == target:
                seat.generation = self.generation
        return set(seat.owned)

    def replace(self, member: str, session: object) -> None:
        """A new process comes with the same static id."""
        if member in self.seats:
            self.seats[member].session = session

    def expire(self, member: str) -> None:
        """The member was silent for too long, or it left."""
        if self.seats.pop(member, None) is not None:
            self.generation += 1

    def is_member(self, member: str, session: object) -> bool:
        return member in self.seats and self.seats[member].session is session

    def _target(self, member: str) -> set[TopicPartition]:
        names = sorted(self.seats)
        return {key for i, key in enumerate(self.known) if names[i % len(names)] == member}


class QueryMembership:
    """One process of a query with a static id. Partitions that were not let go keep their tenure, if cooperative."""

    def __init__(self, group: MemoryGroup, member: str = "spark-0") -> None:
        self._group, self._member = group, member
        self._tenures: dict[TopicPartition, int] = {}
        self._seat: _Seat | None = None
        self._generation = -2
        self._count = 0
        group.replace(member, self)

    def take_part(self) -> Holding:
        group = self._group
        before = group.seats.get(self._member)
        if before is None or before is not self._seat or (group.is_eager and self._generation != group.generation):
            self._tenures = {}
        held = group.take_part(self._member, self)
        self._seat, self._generation = group.seats[self._member], group.generation
        for key in held - self._tenures.keys():
            self._count += 1
            self._tenures[key] = self._count
        self._tenures = {key: tenure for key, tenure in self._tenures.items() if key in held}
        return Holding(dict(self._tenures), self._generation)

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> tuple[Refusal, ...]:
        if self._group.seats.get(self._member) is not self._seat or not self._group.is_member(self._member, self):
            return (Refusal(frozenset(offsets), "the member is unknown", is_fenced=True),)
        assert offsets.keys() <= self._tenures.keys(), "committed for a partition that is not held"
        self._group.cluster.commit(self._group.name, offsets)
        return ()

    def leave(self) -> None:
        if self._group.is_member(self._member, self):
            self._group.expire(self._member)


@dataclass(slots=True)
class PlainConsumer:
    """A consumer beside the query. It commits what it has done before it gives partitions up, unless it is killed."""

    group: MemoryGroup
    name: str
    processed: list[tuple[str, int, int]]
    on_process: Callable[[], None] = lambda: None
    positions: dict[TopicPartition, int] = field(default_factory=dict)

    def poll(self, records: int) -> None:
        """Take part in the group, then process at most so many records of each partition, from the earliest on."""
        if self.group.is_member(self.name, self):
            self.commit()
        else:
            self.positions = {}
        held = self.group.take_part(self.name, self)
        found = self.group.cluster.committed(self.group.name, held)
        self.positions = {
            key: self.positions[key] if key in self.positions else found[key].offset if key in found else 0
            for key in held
        }
        for (topic, partition), position in self.positions.items():
            part = self.group.cluster.part(topic, partition)
            end = min(position + records, part.latest)
            self.processed += [(topic, partition, offset) for offset in range(position, end)]
            self.positions[topic, partition] = end

    def commit(self) -> None:
        found = self.group.cluster.committed(self.group.name, self.positions)
        due = {k: Committed(o) for k, o in self.positions.items() if k not in found or found[k].offset != o}
        if due:
            self.group.cluster.commit(self.group.name, due)

    def leave(self) -> None:
        if self.group.is_member(self.name, self):
            self.commit()
            self.group.expire(self.name)

    def kill(self) -> None:
        """Die without a commit; the group notices at once."""
        self.group.expire(self.name)
        self.positions = {}
