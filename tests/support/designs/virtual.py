"""Consumers of design 1 on the model of ZooKeeper, in virtual time: each request of each member can interleave."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random

from partita.designs.rules import nodes
from partita.designs.rules.assignment import Partition
from partita.designs.rules.consumer_one import (
    Action,
    AwaitConnection,
    ConsumerOne,
    Ending,
    Sent,
    Settings,
    Sleep,
    StartFetching,
    StopFetching,
    Tell,
)
from partita.designs.rules.requests import Create, Put, Request
from support.designs.zookeeper_model import READS, ZooKeeperModel

TOPIC, GROUP = "t", "g"


@dataclass
class Member:
    """One consumer and the journal of what it told."""

    rules: ConsumerOne
    session: int
    reading: dict[Partition, int | None] = field(default_factory=dict)
    told: list[Tell] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    is_busy: bool = False
    is_dirty: bool = False
    is_alive: bool = True

    def count(self, what: str) -> int:
        return sum(told.what == what for told in self.told)


class World:
    """A group on a model. `hop_ms` draws how long a request is on its way."""

    def __init__(self, partitions: int, *, lags_ms: tuple[int, ...] = (0,), seed: int = 0, hop_ms: int = 3) -> None:
        self.model = ZooKeeperModel(lags_ms)
        self.dice = Random(seed)
        self.hop_ms = hop_ms
        self.now_ms = 0
        self.members: dict[str, Member] = {}
        self.counts: Counter[str] = Counter()
        self._queue: list[tuple[int, int, Generator[None, None, None]]] = []
        self._order = 0
        self.after_step: Callable[[], None] = lambda: None
        self.keeper = self.model.connect(len(lags_ms) - 1)
        for path in ("/brokers", nodes.BROKERS, nodes.TOPICS, "/consumers", f"/consumers/{GROUP}"):
            self.model.ask(self.keeper, Create(path), 0)
        for path in ("ids", "owners", f"owners/{TOPIC}", "offsets", f"offsets/{TOPIC}"):
            self.model.ask(self.keeper, Create(f"/consumers/{GROUP}/{path}"), 0)
        self.model.ask(self.keeper, Create(nodes.topic(TOPIC), nodes.topic_json([0] * partitions)), 0)
        self.broker_comes()
        self.now_ms = max(lags_ms)
        self.model.advance(self.now_ms)

    def broker_comes(self, broker_id: int = 0) -> None:
        content = nodes.broker_json("localhost", 9092, 0)
        self.model.ask(self.keeper, Create(nodes.broker(broker_id), content, ephemeral=True), self.now_ms)

    def grow(self, partitions: int) -> None:
        self.model.ask(self.keeper, Put(nodes.topic(TOPIC), nodes.topic_json([0] * partitions)), self.now_ms)

    def join(self, name: str, *, server: int = 0, **settings: int | str | bool) -> Member:
        member = Member(
            ConsumerOne(Settings(GROUP, name, TOPIC, **settings)),  # type: ignore[arg-type]  # options by name
            self.model.connect(server),
        )
        self.members[name] = member
        self._start(self._run(member, self._life(member)))
        return member

    def crash(self, name: str) -> None:
        member = self.members.pop(name)
        member.is_alive = False
        self.model.end(member.session, self.now_ms)

    def _life(self, member: Member) -> Generator[Action, Sent, None]:
        member.is_busy = True
        yield from member.rules.register(0)
        yield from member.rules.watch()
        yield from self._rebalances(member)

    def _rebalances(self, member: Member) -> Generator[Action, Sent, None]:
        member.is_busy = True
        while True:
            member.is_dirty = False
            member.endings.append((yield from member.rules.rebalance()))
            if not member.is_dirty:
                break
        member.is_busy = False

    def _noticed(self, member: Member, path: str) -> Generator[Action, Sent, None]:
        yield from member.rules.look_again(path)
        member.is_dirty = True
        if not member.is_busy:
            yield from self._rebalances(member)

    def _run(self, member: Member, dialogue: Generator[Action, Sent, None]) -> Generator[None, None, None]:
        answer: Sent = None
        while member.is_alive:
            try:
                action = dialogue.send(answer)
            except StopIteration:
                return
            answer = None
            match action:
                case StopFetching():
                    answer, member.reading = {}, {}
                case StartFetching(offsets):
                    member.reading = dict(offsets)
                case Sleep(ms):
                    yield from self._wait(ms)
                case Tell():
                    member.told.append(action)
                case AwaitConnection():
                    return
                case _:
                    yield from self._wait(self.dice.randint(0, self.hop_ms))
                    answer, ready_ms = self.model.ask(member.session, self._counted(action), self.now_ms)
                    yield from self._wait(ready_ms - self.now_ms + self.dice.randint(0, self.hop_ms))

    def _counted(self, request: Request) -> Request:
        self.counts["reads" if isinstance(request, READS) else "writes"] += 1
        return request

    def _wait(self, ms: int) -> Generator[None, None, None]:
        self._wake_ms = self.now_ms + ms
        yield

    def _start(self, process: Generator[None, None, None]) -> None:
        self._push(self.now_ms, process)

    def _push(self, at_ms: int, process: Generator[None, None, None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (at_ms, self._order, process))

    def run(self, *, until_ms: int | None = None) -> None:
        """Until nothing is left to do, or until this moment."""
        while True:
            self._deliver()
            changes_ms = self.model.next_change_ms()
            due = [at for at in (self._queue[0][0] if self._queue else None, changes_ms) if at is not None]
            if not due or (until_ms is not None and min(due) > until_ms):
                self.now_ms = max(self.now_ms, until_ms or 0)
                return
            self.now_ms = max(self.now_ms, min(due))
            self.model.advance(self.now_ms)
            if self._queue and self._queue[0][0] <= self.now_ms:
                process = heapq.heappop(self._queue)[2]
                if next(process, self) is None:
                    self._push(self._wake_ms, process)
            self.after_step()

    def _deliver(self) -> None:
        by_session = {member.session: member for member in self.members.values()}
        while self.model.events:
            _, session, event = self.model.events.popleft()
            if session in by_session:
                self.counts["events"] += 1
                self._start(self._run(by_session[session], self._noticed(by_session[session], event.path)))

    def owners(self) -> dict[int, list[str]]:
        """By partition, who reads it now."""
        found: dict[int, list[str]] = {}
        for name, member in self.members.items():
            for _, number in member.reading:
                found.setdefault(number, []).append(name)
        return found
