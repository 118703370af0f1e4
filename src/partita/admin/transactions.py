"""Transactions of a cluster: list and describe them, find those that hang, end abandoned ones.

Mirrors ListTransactions, DescribeTransactions, DescribeProducers, FenceProducers and AbortTransaction of Kafka's admin
client, and the search of kafka-transactions.sh (KIP-664).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from partita.admin.asking import Connected
from partita.admin.missing_rights import needs
from partita.admin.offsets import TopicPartition, ask_leaders
from partita.admin.results import (
    OpenTransaction,
    ProducerDescription,
    TransactionDescription,
    TransactionListing,
    raise_failures,
)
from partita.admin.topics import names_of
from partita.errors import InvalidRequestError, KafkaError, TransactionalIdNotFoundError, error_for
from partita.net.cluster import COORDINATOR_MOVED, Cluster
from partita.net.errors import Disconnected
from partita.producer.transactions.calls import TRANSACTION
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from partita.protocol.messages.describe_transactions import DescribeTransactionsRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from partita.protocol.primitives import Message, Request

LONGEST_TIMEOUT_MS = 900_000
"""The default of transaction.max.timeout.ms: no live transaction is open for longer."""
FENCE_TIMEOUT_MS = 60_000
R = TypeVar("R", bound=Message)


async def list_transactions(
    self: Connected,
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    min_duration_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """Transactional ids: all, or those in some states ("Ongoing"), of some producers, or open for longer.

    `pattern` is a regular expression that has to match the whole id.
    """
    cluster = self.cluster
    request = ListTransactionsRequest(
        state_filters=names_of(states),
        producer_id_filters=list(producer_ids),
        duration_filter=min_duration_ms,
        transactional_id_pattern=pattern,
    )
    await cluster.refresh([])

    async def of_node(node: int) -> list[TransactionListing]:
        async def once() -> ListTransactionsResponse:
            answer = await cluster.request(node, request)
            if answer.error_code:
                raise error_for(answer.error_code, f"node {node} cannot list its transactions")
            return answer

        answer = await cluster.retry(once)
        if answer.unknown_state_filters:
            raise InvalidRequestError(f"no transaction is ever in state {', '.join(answer.unknown_state_filters)}")
        return [
            TransactionListing(t.transactional_id, node, t.producer_id, t.transaction_state)
            for t in answer.transaction_states
        ]

    found = await asyncio.gather(*map(of_node, cluster.view.nodes))
    return sorted((one for some in found for one in some), key=lambda one: one.transactional_id)


@needs(topic="DESCRIBE", transaction="DESCRIBE")
async def describe_transactions(self: Connected, ids: str | Iterable[str]) -> list[TransactionDescription]:
    """State, producer, timeout and partitions of transactional ids. Raises TransactionalIdNotFoundError."""
    wanted = names_of(ids)
    failures: dict[str, KafkaError] = {}
    found = []
    for transactional_id in wanted:
        try:
            found.append(await _describe(self.cluster, transactional_id))
        except KafkaError as error:
            if error.retriable:
                raise
            failures[transactional_id] = error
    raise_failures(failures, len(wanted))
    return found


async def _describe(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = await _ask_coordinator(cluster, transactional_id, request, lambda a: a.transaction_states[0].error_code)
    (state,) = answer.transaction_states
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise TransactionalIdNotFoundError(f"there is no transactional id {transactional_id!r}")
    if state.error_code:
        raise error_for(state.error_code, f"transactional id {transactional_id!r}")
    node = await cluster.coordinator_for(transactional_id, TRANSACTION)
    return TransactionDescription(
        transactional_id,
        node.id,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        sorted((topic.topic, partition) for topic in state.topics for partition in topic.partitions),
    )


@needs(topic="READ")
async def describe_producers(
    self: Connected, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ProducerDescription]]:
    """The producers that partitions remember, with their open transactions."""

    def build(parts: Iterable[TopicPartition]) -> DescribeProducersRequest:
        topics: dict[str, DescribeProducersTopic] = {}
        for topic, partition in parts:
            topics.setdefault(topic, DescribeProducersTopic(name=topic)).partition_indexes.append(partition)
        return DescribeProducersRequest(topics=list(topics.values()))

    found = await ask_leaders(self.cluster, partitions, build)
    return {
        at: [
            ProducerDescription(
                p.producer_id,
                p.producer_epoch,
                p.last_sequence,
                p.last_timestamp,
                p.coordinator_epoch,
                p.current_txn_start_offset if p.current_txn_start_offset >= 0 else None,
            )
            for p in answer.active_producers
        ]
        for at, answer in sorted(found.items())
    }


@needs(transaction="WRITE")
async def fence_producers(self: Connected, ids: str | Iterable[str]) -> dict[str, tuple[int, int]]:
    """Fence the users of these transactional ids, abort open transactions; return each producer id and epoch."""
    return {name: await _fence_producer(self.cluster, name) for name in names_of(ids)}


@needs(transaction="WRITE")
async def force_terminate_transaction(self: Connected, transactional_id: str) -> None:
    """Abort the open transaction of an id, prepared or not, and fence its producer."""
    await _fence_producer(self.cluster, transactional_id)


async def _fence_producer(cluster: Cluster, transactional_id: str) -> tuple[int, int]:
    """Take the id from its present producer, which aborts an open transaction; return producer id and new epoch."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=FENCE_TIMEOUT_MS,
        producer_id=-1,
        producer_epoch=-1,
    )
    answer = await _ask_coordinator(cluster, transactional_id, request, lambda a: a.error_code)
    if answer.error_code:
        raise error_for(answer.error_code, f"fencing {transactional_id!r}")
    return answer.producer_id, answer.producer_epoch


