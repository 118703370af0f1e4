"""Send encoded batches to their leaders: in order for each partition, one request in flight per leader, retried.

With idempotence every batch carries producer id and sequence, so that a retry is stored once; a task that fails and
runs again is a new producer, and its rows are written again (at least once). `partita.spark.writing.task_transaction`
gives it a transaction to write in.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.spark.settings.positions import TopicPartition
from partita.spark.settings.produce import ProduceSettings

PRODUCE_BY_NAME = 12
SEQUENCE_MASK = 0x7FFF_FFFF


class Batch(Protocol):
    """Encoded records that become a batch once producer id and sequence are known."""

    @property
    def records_count(self) -> int:
        """Number of records it holds."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the records before compression."""
        ...

    def split(self, batch_bytes: int) -> Sequence[Batch]:
        """The same records in batches of at most `batch_bytes`, but for a single large record."""
        ...

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytes:
        """The bytes of the whole batch."""
        ...


class _GivenUp(Exception):
    """A batch was sent as often as `retries` allows; `last` is the error of the last attempt."""

    def __init__(self, last: KafkaError) -> None:
        super().__init__(str(last))
        self.last = last


class Within(Protocol):
    """The transaction that batches are written in."""

    @property
    def transactional_id(self) -> str:
        """The id that every request names."""
        ...

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch."""
        ...

    @property
    def produce_version_max(self) -> int:
        """The highest version of Produce that may carry its batches."""
        ...

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Make the partitions part of the transaction, where that is the client's business."""
        ...


