"""Play one history on two brokers at once and compare every answer.

Member ids and times differ by nature: ids are replaced by symbols in order of appearance, times are left out.
Where Kafka leaves an order open (members, topics in answers), both sides are sorted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from conformance.histories import CLIENTS, PARTITIONS, TOPICS, History, Step, subscription
from conformance.wire import RawClient
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import ZERO_UUID, Message, Structure

SILENCE_S = 0.15
"""Nobody answered for so long: the request is parked on both sides."""
NO_TOPIC = "plums"
PATIENCE_S = 5.0
"""One side answered; the other has so long to follow."""
OFFERS = (["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["range"])
MEMBER_ID = re.compile(r"^(?:client-\d|i\d)-[0-9a-f]{8}-[0-9a-f-]{27}$")
LEFT_OUT = frozenset({"throttle_time_ms", "host", "port", "node_id", "client_host"})


ANSWERED_LATE = {"join": {"NOT_COORDINATOR"}, "sync": {"NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"}}
"""Deviation: KAFKA-20938. Apache Kafka 4.3.1 never answers a parked join or sync that a later one of the same member
superseded, nor the parked sync of a removed member; Partita answers NOT_COORDINATOR and UNKNOWN_MEMBER_ID."""


class OpenChoice(Exception):
    """The brokers chose differently where Kafka leaves the choice open; nothing after it can be compared."""


@dataclass(slots=True)
class Side:
    """One broker's view of a history: its connections and the ids it gave."""

    name: str
    bootstrap: str
    group: str
    has_static: bool = False
    connections: list[list[RawClient]] = field(default_factory=lambda: [[] for _ in range(CLIENTS)])
    member_ids: list[str] = field(default_factory=lambda: [""] * CLIENTS)
    generations: list[int] = field(default_factory=lambda: [-1] * CLIENTS)
    leaders: list[str] = field(default_factory=lambda: [""] * CLIENTS)
    symbols: dict[str, str] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=lambda: {NO_TOPIC: bytes([1] * 16)})

    async def connection(self, client: int) -> RawClient:
        """An idle connection: a broker reads nothing more from one that waits for a parked request."""
        for connection in self.connections[client]:
            if connection.is_idle:
                return connection
        self.connections[client].append(await RawClient(f"client-{client}").connect(self.bootstrap))
        return self.connections[client][-1]

    def close(self) -> None:
        for connections in self.connections:
            for connection in connections:
                connection.close()

    async def ready(self, group: str) -> None:
        """Return when the group's coordinator has loaded."""
        probe = HeartbeatRequest(group_id=group, generation_id=1, member_id="probe")
        connection = await self.connection(0)
        topics = [MetadataRequestTopic(name=name) for name in TOPICS]
        answer: Any = await connection.ask(MetadataRequest(topics=topics), 12)
        self.topic_ids |= {topic.name: topic.topic_id for topic in answer.topics}
        for _ in range(200):
            connection = await self.connection(0)
            await connection.ask(FindCoordinatorRequest(key=group), 1)
            answer = await connection.ask(probe, 0)
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{self.name} has no coordinator for {group}")

    def symbol(self, member_id: str, is_new_allowed: bool) -> str:
        if not is_new_allowed:
            return self.symbols.get(member_id, "unknown yet")
        return self.symbols.setdefault(member_id, f"M{len(self.symbols)}")


@dataclass(slots=True)
class Pending:
    """One request on its way on both sides."""

    index: int
    step: Step
    futures: tuple[asyncio.Future[Message], asyncio.Future[Message]]


class Lockstep:
    """Plays one history; `run` returns the differences as text, in order."""

    def __init__(self, sides: tuple[Side, Side], silence_s: float = SILENCE_S) -> None:
        self.sides = sides
        self.silence_s = silence_s
        self.pending: list[Pending] = []
        self.differences: list[str] = []
        self.answers = 0
        self.superseded = 0

    async def run(self, history: History) -> list[str]:
        for side in self.sides:
            side.has_static = any(step.instance is not None for step in history.steps)
            await side.ready(history.group)
        for index, step in enumerate(history.steps):
            requests = [build(step, history, side) for side in self.sides]
            futures = [
                (await side.connection(step.client)).send(request, step.version)
                for side, request in zip(self.sides, requests, strict=True)
            ]
            self.pending.append(Pending(index, step, (futures[0], futures[1])))
            try:
                await self._settle()
            except OpenChoice:
                break
            if self.differences:
                break
        return self.differences

    async def _settle(self) -> None:
        """Take every answer both sides give; return when both are silent."""
        while self.pending:
            newest = self.pending[-1]
            silence = self.silence_s if newest.step.verb in ("join", "sync") else PATIENCE_S
            waiting = [future for p in self.pending for future in p.futures]
            if not any(f.done() for f in waiting):
                await asyncio.wait(waiting, timeout=silence, return_when=asyncio.FIRST_COMPLETED)
            answered = [p for p in self.pending if p.futures[0].done() or p.futures[1].done()]
            if not answered:
                if newest.step.verb not in ("join", "sync"):
                    self.differences.append(f"{_where(newest)}: neither side answers")
                return
            for p in answered:
                self.pending.remove(p)
                await asyncio.wait(p.futures, timeout=PATIENCE_S)
                self._compare(p)

    def _compare(self, p: Pending) -> None:
        self.answers += 1
        seen = [self._outcome(side, future) for side, future in zip(self.sides, p.futures, strict=True)]
        if seen[0] != seen[1]:
            if _is_superseded(p, seen[0], seen[1]):
                self.superseded += 1
                return
            if _is_open_choice(seen[0], seen[1]) or _is_open_tie(p.step, seen[0], seen[1]):
                raise OpenChoice
            text = "".join(f"\n    {side.name:8} {view}" for side, view in zip(self.sides, seen, strict=True))
            self.differences.append(f"{_where(p)}{text}")
        for side, future in zip(self.sides, p.futures, strict=True):
            if future.done() and future.exception() is None:
                learn(side, p.step, future.result())

    def _outcome(self, side: Side, future: asyncio.Future[Message]) -> Any:
        if not future.done():
            return "no answer"
        if future.exception() is not None:
            return "connection closed"
        return plain(future.result(), side)


