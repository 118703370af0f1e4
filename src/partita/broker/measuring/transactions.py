"""The metrics of transactions: Kafka's names where Kafka counts, and `partita_Transactions` for what it does not.

(Kafka: TransactionMarkerChannelManager, AddPartitionsToTxnManager, ReplicaManager, TransactionStateManager.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.metrics.registry import Metrics
from partita.transactions.model import State

if TYPE_CHECKING:
    from partita.broker.api.services import Services
    from partita.broker.transactions.coordinators import TransactionCoordinators
    from partita.log.partition_log import PartitionLog

MARKERS, REPLICAS = "coordinator_transaction_TransactionMarkerChannelManager", "server_ReplicaManager"
OWN = "partita_Transactions"
LATE_MS = 300_000
"""A transaction that is open for this much longer than `transaction.max.timeout.ms` is late, as in Kafka."""
SLICE_LOGS = 500
ENDINGS = ("producer", "timeout", "successor", "restore")
_NOW = "what there is now, by name"


class TransactionMetrics:
    """Registers the metrics. Events are counted from the broker's notes, the rest is computed on reading."""

    def __init__(self, registry: Metrics, services: Services) -> None:
        self._services = services
        self._ended: Counter[tuple[bool, str]] = Counter()
        self._expired = 0
        gauge, counter = registry.gauge, registry.counter
        gauge(MARKERS, "Value", _NOW, self._unfinished, name="LogAppendRetryQueueSize")
        gauge(OWN, "markers_waiting", "partitions that wait for the marker of a decided transaction", self._markers)
        self._late = self._producers = 0
        gauge(REPLICAS, "Value", _NOW, lambda: self._late, name="PartitionsWithLateTransactionsCount")
        gauge(REPLICAS, "Value", _NOW, lambda: self._producers, name="ProducerIdCount")
        for state in (s for s in State if s not in (State.DEAD, State.PREPARE_EPOCH_FENCE)):
            gauge(OWN, "ids", "transactional ids in this state", lambda s=state: self._in(s), state=state.text)  # type: ignore[misc]  # bound per round of the loop
        gauge(OWN, "open_ms_max", "age of the oldest open transaction in milliseconds", self._oldest_ms)
        counter(OWN, "committed", "transactions that were committed", lambda: self._ended[True, "producer"])
        for by in ENDINGS:
            help = "transactions that were aborted, by who ended them"
            counter(OWN, "aborted", help, lambda b=by: self._ended[False, b], by=by)  # type: ignore[misc]  # bound per round of the loop
        counter(OWN, "ids_expired", "transactional ids that were idle and are forgotten", lambda: self._expired)
        services.cluster.notes.listen(self._hear)

    def _hear(self, note: dict[str, Any]) -> None:
        if note["note"] == "TransactionEnded":
            self._ended[note["committed"], note["by"]] += 1
        elif note["note"] == "TransactionalIdsExpired":
            self._expired += note["ids"]

    def _made(self) -> TransactionCoordinators | None:
        return self._services.transactions.made

    def _markers(self) -> int:
        made = self._made()
        return 0 if made is None else made.markers.count_waiting()

    def _unfinished(self) -> int:
        """Transactions with all markers whose completion could not be stored yet."""
        made = self._made()
        return 0 if made is None else sum(r.coordinator.count_unfinished() for r in made.runners.values())

    def _in(self, state: State) -> int:
        made = self._made()
        runners = () if made is None else made.runners.values()
        return sum(e.transaction.state is state for r in runners for e in r.coordinator.entries.values())

    def _oldest_ms(self) -> int:
        made = self._made()
        runners = () if made is None else made.runners.values()
        started = [e.transaction.start_ms for r in runners for e in r.coordinator.open_entries()]
        now_ms = self._services.cluster.clock.now().wall_ms
        return max((now_ms - start_ms for start_ms in started), default=0)

    def _logs(self) -> Iterator[PartitionLog]:
        for topic in tuple(self._services.cluster.catalogue):
            for partition in tuple(topic.partitions):
                if partition.opened_log is not None:
                    yield partition.opened_log

    def followed(self) -> Iterator[None]:
        """Look through all opened logs, in slices: where it yields, others may work.

        A partition is late if a transaction should have been ended long ago: `partita transactions find-hanging`.
        """
        limit_ms = self._services.cluster.config.int("transaction.max.timeout.ms") + LATE_MS
        now_ms = self._services.cluster.clock.now().wall_ms
        late = producers = 0
        for number, log in enumerate(self._logs(), 1):
            producers += len(log.producers.producers)
            late += log.producers.open_since_ms(now_ms) > limit_ms
            if number % SLICE_LOGS == 0:
                yield
        self._late, self._producers = late, producers
