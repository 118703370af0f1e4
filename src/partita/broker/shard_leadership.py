"""Which shards of a coordinator this process leads: they load and end as elections say.

Groups and transactions share it: each has a topic with one shard per partition, and a runner for each shard that it
leads. (Kafka: onElection and onResignation of GroupCoordinatorService and TransactionCoordinator.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from partita.broker.shard_life import ShardLife, State
from partita.broker.topics.catalogue import Partition, Topic
from partita.group import partition_for

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster


R = TypeVar("R", bound=ShardLife)
S = TypeVar("S")


class ShardLeadership(ABC, Generic[R, S]):
    """Runners by partition index. A coordinator derives from it and says how its shards are loaded and ended."""

    topic_name: ClassVar[str]

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.runners: dict[int, R] = {}
        self._epochs: dict[int, int] = {}
        """The leader epoch each partition was last elected or resigned with."""
        self._ended: list[R] = []
        self._held: set[int] = set()
        """Partitions whose shards a test keeps loading."""
        self.settings: S = self.read_settings()
        cluster.config.on_change(lambda name: self.settings_changed())
        cluster.catalogue.on_configured(self._topic_configured)

    @abstractmethod
    def load_shard(self, partition: Partition, *, is_held: bool) -> None:
        """Put a runner of the partition among `runners` and let it load, or be held before its load."""

    @abstractmethod
    def end_shard(self, runner: R) -> None:
        """Let the runner, which is no longer among `runners`, resign."""

    @abstractmethod
    def read_settings(self) -> S:
        """Return the settings of the shards, from the options of the broker and of the topic."""

    def settings_changed(self) -> None:
        """Read the settings again, and let every shard go on with them."""
        self.settings = self.read_settings()
        for runner in self.runners.values():
            runner.configure(self.settings)

    def _topic_configured(self, topic: Topic) -> None:
        if topic.name == self.topic_name:
            self.settings_changed()

    def max_batch_bytes(self) -> int:
        """The largest batch that the topic takes."""
        topic = self.cluster.catalogue.get(self.topic_name)
        return self.cluster.config.int("message.max.bytes") if topic is None else topic.config.int("max.message.bytes")

    def partition_of(self, key: str) -> Partition | None:
        """The partition of the topic that holds this group, transactional id or share partition; None without topic."""
        topic = self.cluster.catalogue.get(self.topic_name)
        return None if topic is None else topic.partitions[partition_for(key, len(topic.partitions))]

    def runner_of(self, key: str) -> R | None:
        """Return the key's shard, on any node; None while it has no leader."""
        partition = self.partition_of(key)
        return None if partition is None else self.runners.get(partition.index)

    def lead_all(self, topic: Topic) -> None:
        """Load the shard of every partition that has a leader and no shard yet."""
        self.settings_changed()
        for partition in topic.partitions:
            if partition.index not in self.runners and self._leader_is_alive(partition):
                self.elected(partition)

    def leadership_changed(self, partition: Partition) -> None:
        """A partition has another leader, or the same one at another leader epoch."""
        if self._leader_is_alive(partition):
            self.elected(partition)
        else:
            self.resigned(partition.index, partition.leader_epoch)

    def elected(self, partition: Partition) -> None:
        """Load the shard for its leader. An epoch not above the known one changes nothing, as late news (S28)."""
        if partition.leader_epoch <= self._epochs.get(partition.index, -1):
            return
        self._epochs[partition.index] = partition.leader_epoch
        runner = self.runners.get(partition.index)
        if runner is not None and runner.node_id == partition.leader and runner.state in (State.LOADING, State.ACTIVE):
            runner.leader_epoch = partition.leader_epoch
            return
        self._end(partition.index)
        self._load(partition)

    def resigned(self, index: int, leader_epoch: int | None = None) -> None:
        """Unload a shard. With an epoch not above the known one nothing happens: a newer leadership stands."""
        if leader_epoch is not None:
            if leader_epoch <= self._epochs.get(index, -1):
                return
            self._epochs[index] = leader_epoch
        self._end(index)

    def resign_all(self) -> None:
        """The topic is gone, or the process stops."""
        self._epochs.clear()
        for index in list(self.runners):
            self._end(index)

    def hold_load(self, index: int) -> None:
        """Unload a shard in order, and let no load of it end before `release_load`."""
        self._held.add(index)
        runner = self.runners.get(index)
        if runner is not None and runner.state is not State.LOADING:
            self._end(index)
            self._load(runner.partition)

    def release_load(self, index: int) -> None:
        """Let the held load of a shard begin."""
        self._held.discard(index)
        if index in self.runners:
            self.runners[index].go_on()

    def release_loads(self) -> None:
        """Let every held load begin."""
        for index in list(self._held):
            self.release_load(index)

    async def settle(self) -> None:
        """Wait for the loads that were cut short."""
        for runner in self._ended:
            await runner.settle()
        self._ended.clear()

    def led_by(self, node_id: int) -> list[R]:
        """The runners of the shards that this node leads."""
        return [runner for runner in self.runners.values() if runner.node_id == node_id]

    def storage_failed(self) -> None:
        """The log directory is offline: end every shard, replay nothing."""
        for runner in list(self.runners.values()):
            runner.fail(self.cluster.store.failure or "the log directory is offline")

    def clock_jumped(self) -> None:
        """Do in every shard what became due."""
        for runner in list(self.runners.values()):
            runner.on_timer()

    def _leader_is_alive(self, partition: Partition) -> bool:
        node = self.cluster.nodes.get(partition.leader)
        return node is not None and node.is_alive

    def _load(self, partition: Partition) -> None:
        self.load_shard(partition, is_held=partition.index in self._held)

    def _end(self, index: int) -> None:
        runner = self.runners.pop(index, None)
        if runner is not None:
            self._ended.append(runner)
            self.end_shard(runner)
