"""All shards of the transaction coordinator in the process: one runner per led partition of `__transaction_state`.

Finds the shard of a transactional id, and starts and ends shards as leadership moves. (Kafka: TransactionCoordinator,
onElection and onResignation.)
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from partita.broker.groups.runner import State
from partita.broker.topics.catalogue import TRANSACTION_TOPIC, Partition, Topic
from partita.broker.transactions.marker_sender import MarkerSender
from partita.broker.transactions.marker_writing import Shards
from partita.broker.transactions.runner import TransactionRunner
from partita.group import partition_for
from partita.protocol.error_codes import ErrorCode
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import Outcome, Request
from partita.transactions.coordinator import first_check


class TransactionCoordinators:
    """Runners by partition index; `runner_of` finds the one of a transactional id."""

    def __init__(self, shards: Shards) -> None:
        self.cluster = shards.cluster
        self.runners: dict[int, TransactionRunner] = {}
        self.markers = MarkerSender(shards)
        self.config = self._read_config()
        self._epochs: dict[int, int] = {}
        """The leader epoch each partition was last elected or resigned with."""
        self._ended: list[TransactionRunner] = []
        self._held: set[int] = set()
        """Partitions whose shards a test keeps loading."""
        self.cluster.config.on_change(lambda name: self._config_changed())
        self.cluster.catalogue.on_configured(self._topic_configured)

    def lead_all(self, topic: Topic) -> None:
        """Load the shard of every partition that has a leader and no shard yet."""
        self._config_changed()
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
        """Load the shard for its leader. An epoch not above the known one changes nothing, as late news."""
        if partition.leader_epoch <= self._epochs.get(partition.index, -1):
            return
        self._epochs[partition.index] = partition.leader_epoch
        runner = self.runners.get(partition.index)
        if runner is not None and runner.node_id == partition.leader and runner.state in (State.LOADING, State.ACTIVE):
            runner.leader_epoch = partition.leader_epoch
            return
        self._end(partition.index)
        self._load(partition)

    def resigned(self, index: int, leader_epoch: int) -> None:
        """Unload a shard. With an epoch not above the known one nothing happens: a newer leadership stands."""
        if leader_epoch > self._epochs.get(index, -1):
            self._epochs[index] = leader_epoch
            self._end(index)

    def hold_load(self, index: int) -> None:
        """Unload a shard, and let no load of it end before `release_load`."""
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

    def resign_all(self) -> None:
        """The state topic is gone, or the process stops."""
        self._epochs.clear()
        for index in list(self.runners):
            self._end(index)

    async def settle(self) -> None:
        """Wait for the loads that were cut short."""
        for runner in self._ended:
            await runner.settle()
        self._ended.clear()

    def partition_of(self, transactional_id: str) -> Partition | None:
        """The partition of `__transaction_state` that holds the id; None while the topic is missing."""
        topic = self.cluster.catalogue.get(TRANSACTION_TOPIC)
        return None if topic is None else topic.partitions[partition_for(transactional_id, len(topic.partitions))]

    def runner_of(self, transactional_id: str) -> TransactionRunner | None:
        """The id's shard, on whichever node; None while nobody leads it."""
        partition = self.partition_of(transactional_id)
        return None if partition is None else self.runners.get(partition.index)

    def ask(self, request: Request, node_id: int | None = None) -> Outcome | asyncio.Future[Outcome]:
        """Answer a request about one transactional id that came to this node (None: to any, from the process itself).

        Gives the outcome, or a future of it where it has to wait for the log.
        """
        if (refused := first_check(request, self.config)) is not ErrorCode.NONE:
            return Outcome(refused)
        if not self.cluster.is_running:
            return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        runner = self.runner_of(request.transactional_id)
        if runner is None or node_id not in (None, runner.node_id):
            return Outcome(ErrorCode.NOT_COORDINATOR)
        return runner.decide(request)

    def led_by(self, node_id: int) -> list[TransactionRunner]:
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

    def ids_held(self) -> int:
        """The transactional ids of all shards."""
        return sum(len(runner.coordinator.entries) for runner in self.runners.values())

    def _leader_is_alive(self, partition: Partition) -> bool:
        node = self.cluster.nodes.get(partition.leader)
        return node is not None and node.is_alive

    def _load(self, partition: Partition) -> None:
        runner = self.runners[partition.index] = TransactionRunner(
            self.cluster, partition, self.config, ids_held=self.ids_held, send=self.markers.send
        )
        if partition.index in self._held:
            runner.hold()
        else:
            runner.load()

    def _end(self, index: int) -> None:
        runner = self.runners.pop(index, None)
        if runner is not None:
            self._ended.append(runner)
            runner.resign()

    def _read_config(self) -> TransactionConfig:
        config = self.cluster.config
        topic = self.cluster.catalogue.get(TRANSACTION_TOPIC)
        max_bytes = config.int("message.max.bytes") if topic is None else topic.config.int("max.message.bytes")
        return replace(
            TransactionConfig(),
            level=config.int("partita.transaction.version"),
            max_timeout_ms=config.int("transaction.max.timeout.ms"),
            id_expiration_ms=config.int("transactional.id.expiration.ms"),
            timeout_check_interval_ms=config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            expiration_check_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            max_message_bytes=max_bytes,
            ids_max=config.int("partita.transactional.ids.max"),
        )

    def _topic_configured(self, topic: Topic) -> None:
        if topic.name == TRANSACTION_TOPIC:
            self._config_changed()

    def _config_changed(self) -> None:
        self.config = self._read_config()
        for runner in self.runners.values():
            runner.configure(self.config)
