"""The nodes of one broker process over one shared store: who is there, and who leads which partition.

Each node has its own listener; leadership of partitions, `__consumer_offsets` included, moves between them, and group
state is loaded by the new leader and unloaded by the old one. Many machines are Apache Kafka's job. Mirrors what
KRaft's controller decides (ReplicationControlManager).
"""

from __future__ import annotations

import asyncio
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from partita.broker.config import BrokerConfig
from partita.broker.control.injected_faults import Faults
from partita.broker.notes import Notes
from partita.broker.options import Value
from partita.broker.requests.dispatch import Dispatcher
from partita.broker.storage.store import Store
from partita.broker.storage.upkeep import Upkeep
from partita.broker.topics.catalogue import NO_LEADER, OFFSETS_TOPIC, Partition, Topic, TopicCatalogue
from partita.broker.wire.listeners import Endpoint, Listener
from partita.broker.wire.server import Server
from partita.system_clock import SystemClock

if TYPE_CHECKING:
    from partita.broker.groups.coordinators import Coordinators
    from partita.broker.reading.fetch_sessions import FetchSessions
    from partita.broker.reading.long_polls import LongPolls

CLOSE_WITHIN_SECONDS = 2.0
WARM_UP_AFTER_SECONDS = 0.25


class CannotListen(Exception):
    """A listener's address cannot be had; the OSError says why."""

    def __init__(self, address: Endpoint, error: OSError) -> None:
        super().__init__(f"cannot listen on {address}: {os.strerror(error.errno) if error.errno else error}")
        self.errno = error.errno


