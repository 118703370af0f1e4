"""The requests of a transaction, built from the producer's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partita.producer.transactions.calls import Call
from partita.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from partita.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, V3AndBelowTopic
from partita.protocol.messages.end_txn import EndTxnRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

Producer = tuple[int, int]
"""Producer id and epoch."""


class Requests:
    """Of one transactional id; `timeout_ms` is how long a transaction may stay open."""

    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        self._id = transactional_id
        self._timeout_ms = timeout_ms

    def init(self, producer: Producer | None) -> InitProducerIdRequest:
        """Take the id, or raise the epoch of the producer that has it."""
        producer_id, epoch = producer or (-1, -1)
        return InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )

    def add_partitions(self, producer: Producer, partitions: Iterable[tuple[str, int]]) -> AddPartitionsToTxnRequest:
        """Add partitions to the transaction, as clients do before version 4."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[V3AndBelowTopic(name=name, partitions=some) for name, some in by_topic.items()],
        )

    def add_offsets(self, producer: Producer, group_id: str) -> AddOffsetsToTxnRequest:
        """Add the offsets of a group to the transaction."""
        return AddOffsetsToTxnRequest(
            transactional_id=self._id, producer_id=producer[0], producer_epoch=producer[1], group_id=group_id
        )

    def commit_offsets(
        self, producer: Producer, call: Call, topic_id: Callable[[str], bytes]
    ) -> TxnOffsetCommitRequest:
        """Commit the remaining offsets of a call, in the name of the consuming member."""
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, partition), at in call.offsets.items():
            topics.setdefault(
                topic, TxnOffsetCommitRequestTopic(name=topic, topic_id=topic_id(topic))
            ).partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=at.offset,
                    committed_leader_epoch=at.leader_epoch,
                    committed_metadata=at.metadata,
                )
            )
        member = call.member
        return TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=member.group_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=list(topics.values()),
        )

    def end(self, producer: Producer, *, committed: bool) -> EndTxnRequest:
        """End the transaction."""
        return EndTxnRequest(
            transactional_id=self._id, producer_id=producer[0], producer_epoch=producer[1], committed=committed
        )
