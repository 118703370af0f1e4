"""Design 1's consumer: its requests to ZooKeeper, their order, and its reaction to each answer.

Each method is a dialogue: a generator that yields requests and local actions and is sent the answers, so that the same
rules run on a real ZooKeeper and on the model. The order of the steps decides what can go wrong.
(Kafka 0.8.2: ZookeeperConsumerConnector, ZKRebalancerListener)
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from partita.designs.rules import nodes
from partita.designs.rules.assignment import CannotAssign, Partition, View, assign
from partita.designs.rules.nodes import Registration
from partita.designs.rules.requests import Answer, Children, Create, Delete, Exists, Failure, Get, Node, Put, Request


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Stop reading, drop what was fetched. Answer: the positions that moved since they were committed."""


@dataclass(frozen=True, slots=True)
class StartFetching:
    """Read these partitions from these offsets; None: from the beginning."""

    offsets: Mapping[Partition, int | None]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for this long and do nothing else."""

    ms: int


@dataclass(frozen=True, slots=True)
class AwaitConnection:
    """Wait until there is a session again, the same or a new one."""


@dataclass(frozen=True, slots=True)
class Tell:
    """A fact for the journal."""

    what: str
    facts: Mapping[str, object] = field(default_factory=dict)


Action = Request | StopFetching | StartFetching | Sleep | AwaitConnection | Tell
Positions = Mapping[Partition, int]
Sent = Answer | Positions
Dialogue = Generator[Action, Sent, Answer]
GONE = (Failure.CONNECTION_LOSS, Failure.SESSION_EXPIRED)


class Ending(Enum):
    """How a rebalance ended."""

    DONE = "done"
    NO_BROKER = "no broker"
    GAVE_UP = "gave up"


class ConsumerRebalanceFailed(RuntimeError):
    """A consumer could not start: every attempt of its first rebalance failed."""


class AttemptFailed(Exception):
    """This attempt is over; there may be another."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Kafka 0.8's names: zookeeper.session.timeout.ms, rebalance.max.retries, rebalance.backoff.ms."""

    group: str
    member: str
    topic: str
    streams: int = 1
    strategy: str = "range"
    session_timeout_ms: int = 6000
    retries: int = 4
    backoff_ms: int = 2000
    watch_brokers: bool = False