def _where(p: Pending) -> str:
    s = p.step
    who = f"client {s.client} {s.verb} v{s.version} member={s.member!r} generation={s.generation} {s.instance}"
    return f"step {p.index} {who}"


def _is_superseded(p: Pending, kafka: Any, partita: Any) -> bool:
    allowed = ANSWERED_LATE.get(p.step.verb, set())
    return kafka == "no answer" and isinstance(partita, dict) and partita["error_code"] in allowed


def _is_open_choice(a: Any, b: Any) -> bool:
    """Another leader or another protocol in an otherwise successful join: Kafka picks by hash order."""
    if not (isinstance(a, dict) and isinstance(b, dict) and a.get("error_code") == b.get("error_code") == 0):
        return False
    return any(a.get(name) != b.get(name) for name in ("leader", "is_leader", "protocol_name") if "leader" in a)


def _is_open_tie(step: Step, a: Any, b: Any) -> bool:
    """A static member is replaced at once where the vote with its new list keeps the protocol, else all rebalance.

    A tie between two protocols goes by hash order in Kafka, and to the leader's first here.
    """
    if step.verb != "join" or step.instance is None or len(_names(step)) == 1:
        return False
    answered, silent = (b, a) if a == "no answer" else (a, b)
    return silent == "no answer" and isinstance(answered, dict) and answered.get("error_code") == 0


def _names(step: Step) -> list[str]:
    """The protocols a join offers, most wanted first."""
    return Random(step.choice).choice(OFFERS)


def plain(value: Any, side: Side, name: str = "", is_new_allowed: bool = True) -> Any:
    """A message as comparable plain values, with ids as symbols and open orders sorted.

    Only an id told to its own client gets a symbol; in lists the others stay unknown, for their order is open.
    """
    if isinstance(value, DescribedGroupMember) and side.has_static:
        value = replace_client(value)
    if isinstance(value, JoinGroupResponse):
        fields = {f: plain(getattr(value, f), side, f, f != "leader") for f in value.__slots__ if f not in LEFT_OUT}
        return {**fields, "is_leader": value.leader == value.member_id}
    if isinstance(value, Structure):
        return {f: plain(getattr(value, f), side, f, is_new_allowed) for f in value.__slots__ if f not in LEFT_OUT}
    if isinstance(value, list):
        mine = [item for item in value if not isinstance(item, ListedGroup) or item.group_id == side.group]
        return sorted((plain(item, side, name, False) for item in mine), key=repr)
    if isinstance(value, str) and MEMBER_ID.match(value):
        return side.symbol(value, is_new_allowed)
    if name == "topic_id" and value != ZERO_UUID:
        return next((known for known, topic_id in side.topic_ids.items() if topic_id == value), "another topic")
    if name == "error_code" and value != 0:
        return ErrorCode(value).name
    return bytes(value) if isinstance(value, memoryview) else value


def replace_client(member: DescribedGroupMember) -> DescribedGroupMember:
    """Deviation: KAFKA-15704. Kafka describes a static member with the client id of the process it replaced.

    Old versions do not say who is static, so no client id is compared in a history with static members.
    """
    named = {f: getattr(member, f) for f in member.__slots__}
    return DescribedGroupMember(**{**named, "client_id": "either"})


def learn(side: Side, step: Step, response: Any) -> None:
    """What a client takes from an answer: its member id and generation."""
    if step.verb != "join":
        return
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        side.member_ids[step.client] = response.member_id
    elif response.error_code == 0:
        side.member_ids[step.client] = response.member_id
        side.generations[step.client] = response.generation_id
        side.leaders[step.client] = response.leader
    elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID and step.member == "mine":
        side.member_ids[step.client] = ""