class TopicProducer:
    """Lives as long as one task. All methods run in the cluster's loop."""

    def __init__(self, cluster: Cluster, settings: ProduceSettings, within: Within | None = None) -> None:
        self._cluster = cluster
        self._settings = settings
        self._within = within
        self._producer_id, self._producer_epoch = -1, -1
        self._next_sequence: dict[TopicPartition, int] = defaultdict(int)
        self._largest: dict[str, int] = {}

    async def start(self) -> None:
        """Get a producer id, if batches shall carry one."""
        if self._within is not None:
            self._producer_id, self._producer_epoch = self._within.producer
            return
        if not self._settings.idempotent:
            return

        async def once() -> Any:
            # Without a transactional id brokers ignore the timeout; Java's client sends this number.
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2_147_483_647)
            answer = await self._cluster.request(None, request)
            if answer.error_code:
                raise error_for(answer.error_code, "asking for a producer id")
            return answer

        answer = await self._cluster.retry(once)
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    async def partition_count(self, topic: str, at_least: int = 1) -> int:
        """Number of the topic's partitions; waits max.block.ms for the topic and for `at_least` so many."""

        async def once() -> int:
            view = self._cluster.view.topics.get(topic)
            if view is None or view.error_code or len(view.partitions) < at_least:
                await self._cluster.refresh([topic], create=True)
                view = self._cluster.view.topics.get(topic)
            if view is None or view.error_code or not view.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None or not view.error_code else view.error_code
                raise error_for(code, f"topic {topic}")
            if len(view.partitions) < at_least:
                why = f"topic {topic} has {len(view.partitions)} partitions, a row asks for partition {at_least - 1}"
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
            return len(view.partitions)

        count: int = await self._cluster.retry(once, timeout_ms=self._settings.max_block_ms)
        return count

    async def send(self, batches: Mapping[TopicPartition, Sequence[Batch]]) -> None:
        """Send every batch and wait until all are acknowledged. Raises errors that a retry did not cure.

        A batch that is too large for the broker is split until it fits, and so are later ones of its topic. A single
        record that is too large raises MessageTooLargeError.
        """
        queues = {key: deque(queue) for key, queue in batches.items() if queue}
        if self._within is not None:
            await self._within.add(queues)
        while queues:
            firsts = {key: self._fitting(key, queue) for key, queue in queues.items()}
            sequences = {key: self._next_sequence[key] for key in firsts}
            sealed = {key: self._sealed(key, first) for key, first in firsts.items()}
            for key in await self._send_round(sealed):
                # The broker appended nothing, so the parts of the split batch use its sequences.
                self._next_sequence[key] = sequences[key]
                self._split(key, firsts[key], queues[key])
            queues = {key: queue for key, queue in queues.items() if queue}

    def _fitting(self, key: TopicPartition, queue: deque[Batch]) -> Batch:
        """The next batch of a partition, split first if its topic has refused smaller ones."""
        first = queue.popleft()
        most = self._largest.get(key[0])
        if most is not None and first.size > most and first.records_count > 1:
            queue.extendleft(reversed(first.split(most)))
            first = queue.popleft()
        return first

    def _split(self, key: TopicPartition, refused: Batch, queue: deque[Batch]) -> None:
        if refused.records_count == 1:
            where = f"writing to {key[0]}-{key[1]}: one record of {refused.size} bytes"
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{where}; the topic's max.message.bytes is smaller: raise it, or write smaller rows",
            )
        self._largest[key[0]] = min(refused.size // 2, self._largest.get(key[0], refused.size))
        queue.appendleft(refused)

    def _sealed(self, key: TopicPartition, batch: Batch) -> bytes:
        """The bytes of a batch, with the next sequence of its partition."""
        if not self._settings.idempotent:
            return batch.build()
        sequence = self._next_sequence[key]
        self._next_sequence[key] = (sequence + batch.records_count) & SEQUENCE_MASK
        return batch.build(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
            is_transactional=self._within is not None,
        )

    async def _send_round(self, batches: dict[TopicPartition, bytes]) -> set[TopicPartition]:
        """Send at most one batch for each partition; those refused for the moment are sent again, the very same bytes.

        Returns the partitions whose batch is too large for the broker.
        """
        waiting = dict(batches)
        too_large: set[TopicPartition] = set()
        attempts = 0

        async def once() -> None:
            nonlocal attempts
            attempts += 1
            try:
                await attempt()
            except KafkaError as error:
                # A retriable error would be tried again by `Cluster.retry`; wrap it once `retries` are used up.
                if error.retriable and attempts > self._settings.retries:
                    raise _GivenUp(error) from error
                raise

        async def attempt() -> None:
            by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
            for topic, partition in waiting:
                by_leader[(await self._cluster.leader_for(topic, partition)).id].append((topic, partition))
            await asyncio.gather(
                *(self._to_leader(node_id, keys, waiting, too_large) for node_id, keys in by_leader.items())
            )
            if waiting:
                self._cluster.expire_metadata()
                raise error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not acknowledged: {sorted(waiting)[:5]}")

        try:
            await self._cluster.retry(once, timeout_ms=self._settings.delivery_timeout_ms)
        except _GivenUp as given_up:
            raise given_up.last from None
        return too_large

    async def _to_leader(
        self,
        node_id: int,
        keys: list[TopicPartition],
        waiting: dict[TopicPartition, bytes],
        too_large: set[TopicPartition],
    ) -> None:
        """Requests of at most `request_bytes`, one after the other; removes answered batches from `waiting`."""
        while keys:
            size = 0
            chosen: list[TopicPartition] = []
            while keys and (not chosen or size + len(waiting[keys[-1]]) <= self._settings.request_bytes):
                chosen.append(keys.pop())
                size += len(waiting[chosen[-1]])
            request = self._request(chosen, waiting)
            if self._settings.acks == 0:
                connection = await self._cluster.connection(node_id)
                connection.tell(request, connection.version_for(request, PRODUCE_BY_NAME))
                for key in chosen:
                    del waiting[key]
                continue
            most = PRODUCE_BY_NAME if self._within is None else self._within.produce_version_max
            answer = await self._cluster.request(node_id, request, max_version=most)
            for topic in answer.responses:
                for partition in topic.partition_responses:
                    _judge((topic.name, partition.index), partition, waiting, too_large)

    def _request(self, keys: list[TopicPartition], waiting: Mapping[TopicPartition, bytes]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
        for topic, partition in keys:
            topics[topic].append(PartitionProduceData(index=partition, records=waiting[topic, partition]))
        return ProduceRequest(
            transactional_id=None if self._within is None else self._within.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._cluster.config.request_timeout_ms,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )


def _judge(
    key: TopicPartition, told: Any, waiting: dict[TopicPartition, bytes], too_large: set[TopicPartition]
) -> None:
    if told.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        waiting.pop(key, None)
    elif told.error_code == ErrorCode.MESSAGE_TOO_LARGE:
        waiting.pop(key, None)
        too_large.add(key)
    elif not ErrorCode(told.error_code).retriable:
        raise error_for(told.error_code, f"writing to {key[0]}-{key[1]}: {told.error_message or ''}".rstrip(": "))
