"""Writes one marker into one partition: the same function for our own coordinators and for WriteTxnMarkers. (§10.2)"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.shard_life import State, when_durable
from partita.broker.topics.catalogue import OFFSETS_TOPIC, Partition
from partita.group.contract import GroupRequest
from partita.group.requests import EndTransaction, TransactionEnded
from partita.log.partition_log import AppendRefused
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.records.builder import build_marker
from partita.records.control import ABORT, COMMIT

if TYPE_CHECKING:
    from partita.broker.groups.coordinators import Coordinators
    from partita.broker.nodes import Cluster
    from partita.broker.wire.turns import Turns
    from partita.protocol.primitives import Structure

_MOVED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class EndMarker(NamedTuple):
    """The end of one transaction; `version` is the transaction version it was decided under."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    version: int = 0


class Shards(NamedTuple):
    """Destinations of markers: the cluster's logs, and the shards of groups, which are made when one is first asked
    for.

    What is long waits in `turns`, in one line with the requests of connections.
    """

    cluster: Cluster
    groups_of: Callable[[], Coordinators]
    turns: Turns

    @property
    def groups(self) -> Coordinators:
        """The group coordinators of all nodes."""
        return self.groups_of()


def write_marker(shards: Shards, partition: Partition, marker: EndMarker) -> ErrorCode | asyncio.Future[ErrorCode]:
    """Write the marker at the partition's leader; NONE, or a future of it, once it is durable. Never raises."""
    node = shards.cluster.nodes.get(partition.leader)
    if node is None or not node.is_alive:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.topic.name == OFFSETS_TOPIC:
        return _tell_group_shard(shards, partition, marker)
    return _append(shards, partition, marker)


def _tell_group_shard(shards: Shards, partition: Partition, marker: EndMarker) -> ErrorCode | asyncio.Future[ErrorCode]:
    runner = shards.groups.runners.get(partition.index)
    if runner is None or runner.state is not State.ACTIVE:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    end = EndTransaction(
        marker.producer_id,
        marker.producer_epoch,
        committed=marker.committed,
        coordinator_epoch=marker.coordinator_epoch,
        version=marker.version,
    )
    answer = runner.decide(GroupRequest(end, 0))
    if not isinstance(answer, asyncio.Future):
        return _code_of(answer)
    told: asyncio.Future[ErrorCode] = shards.cluster.loop.create_future()

    def tell(done: asyncio.Future[Structure | None]) -> None:
        if not told.done():
            told.set_result(ErrorCode.NOT_LEADER_OR_FOLLOWER if done.cancelled() else _code_of(done.result()))

    answer.add_done_callback(tell)
    return told


def _code_of(answer: Structure | None) -> ErrorCode:
    assert isinstance(answer, TransactionEnded), "a marker is answered as one"
    code = ErrorCode(answer.error_code)
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _MOVED else code


def _append(shards: Shards, partition: Partition, marker: EndMarker) -> ErrorCode | asyncio.Future[ErrorCode]:
    """Append a control batch. (TX-S01)

    Deviation: `max.message.bytes` does not bound transaction markers in Partita, where Kafka refuses one that is
    larger.
    """
    now = shards.cluster.clock.now()
    batch = build_marker(
        COMMIT if marker.committed else ABORT,
        timestamp=now.wall_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
    )
    try:
        log = partition.log
        log.append(batch, partition.leader_epoch, now, transaction_version=marker.version)
    except AppendRefused as refused:
        return refused.code
    except StorageError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    written = when_durable(shards.cluster.loop, log, log.log_end_offset)
    return written.result() if written.done() else written