class ConsumerOne:
    """One consumer of design 1. `owned` is what it believes to own; other members may believe otherwise."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.registration = Registration({settings.topic: settings.streams})
        self.owned: tuple[Partition, ...] = ()
        self.has_seen_no_broker = False

    def register(self, at_ms: int) -> Generator[Action, Sent, None]:
        """Create its own node, waiting a session timeout whenever an older session's node is still there."""
        path = nodes.member(self.settings.group, self.settings.member)
        content = nodes.registration_json(self.registration, at_ms)
        while (yield from create(Create(path, content, ephemeral=True))) is Failure.NODE_EXISTS:
            yield Sleep(self.settings.session_timeout_ms)

    def watch(self) -> Generator[Action, Sent, None]:
        """Watch the members and its own topic: three reads, none of which is used."""
        ids = nodes.members(self.settings.group)
        yield from ask(Exists(ids, watch=True))
        yield from ask(Children(ids, watch=True))
        yield from ask(Exists(nodes.topic(self.settings.topic), watch=True))
        if self.settings.watch_brokers or self.has_seen_no_broker:
            yield from ask(Children(nodes.BROKERS, watch=True))

    def look_again(self, path: str) -> Generator[Action, Sent, None]:
        """Read twice to arm the watch again, as the client library did on an event before it called any listener."""
        yield from ask(Exists(path, watch=True))
        yield from ask(Get(path, watch=True) if path.startswith(f"{nodes.TOPICS}/") else Children(path, watch=True))

    def forget(self) -> None:
        """Own nothing after the session has expired, without a commit."""
        self.owned = ()

    def commit(self, positions: Positions) -> Generator[Action, Sent, None]:
        """Write offsets without a check of who owns the partitions by now."""
        for (topic, number), position in positions.items():
            path = nodes.offset(self.settings.group, topic, number)
            answer = yield from ask(Put(path, str(position)))
            if answer is Failure.NO_NODE:
                yield from create(Create(path, str(position)))
            yield Tell("commit", {"partition": number, "offset": position})

    def rebalance(self) -> Generator[Action, Sent, Ending]:
        """Try up to `retries` times. After GAVE_UP the member is still registered and owns nothing."""
        for number in range(1, self.settings.retries + 1):
            yield Tell("attempt", {"number": number})
            try:
                return (yield from self._attempt())
            except AttemptFailed as reason:
                yield Tell("failed", {"number": number, "reason": str(reason)})
            yield from self._stop_and_commit()
            yield Sleep(self.settings.backoff_ms)
        yield Tell("gave_up")
        return Ending.GAVE_UP

    def _attempt(self) -> Generator[Action, Sent, Ending]:
        yield from self._brokers()
        yield from self._own_registration()
        if not (yield from self._brokers()):
            # Kafka 0.8 watches the brokers only from here on: the next one to come starts the rebalance.
            self.has_seen_no_broker = True
            yield from ask(Children(nodes.BROKERS, watch=True))
            return Ending.NO_BROKER
        yield from self._stop_and_commit()
        # All partitions are given up before the new shares are known, also those it will own again.
        yield from self._release(self.owned)
        self.owned = ()
        view = yield from self._view()
        mine = self._mine(view)
        offsets: dict[Partition, int | None] = {}
        for topic, number in mine:
            answer = yield from ask(Get(nodes.offset(self.settings.group, topic, number)))
            offsets[topic, number] = int(answer.data) if isinstance(answer, Node) else None
        yield from self._claim(mine)
        self.owned = tuple(mine)
        yield StartFetching(offsets)
        return Ending.DONE

    def _brokers(self) -> Generator[Action, Sent, tuple[str, ...]]:
        found = yield from read_children(nodes.BROKERS)
        for name in found:
            yield from read(f"{nodes.BROKERS}/{name}")
        return found

    def _own_registration(self) -> Generator[Action, Sent, Registration]:
        node = yield from read(nodes.member(self.settings.group, self.settings.member))
        return nodes.registration_in(node.data)

    def _stop_and_commit(self) -> Generator[Action, Sent, None]:
        moved = yield StopFetching()
        assert isinstance(moved, Mapping), "StopFetching is answered with positions"
        yield from self.commit(moved)

    def _release(self, partitions: Iterable[Partition]) -> Generator[Action, Sent, None]:
        for topic, number in partitions:
            yield from ask(Delete(nodes.owner(self.settings.group, topic, number)))
            yield Tell("released", {"partition": number})

    def _view(self) -> Generator[Action, Sent, View]:
        """Read all registrations, one after the other. Nothing guarantees that they belong to one moment."""
        own = yield from self._own_registration()
        partitions = {}
        for topic in own.streams:
            partitions[topic] = nodes.partitions_in((yield from read(nodes.topic(topic))).data)
        ids = nodes.members(self.settings.group)
        members = {}
        for name in (yield from read_children(ids)):
            members[name] = nodes.registration_in((yield from read(f"{ids}/{name}")).data)
        yield from read_children(ids)
        yield Tell("view", {"members": sorted(members), "partitions": sum(partitions.values())})
        return View(members, partitions)

    def _mine(self, view: View) -> dict[Partition, str]:
        threads = {f"{self.settings.member}-{number}" for number in range(self.settings.streams)}
        try:
            everyone = assign(view, self.settings.strategy)
            return {partition: everyone[partition] for partition in sorted(everyone) if everyone[partition] in threads}
        except CannotAssign as reason:
            raise AttemptFailed(str(reason)) from None

    def _claim(self, mine: Mapping[Partition, str]) -> Generator[Action, Sent, None]:
        """Create the owner nodes, all of them; after a conflict delete those just created."""
        claimed, lost = [], []
        for (topic, number), thread in mine.items():
            path = nodes.owner(self.settings.group, topic, number)
            holder = yield from self._try_claim(path, thread)
            if holder == thread:
                claimed.append((topic, number))
                yield Tell("claimed", {"partition": number})
            else:
                lost.append(number)
                yield Tell("conflict", {"partition": number, "holder": holder})
        if lost:
            yield from self._release(claimed)
            raise AttemptFailed(f"partition {lost[0]} and {len(lost) - 1} more are owned by others")

    def _try_claim(self, path: str, thread: str) -> Generator[Action, Sent, str]:
        """Return the owner of the node after the try: ourselves, or another; "" if the other went away meanwhile."""
        answer = yield from create(Create(path, thread, ephemeral=True))
        if answer is None:
            return thread
        found = yield from ask(Get(path))
        return found.data if isinstance(found, Node) else ""


def ask(request: Request) -> Dialogue:
    """Send one request; while the connection is gone wait and ask again, in whatever session there is then."""
    while True:
        answer = yield request
        assert not isinstance(answer, Mapping), "a request is answered by ZooKeeper"
        if answer not in GONE:
            return answer
        yield AwaitConnection()


def read(path: str) -> Generator[Action, Sent, Node]:
    """The node at `path`. Raises AttemptFailed if it is not there."""
    answer = yield from ask(Get(path))
    if not isinstance(answer, Node):
        raise AttemptFailed(f"{path} is gone")
    return answer


def read_children(path: str) -> Generator[Action, Sent, tuple[str, ...]]:
    """The names below `path`. Raises AttemptFailed if it is not there."""
    answer = yield from ask(Children(path))
    if not isinstance(answer, tuple):
        raise AttemptFailed(f"{path} is gone")
    return answer


def create(request: Create) -> Dialogue:
    """Create a node, and its parents if they are missing."""
    answer = yield from ask(request)
    if answer is Failure.NO_NODE:
        names = request.path.split("/")[1:-1]
        for end in range(len(names)):
            yield from ask(Create("/" + "/".join(names[: end + 1])))
        answer = yield from ask(request)
    return answer
