"""What shows that each option of transactions counts, for `tests/unit/options`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.broker.config import TopicConfig
from partita.broker.topics.catalogue import TRANSACTION_TOPIC
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from support.broker.data_plane import data_plane
from support.broker.transactions import transaction_plane

Given = dict[str, object]
Probe = Callable[[Given], object]
HOUR_MS = 3_600_000


def underscored(given: Given) -> dict[str, Any]:
    """The names as keyword arguments."""
    return {name.replace(".", "_"): value for name, value in given.items()}


def transaction_topic(read: Callable[[TopicConfig], object]) -> Probe:
    """Something about `__transaction_state` on three nodes."""

    def probe(given: Given) -> object:
        with data_plane(nodes=3, **underscored(given)) as plane:
            topic = plane.cluster.ensure_state_topic(TRANSACTION_TOPIC)
            if topic is None:
                return None
            return len(topic.partitions), len(topic.partitions[0].replicas), read(topic.config)

    return probe


def level(given: Given) -> object:
    with transaction_plane(**underscored(given)) as plane:
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        answer = plane.ask("api_versions", 4, request)
        return [(feature.name, feature.max_version_level) for feature in answer.finalized_features]


def second_id(given: Given) -> object:
    with transaction_plane(**underscored(given)) as plane:
        return [plane.init(name)[0] for name in ("p", "q")]


def long_timeout(given: Given) -> object:
    with transaction_plane(**underscored(given)) as plane:
        return plane.init(timeout_ms=900_000)[0]


def unverified(given: Given) -> object:
    with transaction_plane(**underscored(given)) as plane:
        return plane.send(plane.start(), version=11)


def old_transaction(given: Given) -> object:
    """The state of a transaction 5 seconds after it was open for too long."""
    with transaction_plane(**underscored(given)) as plane:
        plane.add(plane.start(timeout_ms=1_000), ("t", 0))
        plane.run(lambda: plane.running.advance_clock(6_000))
        return plane.describe().transaction_state


def idle_ids(given: Given) -> object:
    """Whether an id is known after eight days."""
    with transaction_plane(**underscored(given)) as plane:
        plane.start()
        plane.run(lambda: plane.running.advance_clock(8 * 24 * HOUR_MS))
        return plane.describe().error_code


def transaction_load(given: Given) -> object:
    """Whether a load of 200 records takes many turns of the loop."""
    with transaction_plane(**underscored(given)) as plane:
        for _ in range(200):
            plane.start()
        plane.move()
        turns = 0
        while plane.runner.state.value == "loading":
            plane.turn()
            turns += 1
        return turns > 5


def questions(given: Given) -> object:
    """How often Produce asks for an id whose markers are not written."""
    with transaction_plane(**underscored(given)) as plane:
        transactions = plane.services.transactions()
        transactions.markers.write = lambda partition, marker: ErrorCode.NOT_LEADER_OR_FOLLOWER
        started = plane.start()
        assert plane.send(started) == [0]
        plane.end(started)
        asked: list[object] = []
        ask = transactions.ask
        transactions.ask = lambda *args: (asked.append(args), ask(*args))[1]  # type: ignore[method-assign,func-returns-value]  # counted
        assert plane.send((started[0], 1)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
        return len(asked)


TRANSACTIONS: dict[str, tuple[object, Probe]] = {
    "add.partitions.to.txn.retry.backoff.max.ms": (0, questions),
    "add.partitions.to.txn.retry.backoff.ms": (100, questions),
    "partita.transaction.version": (0, level),
    "partita.transactional.ids.max": (1, second_id),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (1_000, old_transaction),
    "transaction.max.timeout.ms": (60_000, long_timeout),
    "transaction.partition.verification.enable": (False, unverified),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (30 * 24 * HOUR_MS // 2, idle_ids),
    "transaction.state.log.load.buffer.size": (100, transaction_load),
    "transaction.state.log.min.isr": (2, transaction_topic(lambda config: config.int("min.insync.replicas"))),
    "transaction.state.log.num.partitions": (7, transaction_topic(lambda config: None)),
    "transaction.state.log.replication.factor": (2, transaction_topic(lambda config: None)),
    "transaction.state.log.segment.bytes": (1 << 20, transaction_topic(lambda config: config.int("segment.bytes"))),
    "transactional.id.expiration.ms": (24 * HOUR_MS * 20, idle_ids),
}
