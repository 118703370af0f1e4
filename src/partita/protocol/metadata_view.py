"""A client's view of the cluster: nodes, topics, partition leaders and their epochs.

Fed with Metadata responses; answers who leads a partition. Rules of Kafka's MetadataCache: a leader with an older
epoch than one already seen is ignored, a changed topic id means a recreated topic and forgets epochs, epochs of
responses before version 9 are unreliable and count as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from partita.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from partita.protocol.primitives import ZERO_UUID

RELIABLE_EPOCHS_FROM_VERSION = 9


@dataclass(frozen=True, slots=True)
class Node:
    """One broker as clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition: `leader` and `leader_epoch` are -1 while unknown."""

    topic: str
    partition: int
    leader: int = -1
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic; `error_code` is what the cluster said about it (0: fine)."""

    name: str
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    error_code: int = 0
    partitions: tuple[PartitionView, ...] = ()


class MetadataView:
    """The newest known state of the cluster. `version` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicView] = {}
        self._highest_epoch: dict[tuple[str, int], int] = {}

    def update(self, response: MetadataResponse, version: int, keep: Iterable[str] | None = None) -> None:
        """Take in an answer. `keep` names topics to retain though the answer lacks them (None: retain none)."""
        self.nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        kept = set(keep) if keep is not None else set()
        topics = {name: view for name, view in self.topics.items() if name in kept}
        for topic in response.topics:
            if topic.name is not None:
                topics[topic.name] = self._topic(topic, reliable=version >= RELIABLE_EPOCHS_FROM_VERSION)
        self.topics = topics
        self.version += 1

    def forget_nodes(self) -> None:
        """Nodes are elsewhere, or of another cluster: what is known of topics has no leaders until the next update."""
        self.nodes, self.cluster_id, self.controller_id = {}, None, -1
        self.version += 1

    def _topic(self, topic: MetadataResponseTopic, *, reliable: bool) -> TopicView:
        name = topic.name or ""
        before = self.topics.get(name)
        ids = {topic.topic_id, before.topic_id if before is not None else topic.topic_id}
        if len(ids) == 2 and ZERO_UUID not in ids:
            self._forget_epochs(name)
            before = None
        old = {p.partition: p for p in before.partitions} if before is not None else {}
        partitions = [self._partition(name, p, old.get(p.partition_index), reliable=reliable) for p in topic.partitions]
        partitions.sort(key=lambda p: p.partition)
        return TopicView(name, topic.topic_id, topic.is_internal, topic.error_code, tuple(partitions))

    def _partition(
        self, topic: str, told: MetadataResponsePartition, old: PartitionView | None, *, reliable: bool
    ) -> PartitionView:
        epoch = told.leader_epoch if reliable else -1
        highest = self._highest_epoch.get((topic, told.partition_index), -1)
        if old is not None and 0 <= epoch < highest:
            return old
        if epoch > highest:
            self._highest_epoch[topic, told.partition_index] = epoch
        return PartitionView(
            topic,
            told.partition_index,
            told.leader_id,
            epoch,
            tuple(told.replica_nodes),
            tuple(told.isr_nodes),
            tuple(told.offline_replicas),
            told.error_code,
        )

    def _forget_epochs(self, topic: str) -> None:
        for key in [k for k in self._highest_epoch if k[0] == topic]:
            del self._highest_epoch[key]

    def saw_epoch(self, topic: str, partition: int, leader_epoch: int) -> bool:
        """Note an epoch met outside Metadata; true if it is newer than any before."""
        if leader_epoch <= self._highest_epoch.get((topic, partition), -1):
            return False
        self._highest_epoch[topic, partition] = leader_epoch
        return True

    def move_leader(self, topic: str, partition: int, leader: int, leader_epoch: int, node: Node | None) -> bool:
        """Apply a leader named by a broker's error answer (KIP-951); false if it is not news."""
        now = self.partition(topic, partition)
        if now is None or leader < 0 or leader_epoch <= now.leader_epoch:
            return False
        if node is not None:
            self.nodes[node.id] = node
        if leader not in self.nodes:
            return False
        self.saw_epoch(topic, partition, leader_epoch)
        moved = replace(now, leader=leader, leader_epoch=leader_epoch)
        view = self.topics[topic]
        parts = tuple(moved if p.partition == partition else p for p in view.partitions)
        self.topics[topic] = replace(view, partitions=parts)
        self.version += 1
        return True

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        """Return the metadata of a partition; None if it is unknown."""
        view = self.topics.get(topic)
        if view is None:
            return None
        parts = view.partitions
        if 0 <= partition < len(parts) and parts[partition].partition == partition:
            return parts[partition]
        return next((p for p in parts if p.partition == partition), None)

    def leader(self, topic: str, partition: int) -> Node | None:
        """The node to talk to about this partition, or None while unknown."""
        view = self.partition(topic, partition)
        return None if view is None else self.nodes.get(view.leader)

    def has_online_replica(self, topic: str, partition: int, node_id: int) -> bool:
        """Whether this node exists, and its replica of the partition is not known to be offline."""
        view = self.partition(topic, partition)
        return view is not None and node_id in self.nodes and node_id not in view.offline

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The current leader's epoch; -1 unknown."""
        view = self.partition(topic, partition)
        return -1 if view is None else view.leader_epoch

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic; zeros while it is not known."""
        view = self.topics.get(topic)
        return ZERO_UUID if view is None else view.topic_id

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if it is not known."""
        return next((t.name for t in self.topics.values() if t.topic_id == topic_id), None)
