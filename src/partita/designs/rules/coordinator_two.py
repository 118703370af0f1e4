"""Design 2's coordinator: it learns of members by requests and from ZooKeeper, plans for them, and writes the plan.

Requests and facts go in with the time; effects come out, to be carried out in order. A plan is answered only after it
was written. (Kafka, early 2015: ConsumerCoordinator, before members assigned the partitions themselves)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from partita.designs.rules import nodes
from partita.designs.rules.assignment import STRATEGIES, Partition
from partita.designs.rules.requests import Check, Create, Multi, Put
from partita.protocol.error_codes import ErrorCode

Token: TypeAlias = object


class State(Enum):
    """The state of a group."""

    STABLE = "Stable"
    PREPARING = "PreparingRebalance"
    REBALANCING = "Rebalancing"


@dataclass(frozen=True, slots=True)
class Join:
    """A member's request to join or rejoin. `name` is its node in ZooKeeper; `member_id` is empty the first time."""

    group: str
    name: str
    member_id: str
    session_timeout_ms: int
    strategy: str
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a join."""

    token: Token
    error: ErrorCode
    generation: int = -1
    member_id: str = ""
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Write a plan; report the outcome to `planned`."""

    group: str
    generation: int
    multi: Multi


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Delete the registration of a member that was thrown out."""

    path: str


Effect = Answer | WritePlan | RemoveNode


@dataclass(slots=True)
class Member:
    """One member. `token` waits for the plan; without one it has to show itself until `expires_ms`."""

    topics: frozenset[str]
    session_timeout_ms: int
    expires_ms: int
    token: Token | None = None


@dataclass(slots=True)
class Group:
    """One group. `plan` is what ZooKeeper has, or will have once the plan in hand is written.

    `written` maps every owner node that exists to its content: a plan changes only those that differ.
    """

    name: str
    strategy: str = ""
    state: State = State.STABLE
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    plan: dict[Partition, str] = field(default_factory=dict)
    prepared_until_ms: int = 0
    answering: dict[str, Token] = field(default_factory=dict)
    written: dict[Partition, str] = field(default_factory=dict)
    has_generation_node: bool = False

    def shares(self, member_id: str) -> tuple[Partition, ...]:
        """Return a member's share of the plan."""
        return tuple(sorted(partition for partition, owner in self.plan.items() if owner == member_id))


