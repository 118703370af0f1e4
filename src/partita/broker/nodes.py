"""The nodes of one broker process over one shared store: who is there, and who leads which partition.

Each node has its own listeners; leadership of partitions, `__consumer_offsets` included, moves between them. This is
state and the rules of leadership only: `partita.broker.running` starts and stops what serves it. Many machines are
Apache Kafka's job. Mirrors the decisions of KRaft's controller (ReplicationControlManager).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from partita.broker.config import BrokerConfig
from partita.broker.notes import Notes
from partita.broker.options import Value
from partita.broker.storage.store import Store
from partita.broker.topics.catalogue import (
    NO_LEADER,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
    Partition,
    Topic,
    TopicCatalogue,
)
from partita.broker.wire.listeners import Endpoint
from partita.system_clock import SystemClock

log = logging.getLogger("partita.broker")


class Node:
    """One broker of the cluster: an id, whether it is alive, and where clients find it."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.endpoints: dict[str, Endpoint] = {}
        """Address for clients, by listener; the first listener comes first."""
        self.is_alive = False

    @property
    def endpoint(self) -> Endpoint:
        """Address for clients on its first listener."""
        return next(iter(self.endpoints.values()))


class Cluster:
    """The shared state of all nodes of one broker process. Lives on one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        node_count: int = 1,
        *,
        clock: SystemClock | None = None,
        new_uuid: Callable[[], bytes] | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Create the cluster. `clock` is the machine's unless another one is given, and `new_uuid` random.

        `stopwatch` returns seconds, to end long turns of the event loop in time.
        """
        self.loop = asyncio.get_running_loop()
        self.config = config
        self.store = store
        self.clock = clock or SystemClock()
        self.stopwatch = stopwatch
        self.notes = Notes(self.clock)
        for what, details in store.notices:
            self.notes.disk(what, **details)
        store.on_notice = self.notes.disk
        self.catalogue = TopicCatalogue(store, config, new_uuid or random_uuid)
        self.catalogue.on_created(lambda topic: self.notes.topics_changed([(topic.name, len(topic.partitions))]))
        self.catalogue.on_deleted(lambda topics: self.notes.topics_changed((topic.name, 0) for topic in topics))
        first = config.int("node.id")
        self.nodes: dict[int, Node] = {node_id: Node(node_id) for node_id in range(first, first + node_count)}
        self.is_running = False
        self._next_replica = 0
        self._missing_nodes_are_told = False
        self._on_leadership: list[Callable[[Partition], None]] = []

    @property
    def alive(self) -> list[Node]:
        """The nodes that serve clients now, in order of their ids."""
        return [node for node in self.nodes.values() if node.is_alive]

    @property
    def controller(self) -> Node | None:
        """The node that clients see as the controller: the first one alive."""
        return next(iter(self.alive), None)

    def on_leadership(self, listener: Callable[[Partition], None]) -> None:
        """Call `listener(partition)` after each election, also when the leader stayed and only the epoch moved."""
        self._on_leadership.append(listener)

    def elect(self, partition: Partition, leader: int) -> None:
        """Make node `leader` (or NO_LEADER) lead the partition, at the next leader epoch."""
        self._lead(partition, leader, partition.replicas)

    def reassign(self, partition: Partition, replicas: list[int]) -> None:
        """Let live nodes `replicas` hold the partition from now on; its leader stays if it is one of them."""
        if replicas != partition.replicas:
            self._lead(partition, partition.leader if partition.leader in replicas else replicas[0], replicas)

    def create_topic(
        self, name: str, partitions: int, replication: int, settings: dict[str, Value] | None = None
    ) -> Topic:
        """Create a topic whose replicas are placed round robin over the live nodes."""
        return self.catalogue.create(name, self.place(partitions, replication), settings)

    def place(self, partitions: int, replication: int) -> list[list[int]]:
        """Choose replicas for new partitions: round robin over the live nodes."""
        ids = [node.node_id for node in self.alive]
        width = max(1, min(replication, len(ids)))
        placed = []
        for _ in range(partitions):
            start = self._next_replica % len(ids)
            self._next_replica += 1
            placed.append([ids[(start + i) % len(ids)] for i in range(width)])
        return placed

    def ensure_state_topic(self, name: str) -> Topic | None:
        """Return a coordinator's topic; create it if it does not exist.

        None while fewer nodes are alive than its option of a replication factor asks for: then nothing is created.
        """
        topic = self.catalogue.get(name)
        if topic is not None:
            return topic
        wanted = _STATE_TOPICS[name]
        replication = self.config.int(wanted.replication)
        if replication > len(self.alive):
            if name == OFFSETS_TOPIC and not self._missing_nodes_are_told:
                self._missing_nodes_are_told = True
                log.warning("groups are not served: %s", self.missing_nodes(len(self.alive)))
            return None
        min_isr = {} if wanted.min_isr is None else {"min.insync.replicas": self.config.int(wanted.min_isr)}
        settings = {**wanted.settings, "segment.bytes": self.config.int(wanted.segment_bytes), **min_isr}
        return self.create_topic(name, self.config.int(wanted.partitions), replication, settings)

    def missing_nodes(self, count: int) -> str:
        """Why `count` nodes are too few for `__consumer_offsets`; empty text where they suffice."""
        replication = self.config.int("offsets.topic.replication.factor")
        if replication <= count:
            return ""
        return f"__consumer_offsets needs {replication} nodes (offsets.topic.replication.factor) and there are {count}"

    def move_leaders_from(self, node_id: int) -> None:
        """Elect other nodes for every partition that this node leads; it must not count as alive any more."""
        for topic in self.catalogue:
            for partition in topic.partitions:
                if partition.leader == node_id:
                    self.elect(partition, self._next_leader(partition))

    def elect_for_orphans(self) -> None:
        """Elect a live node for every partition whose leader is not alive."""
        live = {node.node_id for node in self.alive}
        for topic in self.catalogue:
            for partition in topic.partitions:
                if partition.leader not in live:
                    self.elect(partition, self._next_leader(partition))

    def _lead(self, partition: Partition, leader: int, replicas: list[int]) -> None:
        self.catalogue.elect(partition, leader, replicas)
        for listener in self._on_leadership:
            listener(partition)

    def _next_leader(self, partition: Partition) -> int:
        """A live replica, else any live node: all of them see the shared store."""
        live = {node.node_id for node in self.alive}
        return next((n for n in partition.replicas if n in live), min(live, default=NO_LEADER))


class _StateTopic(NamedTuple):
    """The topic of a coordinator: its fixed settings, and the options that hold the others."""

    settings: Mapping[str, Value]
    partitions: str
    replication: str
    segment_bytes: str
    min_isr: str | None = None


_STATE_TOPICS = {
    OFFSETS_TOPIC: _StateTopic(
        {"cleanup.policy": ("compact",), "compression.type": "producer"},
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
    ),
    TRANSACTION_TOPIC: _StateTopic(
        {"cleanup.policy": ("compact",), "compression.type": "uncompressed", "unclean.leader.election.enable": False},
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        "transaction.state.log.min.isr",
    ),
    SHARE_STATE_TOPIC: _StateTopic(
        {"cleanup.policy": ("delete",), "compression.type": "producer", "retention.ms": -1},
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.segment.bytes",
        "share.coordinator.state.topic.min.isr",
    ),
}


def random_uuid() -> bytes:
    """A random topic or cluster id whose text does not begin with a dash, as Kafka's."""
    while True:
        uuid = os.urandom(16)
        if uuid[0] >> 2 != 62:
            return uuid