def build(step: Step, history: History, side: Side) -> Message:
    """The step's request with this side's own ids."""
    ids = {"mine": side.member_ids[step.client], "": "", "bogus": "nobody-you-know"}
    ids["other"] = side.member_ids[(step.client + 1) % CLIENTS]
    known = side.generations[step.client]
    generation = {"current": known, "older": known - 1, "newer": known + 1, "none": -1}[step.generation]
    return BUILDERS[step.verb](step, Random(step.choice), history.group, ids[step.member], generation, side)


def _join(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    names = random.choice(OFFERS)
    odd = random.random()
    return JoinGroupRequest(
        group_id="" if odd < 0.01 else group,
        session_timeout_ms=random.choice((10, 10_000_000)) if 0.01 < odd < 0.03 else 600_000,
        rebalance_timeout_ms=600_000,
        member_id=member,
        group_instance_id=step.instance,
        protocol_type="other" if 0.03 < odd < 0.05 else "" if 0.05 < odd < 0.06 else "consumer",
        protocols=[]
        if 0.06 < odd < 0.07
        else [JoinGroupRequestProtocol(name=n, metadata=subscription(random)) for n in names],
        reason="testing",
    )


def _sync(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    assignments = []
    if side.leaders[step.client] == member and member:
        assignments = [
            SyncGroupRequestAssignment(member_id=known, assignment=f"for client {i}".encode())
            for i, known in enumerate(side.member_ids)
            if known and random.random() < 0.9
        ]
    odd = random.random()
    return SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=step.instance,
        protocol_type=None if odd < 0.03 else "other" if odd < 0.06 else "consumer",
        protocol_name="nonsense" if 0.06 < odd < 0.09 else "range", assignments=assignments,
    )  # fmt: skip


def _heartbeat(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    return HeartbeatRequest(
        group_id=group if random.random() < 0.97 else "", generation_id=generation, member_id=member,
        group_instance_id=step.instance,
    )  # fmt: skip


def _leave(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    members = [MemberIdentity(member_id=member, group_instance_id=step.instance, reason="testing")]
    if random.random() < 0.2:
        members.append(MemberIdentity(member_id=random.choice((member, "nobody"))))
    return LeaveGroupRequest(group_id=group, member_id=member, members=members)


def _commit(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    topics = [
        OffsetCommitRequestTopic(
            name=name,
            topic_id=side.topic_ids[name],
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=random.randrange(PARTITIONS + 1),
                    committed_offset=random.choice((0, 7, 1000, 2**62)),
                    committed_leader_epoch=random.choice((-1, 0, 3)),
                    committed_metadata=random.choice(("", "note", None, "x" * 5000)),
                )
            ],
        )
        for name in random.sample((*TOPICS, NO_TOPIC), random.randint(1, 2))
    ]
    # A commit refused whole is a Deviation (see group/offsets/commit.py): one partition is always acceptable.
    acceptable = OffsetCommitRequestPartition(partition_index=2, committed_offset=1)
    topic_id = side.topic_ids[TOPICS[1]]
    topics.append(OffsetCommitRequestTopic(name=TOPICS[1], topic_id=topic_id, partitions=[acceptable]))
    return OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member, group_instance_id=step.instance,
        topics=topics,
    )  # fmt: skip


def _fetch(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    wanted = {name: list(range(PARTITIONS + 1)) for name in random.sample((*TOPICS, NO_TOPIC), 2)}
    everything = step.version >= 2 and random.random() < 0.4
    old = [OffsetFetchRequestTopic(name=n, partition_indexes=p) for n, p in wanted.items()]
    new = [OffsetFetchRequestTopics(name=n, topic_id=side.topic_ids[n], partition_indexes=p) for n, p in wanted.items()]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=None if everything else new)]
    if random.random() < 0.3:
        groups.append(OffsetFetchRequestGroup(group_id="no-such-group", topics=None if everything else new))
    return OffsetFetchRequest(
        group_id=group, topics=None if everything else old, groups=groups, require_stable=random.random() < 0.5
    )


def _describe(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    groups = [group] if random.random() < 0.7 else [group, "no-such-group"]
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=False)


def _list(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    states = random.choice(([], [], ["stable", " Empty "], ["no such state"], ["PreparingRebalance"]))
    return ListGroupsRequest(states_filter=states, types_filter=random.choice(([], ["classic"], ["Consumer"])))


def _delete(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    return DeleteGroupsRequest(groups_names=random.choice(([group], [group, group], ["no-such-group", group])))


def _offset_delete(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    partitions = [OffsetDeleteRequestPartition(partition_index=i) for i in range(random.randint(1, PARTITIONS + 1))]
    names = random.sample((*TOPICS, NO_TOPIC), random.randint(1, 2))
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in names]
    return OffsetDeleteRequest(group_id=group if random.random() < 0.8 else "no-such-group", topics=topics)


def _find(step: Step, random: Random, group: str, member: str, generation: int, side: Side) -> Message:
    return FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group])


BUILDERS: dict[str, Callable[[Step, Random, str, str, int, Side], Message]] = {
    "join": _join, "sync": _sync, "heartbeat": _heartbeat, "leave": _leave, "commit": _commit, "fetch": _fetch,
    "describe": _describe, "list": _list, "delete": _delete, "offset_delete": _offset_delete, "find": _find,
}  # fmt: skip
