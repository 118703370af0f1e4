"""All shards of the transaction coordinator in the process: one runner per led partition of `__transaction_state`.

Finds the shard of a transactional id. (Kafka: TransactionCoordinator.)
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from partita.broker.shard_leadership import ShardLeadership
from partita.broker.topics.catalogue import TRANSACTION_TOPIC, Partition, Topic
from partita.broker.transactions.marker_sender import MarkerSender
from partita.broker.transactions.marker_writing import Shards
from partita.broker.transactions.runner import TransactionRunner
from partita.group import partition_for
from partita.protocol.error_codes import ErrorCode
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import Outcome, Request
from partita.transactions.coordinator import first_check


class TransactionCoordinators(ShardLeadership[TransactionRunner]):
    """Runners by partition index; `runner_of` finds the one of a transactional id."""

    def __init__(self, shards: Shards) -> None:
        super().__init__(shards.cluster)
        self.markers = MarkerSender(shards)
        self._turns = shards.turns
        self.config = self._read_config()
        self.cluster.config.on_change(lambda name: self.settings_changed())
        self.cluster.catalogue.on_configured(self._topic_configured)

    def partition_of(self, transactional_id: str) -> Partition | None:
        """The partition of `__transaction_state` that holds the id; None while the topic is missing."""
        topic = self.cluster.catalogue.get(TRANSACTION_TOPIC)
        return None if topic is None else topic.partitions[partition_for(transactional_id, len(topic.partitions))]

    def runner_of(self, transactional_id: str) -> TransactionRunner | None:
        """Return the id's shard, on any node; None while it has no leader."""
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

    def ids_held(self) -> int:
        """The transactional ids of all shards."""
        return sum(len(runner.coordinator.entries) for runner in self.runners.values())

    def load_shard(self, partition: Partition, *, is_held: bool) -> None:
        """Load the shard."""
        runner = self.runners[partition.index] = TransactionRunner(
            self.cluster, partition, self.config, ids_held=self.ids_held, send=self.markers.send, turns=self._turns
        )
        if is_held:
            runner.be_held()
        else:
            runner.begin()

    def end_shard(self, runner: TransactionRunner) -> None:
        """Resign; the shard's next leader finds everything in the log."""
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
            self.settings_changed()

    def settings_changed(self) -> None:
        """Read the settings again, and let every shard go on with them."""
        self.config = self._read_config()
        for runner in self.runners.values():
            runner.configure(self.config)
