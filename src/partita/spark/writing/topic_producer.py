"""Sends encoded batches to their leaders: in order for each partition, one request in flight a leader, retried.

With idempotence every batch carries producer id and sequence, so that a retry is stored once; a task that fails and
runs again is a new producer, and its rows are written again (at least once).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from partita.errors import error_for
from partita.net.cluster import Cluster
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.spark.cluster.broker_link import whole_number
from partita.spark.positions import TopicPartition

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
PRODUCE_BY_NAME = 12
SEQUENCE_MASK = 0x7FFF_FFFF


class Batch(Protocol):
    """Encoded records that become a batch once producer id and sequence are known."""

    @property
    def records_count(self) -> int:
        """How many records it holds."""
        ...

    def build(self, *, producer_id: int = -1, producer_epoch: int = -1, base_sequence: int = -1) -> bytes:
        """The bytes of the whole batch."""
        ...


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """How to send; times in milliseconds, sizes in bytes."""

    acks: int = -1
    idempotent: bool = True
    codec: int = 0
    batch_bytes: int = 900_000
    request_bytes: int = 16 << 20
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000


def produce_settings(client: Mapping[str, str]) -> ProduceSettings:
    """From the client options of a sink. Raises ConfigError."""
    plain = ProduceSettings()
    acks = _choice(client, "acks", "all", ACKS)
    wanted = _choice(client, "enable.idempotence", "true" if acks == -1 else "false", {"true": True, "false": False})
    if wanted and acks != -1:
        raise ConfigError("kafka.enable.idempotence=true needs kafka.acks=all")
    return ProduceSettings(
        acks=acks,
        idempotent=bool(wanted),
        codec=_choice(client, "compression.type", "none", CODECS),
        batch_bytes=max(1, whole_number(client, "batch.size", plain.batch_bytes)),
        request_bytes=whole_number(client, "max.request.size", plain.request_bytes),
        max_block_ms=whole_number(client, "max.block.ms", plain.max_block_ms),
        delivery_timeout_ms=whole_number(client, "delivery.timeout.ms", plain.delivery_timeout_ms),
    )


def _choice(client: Mapping[str, str], name: str, default: str, allowed: Mapping[str, int]) -> int:
    text = client.get(name, default).strip().lower()
    if text not in allowed:
        raise ConfigError(f"kafka.{name} must be one of {', '.join(allowed)}, not {text!r}")
    return allowed[text]


class TopicProducer:
    """Lives as long as one task. All methods run in the cluster's loop."""

    def __init__(self, cluster: Cluster, settings: ProduceSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._producer_id, self._producer_epoch = -1, -1
        self._next_sequence: dict[TopicPartition, int] = defaultdict(int)

    async def start(self) -> None:
        """Get a producer id, if batches shall carry one."""
        if not self._settings.idempotent:
            return

        async def once() -> Any:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2_147_483_647)
            answer = await self._cluster.request(None, request)
            if answer.error_code:
                raise error_for(answer.error_code, "asking for a producer id")
            return answer

        answer = await self._cluster.retry(once)
        self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch

    async def partition_count(self, topic: str, at_least: int = 1) -> int:
        """How many partitions the topic has; waits max.block.ms for the topic and for `at_least` so many."""

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
        """Send every batch and wait until all are acknowledged. Raises what a retry did not cure."""
        queues = {key: list(reversed(queue)) for key, queue in batches.items() if queue}
        while queues:
            first = {key: self._sealed(key, queue.pop()) for key, queue in queues.items()}
            await self._send_round(first)
            queues = {key: queue for key, queue in queues.items() if queue}

    def _sealed(self, key: TopicPartition, batch: Batch) -> bytes:
        """The bytes of a batch, with the next sequence of its partition."""
        if not self._settings.idempotent:
            return batch.build()
        sequence = self._next_sequence[key]
        self._next_sequence[key] = (sequence + batch.records_count) & SEQUENCE_MASK
        return batch.build(producer_id=self._producer_id, producer_epoch=self._producer_epoch, base_sequence=sequence)

    async def _send_round(self, batches: dict[TopicPartition, bytes]) -> None:
        """At most one batch a partition; those refused for the moment are sent again, the very same bytes."""
        waiting = dict(batches)

        async def once() -> None:
            by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
            for topic, partition in waiting:
                by_leader[(await self._cluster.leader_for(topic, partition)).id].append((topic, partition))
            await asyncio.gather(*(self._to_leader(node_id, keys, waiting) for node_id, keys in by_leader.items()))
            if waiting:
                self._cluster.expire_metadata()
                raise error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not acknowledged: {sorted(waiting)[:5]}")

        await self._cluster.retry(once, timeout_ms=self._settings.delivery_timeout_ms)

    async def _to_leader(self, node_id: int, keys: list[TopicPartition], waiting: dict[TopicPartition, bytes]) -> None:
        """Requests of at most `request_bytes`, one after the other; takes what is acknowledged out of `waiting`."""
        while keys:
            size = 0
            chosen: list[TopicPartition] = []
            while keys and (not chosen or size + len(waiting[keys[-1]]) <= self._settings.request_bytes):
                chosen.append(keys.pop())
                size += len(waiting[chosen[-1]])
            await self._one_request(node_id, chosen, waiting)

    async def _one_request(
        self, node_id: int, keys: list[TopicPartition], waiting: dict[TopicPartition, bytes]
    ) -> None:
        topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
        for topic, partition in keys:
            topics[topic].append(PartitionProduceData(index=partition, records=waiting[topic, partition]))
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._cluster.config.request_timeout_ms,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )
        if self._settings.acks == 0:
            connection = await self._cluster.connection(node_id)
            connection.tell(request, connection.version_for(request, PRODUCE_BY_NAME))
            for key in keys:
                del waiting[key]
            return
        answer = await self._cluster.request(node_id, request, max_version=PRODUCE_BY_NAME)
        for told in answer.responses:
            for part in told.partition_responses:
                self._judge((told.name, part.index), part, waiting)

    @staticmethod
    def _judge(key: TopicPartition, told: Any, waiting: dict[TopicPartition, bytes]) -> None:
        if told.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            waiting.pop(key, None)
        elif not ErrorCode(told.error_code).retriable:
            raise error_for(told.error_code, f"writing to {key[0]}-{key[1]}: {told.error_message or ''}".rstrip(": "))
