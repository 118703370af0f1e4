"""Send encoded batches to their leaders, in order for each partition, retried.

With idempotence every batch carries producer id and sequence, so that a retry is stored once, and a broker refuses a
batch whose predecessor it lacks. So several requests are in flight, and what one of them does not bring in is sent
again when everything before it is stored. Only a partition's first batch goes alone: a broker that does not know the
producer takes any sequence. A task that fails and runs again is a new producer, and its rows are written again (at
least once). `partita.spark.writing.task_transaction` gives it a transaction to write in.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Buffer
from partita.spark.settings.positions import TopicPartition
from partita.spark.settings.produce import ProduceSettings

PRODUCE_BY_NAME = 12
IN_FLIGHT_MAX = 5
"""Requests that are sent without waiting: of so many batches in a row a broker knows which it has stored already."""
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
    ) -> Buffer:
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
        self._next_sequence: dict[TopicPartition, int] = {}
        self._known: set[TopicPartition] = set()
        """Partitions that have stored a batch of this producer."""
        self._in_flight_max = IN_FLIGHT_MAX if settings.idempotent and settings.retries else 1
        self._is_stopped = False
        self._rounds: deque[tuple[asyncio.Task[None], int]] = deque()
        """Rounds under way, at most one batch for each partition in each, with their bytes before compression."""
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
                raise error_for(code, f"topic {topic}", operation="WRITE", names=[topic], user=self._cluster.user)
            if len(view.partitions) < at_least:
                why = f"topic {topic} has {len(view.partitions)} partitions, a row asks for partition {at_least - 1}"
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
            return len(view.partitions)

        count: int = await self._cluster.retry(once, timeout_ms=self._settings.max_block_ms)
        return count

    async def send(self, batches: Mapping[TopicPartition, Sequence[Batch]]) -> None:
        """Send every batch, and wait until few are under way: `flush` returns when all are acknowledged.

        Raises errors that a retry did not cure, those of batches sent before, too; then nothing is under way any more.
        A batch that is too large for the broker is split until it fits, and so are later ones of its topic. A single
        record that is too large raises MessageTooLargeError.
        """
        queues = {key: deque(queue) for key, queue in batches.items() if queue}
        if self._within is not None:
            await self._within.add(queues)
        while queues:
            firsts = {key: self._fitting(key, queue) for key, queue in queues.items()}
            size = sum(first.size for first in firsts.values())
            while self._rounds and not self._may_go(firsts, size):
                await self._oldest()
            before = self._rounds[-1][0] if self._rounds else None
            sequences = {key: self._next_sequence.get(key, 0) for key in firsts}
            for key, first in firsts.items():
                self._next_sequence[key] = (sequences[key] + first.records_count) & SEQUENCE_MASK
            self._rounds.append((asyncio.create_task(self._round(firsts, sequences, before)), size))
            queues = {key: queue for key, queue in queues.items() if queue}

    async def flush(self) -> None:
        """Wait until everything sent is acknowledged. Raises errors as `send` does."""
        while self._rounds:
            await self._oldest()

    async def stop(self) -> None:
        """Send nothing more, and wait for the answers to what is under way, whatever they are.

        Before a transaction is aborted: a batch that comes later could belong to the next one.
        """
        self._is_stopped = True
        await asyncio.gather(*(task for task, _ in self._rounds), return_exceptions=True)

    def _may_go(self, firsts: Iterable[TopicPartition], size: int) -> bool:
        """Whether a round may be sent now, behind those under way."""
        is_small = size + sum(size for _, size in self._rounds) <= self._settings.request_bytes
        knows = all(key in self._known or key not in self._next_sequence for key in firsts)
        return is_small and knows and len(self._rounds) < self._in_flight_max

    async def _oldest(self) -> None:
        try:
            await self._rounds[0][0]
        except Exception:
            await self.stop()
            raise
        self._rounds.popleft()

    async def _round(
        self,
        batches: Mapping[TopicPartition, Batch],
        sequences: Mapping[TopicPartition, int],
        before: asyncio.Task[None] | None,
    ) -> None:
        """Have one batch for each partition stored, behind those of the round `before`."""
        waiting = {key: self._sealed(batch, sequences[key]) for key, batch in batches.items()}
        too_large: set[TopicPartition] = set()
        attempts = 0
        if self._in_flight_max > 1:
            attempts = 1
            with suppress(KafkaError):
                await self._attempt(waiting, too_large)
        if before is not None:
            # Also where nothing waits: a partition's batch may be behind one of a round that is further ahead.
            await before
        await self._send_again(waiting, too_large, attempts)
        self._known.update(batches.keys() - too_large)
        for key in too_large:
            # The broker stored nothing, so the parts of the split batch use its sequences.
            sequence = sequences[key]
            queue = deque([batches[key]])
            self._shrink(key, batches[key])
            while queue:
                part = self._fitting(key, queue)
                await self._round({key: part}, {key: sequence}, None)
                sequence = (sequence + part.records_count) & SEQUENCE_MASK

    def _fitting(self, key: TopicPartition, queue: deque[Batch]) -> Batch:
        """The next batch of a partition, split first if its topic has refused smaller ones."""
        first = queue.popleft()
        most = self._largest.get(key[0])
        if most is not None and first.size > most and first.records_count > 1:
            queue.extendleft(reversed(first.split(most)))
            first = queue.popleft()
        return first

    def _shrink(self, key: TopicPartition, refused: Batch) -> None:
        """Have later batches of the topic be smaller than this one. Raises MessageTooLargeError for a single record."""
        if refused.records_count == 1:
            where = f"writing to {key[0]}-{key[1]}: one record of {refused.size} bytes"
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{where}; the topic's max.message.bytes is smaller: raise it, or write smaller rows",
            )
        self._largest[key[0]] = min(refused.size // 2, self._largest.get(key[0], refused.size))

    def _sealed(self, batch: Batch, sequence: int) -> Buffer:
        if not self._settings.idempotent:
            return batch.build()
        return batch.build(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
            is_transactional=self._within is not None,
        )

    async def _send_again(
        self, waiting: dict[TopicPartition, Buffer], too_large: set[TopicPartition], attempts: int
    ) -> None:
        """Send what is waiting, the very same bytes, until nothing is; `attempts` were made already."""

        async def once() -> None:
            nonlocal attempts
            if not waiting:
                return
            attempts += 1
            try:
                await self._attempt(waiting, too_large)
            except KafkaError as error:
                # A retriable error would be tried again by `Cluster.retry`; wrap it once `retries` are used up.
                if error.retriable and attempts > self._settings.retries:
                    raise _GivenUp(error) from error
                raise

        try:
            await self._cluster.retry(once, timeout_ms=self._settings.delivery_timeout_ms)
        except _GivenUp as given_up:
            raise given_up.last from None

    async def _attempt(self, waiting: dict[TopicPartition, Buffer], too_large: set[TopicPartition]) -> None:
        """Send what is waiting once. Raises KafkaError while something still waits, when every answer is there."""
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for topic, partition in waiting:
            by_leader[(await self._cluster.leader_for(topic, partition)).id].append((topic, partition))
        outcomes = await asyncio.gather(
            *(self._to_leader(node_id, keys, waiting, too_large) for node_id, keys in by_leader.items()),
            return_exceptions=True,
        )
        if waiting:
            self._cluster.expire_metadata()
        for error in filter(None, outcomes):
            raise error
        if waiting:
            raise error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not acknowledged: {sorted(waiting)[:5]}")

    async def _to_leader(
        self,
        node_id: int,
        keys: list[TopicPartition],
        waiting: dict[TopicPartition, Buffer],
        too_large: set[TopicPartition],
    ) -> KafkaError | None:
        """Requests of at most `request_bytes`, one after the other; removes answered batches from `waiting`.

        Returns why one of those that are left has to be sent again.
        """
        refused = None
        while keys:
            if self._is_stopped:
                raise asyncio.CancelledError
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
                    key = (topic.name, partition.index)
                    refused = self._judge(key, partition, waiting, too_large) or refused
        return refused

    def _request(self, keys: list[TopicPartition], waiting: Mapping[TopicPartition, Buffer]) -> ProduceRequest:
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
        self, key: TopicPartition, told: Any, waiting: dict[TopicPartition, Buffer], too_large: set[TopicPartition]
    ) -> KafkaError | None:
        """Return the error after which the batch is sent again; raise one that is final."""
        if told.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            waiting.pop(key, None)
            return None
        if told.error_code == ErrorCode.MESSAGE_TOO_LARGE:
            waiting.pop(key, None)
            too_large.add(key)
            return None
        text = f"writing to {key[0]}-{key[1]}: {told.error_message or ''}".rstrip(": ")
        error = error_for(told.error_code, text, operation="WRITE", names=[key[0]], user=self._cluster.user)
        if not error.retriable:
            raise error
        return error