class CoordinatorTwo:
    """One coordinator process. `epochs` maps the slots it serves to the version of their epoch node."""

    def __init__(self, *, session_ms_min: int = 6000, session_ms_max: int = 30000) -> None:
        self.session_ms_min = session_ms_min
        self.session_ms_max = session_ms_max
        self.is_active = True
        self.epochs: dict[int, int] = {}
        self.groups: dict[str, Group] = {}
        self.partitions: dict[str, int] = {}

    def take(self, slot: int, epoch_version: int, groups: Iterable[Group] = ()) -> None:
        """Serve a slot from now on. Of its groups ZooKeeper has generation and plan, but no member."""
        self.epochs[slot] = epoch_version
        self.groups |= {group.name: group for group in groups}

    def resign(self, slot: int) -> list[Effect]:
        """Stop serving a slot; members that wait are sent to look for another coordinator."""
        self.epochs.pop(slot, None)
        gone = [group for group in self.groups.values() if nodes.slot_of(group.name) == slot]
        effects: list[Effect] = []
        for group in gone:
            waiting = [*group.answering.values(), *(m.token for m in group.members.values() if m.token is not None)]
            effects += [Answer(token, ErrorCode.NOT_COORDINATOR) for token in waiting]
            del self.groups[group.name]
        return effects

    def refusal(self, name: str) -> ErrorCode:
        """Return why this coordinator does not serve a group; NONE if it does."""
        if not self.is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE if nodes.slot_of(name) in self.epochs else ErrorCode.NOT_COORDINATOR

    def join(self, token: Token, request: Join, now_ms: int) -> list[Effect]:
        """Apply the guards in Kafka's order; then answer the same share again, or rebalance and answer later."""
        refused = self._refuse_join(request)
        if refused is not ErrorCode.NONE:
            return [Answer(token, refused)]
        group = self.groups.setdefault(request.group, Group(request.group))
        group.strategy = group.strategy if group.members else request.strategy
        member_id = request.member_id or request.name
        member = group.members.get(member_id)
        expires_ms = now_ms + request.session_timeout_ms
        if member is not None and request.member_id and member.topics == request.topics and group.state is State.STABLE:
            member.expires_ms = expires_ms
            return [Answer(token, ErrorCode.NONE, group.generation, member_id, group.shares(member_id))]
        earlier = [] if member is None or member.token is None else [member.token]
        group.members[member_id] = Member(request.topics, request.session_timeout_ms, expires_ms, token)
        return [*(Answer(t, ErrorCode.UNKNOWN_MEMBER_ID) for t in earlier), *self._prepare(group, now_ms)]

    def _refuse_join(self, request: Join) -> ErrorCode:
        group = self.groups.get(request.group)
        guards = (
            (self.refusal(request.group) is not ErrorCode.NONE, self.refusal(request.group)),
            (request.strategy not in STRATEGIES, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (
                not self.session_ms_min <= request.session_timeout_ms <= self.session_ms_max,
                ErrorCode.INVALID_SESSION_TIMEOUT,
            ),
            (group is None and bool(request.member_id), ErrorCode.UNKNOWN_MEMBER_ID),
            (
                group is not None and bool(group.members) and group.strategy != request.strategy,
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            ),
            (
                group is not None and bool(request.member_id) and request.member_id not in group.members,
                ErrorCode.UNKNOWN_MEMBER_ID,
            ),
        )
        return next((error for holds, error in guards if holds), ErrorCode.NONE)

    def heartbeat(self, name: str, member_id: str, generation: int, now_ms: int) -> ErrorCode:
        """NONE, ILLEGAL_GENERATION (join again), or UNKNOWN_MEMBER_ID (join as new)."""
        refused, group, member = self._find(name, member_id)
        if member is None or group is None:
            return refused
        member.expires_ms = now_ms + member.session_timeout_ms
        return ErrorCode.NONE if self._is_current(group, generation) else ErrorCode.ILLEGAL_GENERATION

    def commit(
        self, name: str, member_id: str, generation: int, partitions: Iterable[Partition]
    ) -> dict[Partition, ErrorCode]:
        """Return which offsets may be written: only those of its own share, in the current generation."""
        refused, group, member = self._find(name, member_id)
        if group is None or member is None:
            return dict.fromkeys(partitions, refused)
        if not self._is_current(group, generation):
            return dict.fromkeys(partitions, ErrorCode.ILLEGAL_GENERATION)
        mine = set(group.shares(member_id))
        return {p: ErrorCode.NONE if p in mine else ErrorCode.INVALID_REQUEST for p in partitions}

    def _find(self, name: str, member_id: str) -> tuple[ErrorCode, Group | None, Member | None]:
        refused = self.refusal(name)
        if refused is not ErrorCode.NONE:
            return refused, None, None
        group = self.groups.get(name)
        return ErrorCode.UNKNOWN_MEMBER_ID, group, group.members.get(member_id) if group is not None else None

    def _is_current(self, group: Group, generation: int) -> bool:
        return group.state is State.STABLE and generation == group.generation

    def node_gone(self, name: str, present: Iterable[str], now_ms: int) -> list[Effect]:
        """Take ZooKeeper's new list of registrations. New ones will send a join; missing ones are removed."""
        group = self.groups.get(name)
        if group is None:
            return []
        there = set(present)
        return self._remove(group, [m for m in group.members if m not in there], now_ms, has_node=False)

    def topic_has(self, topic: str, count: int, now_ms: int) -> list[Effect]:
        """Record a topic's partition count; if it changed, the groups that read it rebalance."""
        before, self.partitions[topic] = self.partitions.get(topic), count
        if before in (None, count):
            return []
        readers = [g for g in self.groups.values() if any(topic in member.topics for member in g.members.values())]
        return [effect for group in readers for effect in self._prepare(group, now_ms)]

    def next_deadline_ms(self) -> int | None:
        """The time at which `on_deadline` has something to do."""
        found = [m.expires_ms for g in self.groups.values() for m in g.members.values() if m.token is None]
        found += [g.prepared_until_ms for g in self.groups.values() if g.state is State.PREPARING]
        return min(found, default=None)

    def on_deadline(self, now_ms: int) -> list[Effect]:
        """Throw out members that were silent for too long; end the waiting for those that did not join again."""
        effects: list[Effect] = []
        for group in list(self.groups.values()):
            silent = [m for m, its in group.members.items() if its.token is None and its.expires_ms <= now_ms]
            effects += self._remove(group, silent, now_ms, has_node=True)
            if group.state is State.PREPARING and group.prepared_until_ms <= now_ms:
                effects += self._complete(group, now_ms)
        return effects

    def planned(self, name: str, is_written: bool, now_ms: int) -> list[Effect]:
        """Take the outcome of a write: the plan is written, or another has taken the slot and this one resigns."""
        group = self.groups.get(name)
        if group is None:
            return []
        if not is_written:
            return self.resign(nodes.slot_of(name))
        group.state, group.has_generation_node = State.STABLE, True
        group.written |= group.plan
        answering, group.answering = group.answering, {}
        effects: list[Effect] = []
        for member_id, token in answering.items():
            if member := group.members.get(member_id):
                member.expires_ms = now_ms + member.session_timeout_ms
            shares = group.shares(member_id)
            effects.append(Answer(token, ErrorCode.NONE, group.generation, member_id, shares))
        if any(member.token is not None for member in group.members.values()) or set(answering) - set(group.members):
            effects += self._prepare(group, now_ms)
        return effects

    def _remove(self, group: Group, members: list[str], now_ms: int, *, has_node: bool) -> list[Effect]:
        effects: list[Effect] = []
        for member_id in members:
            gone = group.members.pop(member_id)
            effects += [] if gone.token is None else [Answer(gone.token, ErrorCode.UNKNOWN_MEMBER_ID)]
            effects += [RemoveNode(nodes.member(group.name, member_id))] if has_node else []
        return effects + self._prepare(group, now_ms) if members else effects

    def _prepare(self, group: Group, now_ms: int) -> list[Effect]:
        """Begin to wait until all have joined again, for the largest session timeout; complete when all have."""
        if group.state is State.STABLE:
            group.state = State.PREPARING
            group.prepared_until_ms = now_ms + max((m.session_timeout_ms for m in group.members.values()), default=0)
        everybody_waits = all(member.token is not None for member in group.members.values())
        return self._complete(group, now_ms) if group.state is State.PREPARING and everybody_waits else []

    def _complete(self, group: Group, now_ms: int) -> list[Effect]:
        """Remove members that did not come, assign, and have the plan written."""
        absent = [member_id for member_id, member in group.members.items() if member.token is None]
        effects: list[Effect] = [RemoveNode(nodes.member(group.name, member_id)) for member_id in absent]
        for member_id in absent:
            del group.members[member_id]
        if not group.members:
            group.state = State.STABLE
            return effects
        group.state = State.REBALANCING
        for member_id, member in group.members.items():
            group.answering[member_id], member.token = member.token, None
            member.expires_ms = now_ms + member.session_timeout_ms
        group.plan = self._assigned(group)
        group.generation += 1
        return [*effects, WritePlan(group.name, group.generation, self._multi(group))]

    def _assigned(self, group: Group) -> dict[Partition, str]:
        topics = sorted({topic for member in group.members.values() for topic in member.topics})
        readers = {t: sorted(name for name, m in group.members.items() if t in m.topics) for t in topics}
        counts = {topic: self.partitions.get(topic, 0) for topic in topics}
        return plan_range(readers, counts) if group.strategy == "range" else plan_roundrobin(readers, counts)

    def _multi(self, group: Group) -> Multi:
        slot = nodes.slot_of(group.name)
        writes: list[Create | Put | Check] = [Check(nodes.epoch(slot), self.epochs[slot])]
        path, content = nodes.generation(group.name), str(group.generation)
        writes.append(Put(path, content) if group.has_generation_node else Create(path, content))
        for (topic, number), owner in sorted(group.plan.items()):
            path = nodes.owner(group.name, topic, number)
            if (topic, number) not in group.written:
                writes.append(Create(path, owner))
            elif group.written[topic, number] != owner:
                writes.append(Put(path, owner))
        return Multi(tuple(writes))


def plan_range(readers: Mapping[str, list[str]], counts: Mapping[str, int]) -> dict[Partition, str]:
    """Consecutive partitions of each topic; the first members get one more where it does not divide."""
    found: dict[Partition, str] = {}
    for topic, members in readers.items():
        each, extra = divmod(counts[topic], len(members))
        shares = [name for i, name in enumerate(members) for _ in range(each + (i < extra))]
        found |= {(topic, number): name for number, name in enumerate(shares)}
    return found


def plan_roundrobin(readers: Mapping[str, list[str]], counts: Mapping[str, int]) -> dict[Partition, str]:
    """All partitions in order, dealt in turn; a member that does not read the topic is passed over."""
    everybody = sorted({name for members in readers.values() for name in members})
    found, turn = {}, 0
    for topic in sorted(readers):
        for number in range(counts[topic]):
            while everybody[turn % len(everybody)] not in readers[topic]:
                turn += 1
            found[topic, number] = everybody[turn % len(everybody)]
            turn += 1
    return found