class Node:
    """One broker of the cluster: an id, listeners, and what it keeps of its own."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.endpoints: dict[str, Endpoint] = {}
        """Where clients find it, by listener; the first listener comes first."""
        self.is_alive = False
        self.servers: list[Server] = []
        self._listeners: list[Listener] = []

    @cached_property
    def fetch_sessions(self) -> FetchSessions:
        from partita.broker.reading.fetch_sessions import FetchSessions

        return FetchSessions(self.cluster.config.int("max.incremental.fetch.session.cache.slots"))

    @property
    def endpoint(self) -> Endpoint:
        """Where clients find it on its first listener."""
        return next(iter(self.endpoints.values()))

    async def start(self, listeners: Sequence[Listener] = ()) -> None:
        """Listen (again where it did, without `listeners`). Raises CannotListen."""
        per_host: dict[str, int] = {}
        wanted, self._listeners = listeners or self._listeners, []
        for listener in wanted:
            server = Server(self.cluster.loop, Dispatcher(self, listener.name), self.cluster.config, per_host)
            try:
                port = await server.listen(*listener.bound)
            except OSError as error:
                raise CannotListen(listener.bound, error) from error
            self.servers.append(server)
            self._listeners.append(listener._replace(bound=Endpoint(listener.bound.host, port)))
            self.endpoints[listener.name] = listener.found_at(port)
        self.is_alive = True

    async def stop(self) -> None:
        """Stop listening, send what is ready, close."""
        self.is_alive = False
        servers, self.servers = self.servers, []
        self.__dict__.pop("fetch_sessions", None)
        for server in servers:
            server.stop_listening()
        await asyncio.sleep(0)  # answers to those who waited until now are sent by callbacks
        for server in servers:
            server.close_connections()
        for _ in range(20):
            if not any(server.connections for server in servers):
                return
            await asyncio.sleep(CLOSE_WITHIN_SECONDS / 100)
        for server in servers:
            server.abort_connections()


class Cluster:
    """All that one broker process holds. Lives on one event loop."""

    def __init__(self, config: BrokerConfig, store: Store, node_count: int = 1) -> None:
        self.loop = asyncio.get_running_loop()
        self.config = config
        self.store = store
        self.clock = SystemClock()
        self.notes = Notes(self.clock)
        self.faults = Faults(self)
        self.catalogue = TopicCatalogue(store, config, new_uuid)
        first = config.int("node.id")
        self.nodes: dict[int, Node] = {node_id: Node(self, node_id) for node_id in range(first, first + node_count)}
        self.is_running = False
        self.admin_port: int | None = None
        self._on_stop: list[Callable[[], None]] = []
        self._next_replica = 0
        self.upkeep = Upkeep(self.loop, self.clock, store, config)

    @cached_property
    def long_polls(self) -> LongPolls:
        from partita.broker.reading.long_polls import LongPolls

        return LongPolls(self.loop, self.clock)

    @cached_property
    def groups(self) -> Coordinators:
        """The coordinator's shards. Imported at first use: a broker without groups starts without them."""
        from partita.broker.groups.coordinators import Coordinators

        return Coordinators(self)

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_alive]

    @property
    def controller(self) -> Node | None:
        return next(iter(self.alive), None)

    async def start(self, listeners: Sequence[Listener]) -> None:
        """Start all nodes, the first one on these listeners; then groups load, clients being told so meanwhile."""
        if not self.catalogue.cluster_id:
            self.catalogue.name_cluster(urlsafe_b64encode(new_uuid()).decode().rstrip("="))
        self.catalogue.on_created(self._created)
        self.catalogue.on_deleted(self._deleted)
        self.upkeep.start()
        for index, node in enumerate(self.nodes.values()):
            await node.start([listener.of_node(index) for listener in listeners])
        self._give_orphans_a_leader()
        self.is_running = True
        if self.catalogue.get(OFFSETS_TOPIC) is not None:
            self.loop.call_soon(self._lead_groups)
        else:
            self.loop.call_later(WARM_UP_AFTER_SECONDS, self._lead_groups)

    async def stop(self) -> None:
        """Resign from every group (waiting members are told), close connections, then the logs."""
        for callback in self._on_stop:
            callback()
        for node in self.alive:
            for server in node.servers:
                server.stop_listening()
        if self._uses("groups"):
            self.groups.resign_all()
        self.is_running = False
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))
        if self._uses("groups"):
            await self.groups.settle()
        await self.upkeep.stop()
        self.catalogue.close()
        self.notes.close()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call `callback` first thing when the cluster stops."""
        self._on_stop.append(callback)

    async def stop_node(self, node_id: int) -> None:
        """Let one node go: its partitions move to the nodes that stay, its connections close."""
        node = self.nodes[node_id]
        node.is_alive = False
        for partition in self._led_by(node_id):
            self.elect(partition, self._next_leader(partition))
        await node.stop()
        self.notes.control("node stopped", node=node_id)

    async def start_node(self, node_id: int) -> None:
        """Bring a stopped node back on its old ports. It leads again what nobody leads."""
        node = self.nodes[node_id]
        await node.start()
        self._give_orphans_a_leader()
        self.notes.control("node started", node=node_id)

    def elect(self, partition: Partition, leader: int) -> None:
        """Make node `leader` (or NO_LEADER) lead the partition, at the next leader epoch."""
        self._lead(partition, leader, partition.replicas)

    def reassign(self, partition: Partition, replicas: list[int]) -> None:
        """Let live nodes `replicas` hold the partition from now on; its leader stays if it is one of them."""
        if replicas != partition.replicas:
            self._lead(partition, partition.leader if partition.leader in replicas else replicas[0], replicas)

    def _lead(self, partition: Partition, leader: int, replicas: list[int]) -> None:
        is_groups = partition.topic.name == OFFSETS_TOPIC
        self.catalogue.elect(partition, leader, replicas)
        if is_groups:
            self.groups.leadership_changed(partition)
        if self._uses("long_polls"):
            self.long_polls.leader_changed(partition)

    def create_topic(
        self, name: str, partitions: int, replication: int, settings: dict[str, Value] | None = None
    ) -> Topic:
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

    def ensure_offsets_topic(self) -> Topic:
        """Return `__consumer_offsets`, made now if it was missing."""
        topic = self.catalogue.get(OFFSETS_TOPIC)
        if topic is not None:
            return topic
        settings: dict[str, Value] = {
            "cleanup.policy": ("compact",),
            "compression.type": "producer",
            "segment.bytes": self.config.int("offsets.topic.segment.bytes"),
        }
        count = self.config.int("offsets.topic.num.partitions")
        return self.create_topic(OFFSETS_TOPIC, count, len(self.nodes), settings)

    def advance_clock(self, ms: int) -> None:
        """Let the broker's clock jump forward; what became due happens now."""
        self.clock.advance(ms)
        if self._uses("groups"):
            self.groups.clock_jumped()
        if self._uses("long_polls"):
            self.long_polls.clock_jumped()

    def _uses(self, part: str) -> bool:
        """Whether a part that is made at first use has been made."""
        return part in self.__dict__

    def _lead_groups(self) -> None:
        """Load the groups there are; without any, have what they need imported before the first one comes."""
        if self.is_running:
            shards, offsets = self.groups, self.catalogue.get(OFFSETS_TOPIC)
            if offsets is not None:
                shards.lead_all(offsets)

    def _created(self, topic: Topic) -> None:
        if topic.name == OFFSETS_TOPIC:
            self.groups.lead_all(topic)

    def _deleted(self, topics: list[Topic]) -> None:
        if any(topic.name == OFFSETS_TOPIC for topic in topics):
            self.groups.resign_all()
        if self._uses("groups"):
            self.groups.topics_deleted([topic.name for topic in topics])
        if self._uses("long_polls"):
            for topic in topics:
                for partition in topic.partitions:
                    self.long_polls.leader_changed(partition)

    def _led_by(self, node_id: int) -> list[Partition]:
        return [p for topic in self.catalogue for p in topic.partitions if p.leader == node_id]

    def _next_leader(self, partition: Partition) -> int:
        """A live replica, else any live node: all of them see the shared store."""
        live = {node.node_id for node in self.alive}
        return next((n for n in partition.replicas if n in live), min(live, default=NO_LEADER))

    def _give_orphans_a_leader(self) -> None:
        live = {node.node_id for node in self.alive}
        for topic in self.catalogue:
            for partition in topic.partitions:
                if partition.leader not in live:
                    self.elect(partition, self._next_leader(partition))


def new_uuid() -> bytes:
    """A random topic or cluster id whose text does not begin with a dash, as Kafka's."""
    while True:
        uuid = os.urandom(16)
        if uuid[0] >> 2 != 62:
            return uuid