async def _abort_open(cluster: Cluster, at: TopicPartition, producer: ProducerDescription) -> None:
    """Write an abort marker into one partition, whatever the coordinator thinks. For hanging transactions only."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(0, producer.coordinator_epoch),
        topics=[WritableTxnMarkerTopic(name=at[0], partition_indexes=[at[1]])],
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    async def once() -> None:
        answer = await cluster.request_leader(*at, request)
        for written in answer.markers:
            for topic in written.topics:
                for part in topic.partitions:
                    if part.error_code:
                        cluster.expire_metadata()
                        raise error_for(part.error_code, f"ending a transaction in {at[0]}-{at[1]}")

    await cluster.retry(once)


@needs(topic="READ", cluster="ALTER")
async def abort_hanging_transaction(
    self: Connected, topic: str, partition: int, start_offset: int
) -> ProducerDescription:
    """End the open transaction of a partition that begins at this offset, whatever its coordinator thinks.

    Meant for results of `find_hanging_transactions`. Raises ValueError when no transaction is open there.
    """
    at = (topic, partition)
    found = await describe_producers(self, [at])
    open_ones = [producer for producer in found[at] if producer.open_since_offset == start_offset]
    if not open_ones:
        raise ValueError(f"no open transaction begins at offset {start_offset} of {topic}-{partition}")
    await _abort_open(self.cluster, at, open_ones[0])
    return open_ones[0]


async def find_hanging_transactions(
    self: Connected,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    max_transaction_timeout_ms: int = LONGEST_TIMEOUT_MS,
) -> list[OpenTransaction]:
    """Open transactions that no coordinator will end; in some partitions, or in all of the cluster.

    Only those whose last record is older than `max_transaction_timeout_ms` are looked at.
    """
    now_ms = time.time_ns() // 1_000_000
    cluster = self.cluster
    if partitions is None:
        view = await cluster.topics(None)
        partitions = [(name, part.partition) for name, topic in view.items() for part in topic.partitions]
    remembered = await describe_producers(self, partitions)
    old = [
        (at, producer)
        for at, producers in remembered.items()
        for producer in producers
        if producer.open_since_offset is not None and now_ms - producer.last_timestamp_ms > max_transaction_timeout_ms
    ]
    if not old:
        return []
    ids = sorted({producer.producer_id for _, producer in old})
    listed = await list_transactions(self, producer_ids=ids)
    described: dict[int, TransactionDescription] = {}
    for listing in listed:
        try:
            described[listing.producer_id] = await _describe(cluster, listing.transactional_id)
        except TransactionalIdNotFoundError:
            continue
    return [hanging for at, producer in old if (hanging := judge_hanging(at, producer, described, now_ms)) is not None]


def judge_hanging(
    at: TopicPartition, producer: ProducerDescription, described: Mapping[int, TransactionDescription], now_ms: int
) -> OpenTransaction | None:
    """Return the open transaction if no coordinator will end it: unknown id, or the partition is not part of it."""
    known = described.get(producer.producer_id)
    if known is not None and at in known.partitions:
        return None
    assert producer.open_since_offset is not None, "only open transactions hang"
    return OpenTransaction(
        at[0],
        at[1],
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.open_since_offset,
        now_ms - producer.last_timestamp_ms,
        None if known is None else known.transactional_id,
    )


async def _ask_coordinator(
    cluster: Cluster, transactional_id: str, request: Request[R], code_of: Callable[[R], int]
) -> R:
    """Send to the id's coordinator; repeat while it moves, loads, or still ends a transaction."""

    async def once() -> R:
        connection = await cluster.coordinator_connection(transactional_id, TRANSACTION)
        try:
            answer = await connection.send(request, max_version=5)
        except Disconnected:
            cluster.forget_coordinator(transactional_id, TRANSACTION)
            raise
        code = ErrorCode(code_of(answer))
        if code in COORDINATOR_MOVED:
            cluster.forget_coordinator(transactional_id, TRANSACTION)
        if code.retriable:
            raise error_for(code, f"transactional id {transactional_id!r}")
        return answer

    return await cluster.retry(once)
