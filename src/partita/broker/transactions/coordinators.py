"""All shards of the transaction coordinator in the process: one runner per led partition of `__transaction_state`.

Finds the shard of a transactional id. (Kafka: TransactionCoordinator.)
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from partita.broker.shard_leadership import ShardLeadership
from partita.broker.topics.catalogue import TRANSACTION_TOPIC, Partition
from partita.broker.transactions.marker_sender import MarkerSender
from partita.broker.transactions.marker_writing import Shards
from partita.broker.transactions.runner import TransactionRunner
from partita.protocol.error_codes import ErrorCode
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import Outcome, Request
from partita.transactions.coordinator import first_check


class TransactionCoordinators(ShardLeadership[TransactionRunner, TransactionConfig]):
    """Runners by partition index; `runner_of` finds the one of a transactional id."""

    topic_name = TRANSACTION_TOPIC

    def __init__(self, shards: Shards) -> None:
        super().__init__(shards.cluster)
        self.markers = MarkerSender(shards)
        self._turns = shards.turns

    def ask(self, request: Request, node_id: int | None = None) -> Outcome | asyncio.Future[Outcome]:
        """Answer a request about one transactional id that came to this node (None: to any, from the process itself).

        Gives the outcome, or a future of it where it has to wait for the log.
        """
        if (refused := first_check(request, self.settings)) is not ErrorCode.NONE:
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
            self.cluster, partition, self.settings, ids_held=self.ids_held, send=self.markers.send, turns=self._turns
        )
        if is_held:
            runner.be_held()
        else:
            runner.begin()

    def end_shard(self, runner: TransactionRunner) -> None:
        """Resign; the shard's next leader finds everything in the log."""
        runner.resign()

    def read_settings(self) -> TransactionConfig:
        """Return the settings of transactions."""
        config = self.cluster.config
        return replace(
            TransactionConfig(),
            level=config.int("partita.transaction.version"),
            max_timeout_ms=config.int("transaction.max.timeout.ms"),
            id_expiration_ms=config.int("transactional.id.expiration.ms"),
            timeout_check_interval_ms=config.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            expiration_check_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            max_message_bytes=self.max_batch_bytes(),
            ids_max=config.int("partita.transactional.ids.max"),
        )
