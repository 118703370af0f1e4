"""The servers of all runs of a comparison: ZooKeeper, a broker with a listener per member, and the taps between."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from partita import Admin, Broker, Producer
from partita.admin import NewTopic
from partita.broker.config import BROKER_OPTIONS
from partita.designs.journal import Committed as CommittedOffset
from partita.designs.members.settings import Timings
from partita.designs.tap import KAFKA, Tap, Taps
from partita.designs.zookeeper.ports import free_ports
from partita.designs.zookeeper.server import Ensemble, ZooKeeper
from partita.explain.facts import Committed, Fact
from partita.observe.follow_group_log import GroupLog
from partita.observe.kept import Kept

NODES = 2
DATA_NODE, COORDINATOR_NODE = 0, 1


class Ground:
    """`with Ground(members=6) as ground`: servers run, nothing else does yet. `members` is how many may run at once."""

    def __init__(self, members: int, timings: Timings, folder: Path | None = None) -> None:
        self.timings = timings
        self.members = members
        self._folder = folder
        self._stack = ExitStack()
        self._zookeeper: ZooKeeper | None = None
        self._ensemble: Ensemble | None = None
        self.kafka_taps: list[list[Tap]] = []

    def __enter__(self) -> Ground:
        with ExitStack() as stack:
            self.folder = self._folder or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-designs-"))
            )
            self.taps = stack.enter_context(Taps())
            ports = runs_of_ports(2 * self.members, NODES)
            bound, advertised = ports[: self.members], ports[self.members :]
            options = self._options(bound, advertised)
            self.broker = stack.enter_context(Broker(nodes=NODES, **options))  # type: ignore[arg-type]  # by name
            for number, (its, tapped) in enumerate(zip(bound, advertised, strict=True)):
                taps = [
                    self.taps.open(slot_name(number), KAFKA, f"127.0.0.1:{target}", port=port)
                    for target, port in zip(its, tapped, strict=True)
                ]
                self.kafka_taps.append(taps)
            self.admin = stack.enter_context(Admin(bootstrap_servers=self.broker.bootstrap))
            self.producer = stack.enter_context(Producer(bootstrap_servers=self.broker.bootstrap, linger_ms=5))
            self.node_ids = sorted(self.broker.cluster.nodes)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def _options(self, bound: list[list[int]], advertised: list[list[int]]) -> dict[str, object]:
        """Return the options for one listener per member: bound on ports of its own, advertised as its taps."""
        names = [listener(number) for number in range(self.members)]
        inside = [f"{name}://127.0.0.1:{ports[0]}" for name, ports in zip(names, bound, strict=True)]
        outside = [f"{name}://127.0.0.1:{ports[0]}" for name, ports in zip(names, advertised, strict=True)]
        options: dict[str, object] = {
            "listeners": ",".join(["PLAINTEXT://127.0.0.1:0", *inside]),
            "advertised_listeners": ",".join(outside),
            "listener_security_protocol_map": ",".join(f"{name}:PLAINTEXT" for name in ["PLAINTEXT", *names]),
            "group_min_session_timeout_ms": 100,
            "group_initial_rebalance_delay_ms": 0,
        }
        session = self.timings.session_ms
        newest = {
            "group_consumer_session_timeout_ms": session,
            "group_consumer_min_session_timeout_ms": min(session, 1000),
            "group_consumer_heartbeat_interval_ms": self.timings.heartbeat_ms,
            "group_consumer_min_heartbeat_interval_ms": min(self.timings.heartbeat_ms, 100),
        }
        return options | {name: value for name, value in newest.items() if name.replace("_", ".") in BROKER_OPTIONS}

    def zookeeper(self, *, ensemble: bool) -> ZooKeeper:
        """Return a single server or three; started on first use."""
        if ensemble:
            if self._ensemble is None:
                self._ensemble = self._stack.enter_context(Ensemble(self.folder / "ensemble", tick_ms=self.tick_ms))
            return self._ensemble
        if self._zookeeper is None:
            self._zookeeper = self._stack.enter_context(ZooKeeper(self.folder / "zookeeper", tick_ms=self.tick_ms))
        return self._zookeeper

    @property
    def tick_ms(self) -> int:
        """The length of a ZooKeeper tick: sessions end to within it."""
        return max(50, self.timings.session_ms // 12)

    def create_topic(self, name: str, partitions: int) -> None:
        """A topic led by the first node; offsets and groups live on the second."""
        data = {number: [self.node_ids[DATA_NODE]] for number in range(partitions)}
        self.admin.create_topics(NewTopic(name, replicas=data))

    def grow_topic(self, name: str, partitions: int, more: int) -> None:
        """Add partitions, led by the first node."""
        self.admin.create_partitions(name, partitions + more, replicas=[[self.node_ids[DATA_NODE]]] * more)

    def commits_of(self, group: str) -> list[CommittedOffset]:
        """The offsets that the broker accepted, in the order of its log: members and taps see answers in another."""
        every = _Every()
        asyncio.run(GroupLog({"bootstrap.servers": self.broker.bootstrap}, every, groups=[group]).read())
        ahead_s = time.time() - time.monotonic()
        return [
            CommittedOffset(fact.at_ms / 1000 - ahead_s, fact.partition[1], fact.offset)
            for fact in every.facts
            if isinstance(fact, Committed)
        ]

    def place_coordinator(self, group: str, place: int = COORDINATOR_NODE) -> None:
        """Have a node coordinate a group."""
        self.broker.control.move_coordinator(group, self.node_ids[place])


class _Every(Kept):
    """Every fact of a group, not only those that an explanation needs."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[Fact] = []

    def add(self, fact: Fact) -> None:
        self.facts.append(fact)


def listener(number: int) -> str:
    """The name of a member's listener."""
    return f"M{number}"


def slot_name(number: int) -> str:
    """Return the name of a member's taps until its own name is known."""
    return f"slot-{number}"


def runs_of_ports(runs: int, length: int) -> list[list[int]]:
    """Return free ports in runs of consecutive numbers, since the ports of a listener count up from node to node.

    Raises OSError if there are not enough.
    """
    found: list[list[int]] = []
    held: list[socket.socket] = []
    try:
        for _ in range(runs * 50):
            first = free_ports(1)[0]
            run: list[socket.socket] = []
            try:
                for port in range(first, first + length):
                    run.append(socket.socket())
                    run[-1].bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                for one in run:
                    one.close()
                continue
            held += run
            found.append(list(range(first, first + length)))
            if len(found) == runs:
                return found
    finally:
        for one in held:
            one.close()
    raise OSError("there are not enough free ports that follow one another")
