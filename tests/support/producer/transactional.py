"""A transactional producer's core against coordinators and brokers that answer what the test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from partita.producer.batch import NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.core import Poll, ProducerCore, Sending
from partita.producer.delivery import Delivery
from partita.producer.transactions.calls import Ask, Call, Member, State, TxnOffset
from partita.producer.transactions.core import Transactions
from partita.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from partita.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResponse,
    V3AndBelowPartitionResult,
    V3AndBelowTopicResult,
)
from partita.protocol.messages.end_txn import EndTxnResponse
from partita.protocol.messages.init_producer_id import InitProducerIdResponse
from partita.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from partita.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from partita.protocol.metadata_view import MetadataView
from partita.records.batch import read_header

MEMBER = Member("g", 4, "m-1", "i-1")
LATEST = {"InitProducerId": 5, "AddPartitionsToTxn": 3, "AddOffsetsToTxn": 4, "TxnOffsetCommit": 5, "EndTxn": 5}


class TransactionalWorld:
    """One core with transactional id "tx" and three partitions of topic "t". `level` is that of transaction.version.

    `sent` names what has left, in order: "EndTxn v5", "Produce 7/0 seq 0".
    """

    def __init__(self, level: int = 2, **options: Any) -> None:
        view = MetadataView()
        parts = [
            MetadataResponsePartition(partition_index=p, leader_id=1, leader_epoch=1, replica_nodes=[1], isr_nodes=[1])
            for p in range(3)
        ]
        node = MetadataResponseBroker(node_id=1, host="h", port=1)
        view.update(MetadataResponse(brokers=[node], topics=[MetadataResponseTopic(name="t", partitions=parts)]), 12)
        config = ProducerConfig.of(bootstrap_servers="b:1", transactional_id="tx", **{"linger_ms": 0, **options})
        self.core = ProducerCore(config, view, lambda bound: 0)
        assert self.core.transactions is not None
        self.transactions: Transactions = self.core.transactions
        self.level = level
        self.transactions.learn(0, level)
        self.now = 0
        self.sent: list[str] = []

    @property
    def state(self) -> State:
        return self.transactions.state

    def send(self, value: bytes = b"v", partition: int = 0) -> Delivery:
        delivery = Delivery(NewRecord("t", None, value, (), 1, partition))
        self.core.add(delivery, self.now)
        return delivery

    def send_offsets(self, member: Member = MEMBER, offset: int = 5) -> Call:
        return self.transactions.send_offsets({("in", 0): TxnOffset(offset), ("in", 1): TxnOffset(offset)}, member)

    def poll(self, later: int = 0) -> Poll:
        self.now += later
        poll = self.core.poll(self.now)
        for sending in poll.sendings:
            for topic in self.core.request_for(sending).topic_data:
                for part in topic.partition_data:
                    head = read_header(part.records or b"")
                    limit = "" if sending.max_version in (None, 12) else f" v{sending.max_version}"
                    where = f"{head.producer_id}/{head.producer_epoch} seq {head.base_sequence}"
                    self.sent.append(f"Produce{limit} {topic.name}-{part.index} {where}")
        if poll.ask is not None:
            self.sent.append(f"{poll.ask.api} v{version_of(poll.ask)}")
        return poll

    def ask(self, later: int = 0) -> Ask:
        ask = self.poll(later).ask
        assert ask is not None, "nothing is asked"
        return ask

    def answer(self, ask: Ask, code: int = 0, of: Callable[[int], int] | None = None) -> None:
        """`of` gives the code of each partition."""
        self.transactions.on_answer(ask, self._answer_to(ask, of or (lambda _: code), code), self.now)

    def _answer_to(self, ask: Ask, of: Callable[[int], int], code: int) -> Any:
        message: Any = ask.message
        match ask.api:
            case "InitProducerId":
                if code:
                    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
                return InitProducerIdResponse(producer_id=7, producer_epoch=message.producer_epoch + 1)
            case "AddPartitionsToTxn":
                return AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=[
                        V3AndBelowTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                V3AndBelowPartitionResult(partition_index=p, partition_error_code=of(p))
                                for p in topic.partitions
                            ],
                        )
                        for topic in message.v3_and_below_topics
                    ]
                )
            case "AddOffsetsToTxn":
                return AddOffsetsToTxnResponse(error_code=code)
            case "TxnOffsetCommit":
                return TxnOffsetCommitResponse(
                    topics=[
                        TxnOffsetCommitResponseTopic(
                            name=topic.name,
                            partitions=[
                                TxnOffsetCommitResponsePartition(
                                    partition_index=p.partition_index, error_code=of(p.partition_index)
                                )
                                for p in topic.partitions
                            ],
                        )
                        for topic in message.topics
                    ]
                )
            case _:
                if code or version_of(ask) < 5:
                    return EndTxnResponse(error_code=code)
                return EndTxnResponse(producer_id=message.producer_id, producer_epoch=message.producer_epoch + 1)

    def delivered(self, sendings: Iterable[Sending], code: int = 0) -> None:
        for sending in sendings:
            parts = [
                PartitionProduceResponse(index=b.partition, error_code=code, base_offset=0) for b in sending.batches
            ]
            answer = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=parts)])
            self.core.on_response(sending, answer, self.now)

    def settle(self) -> None:
        """Answer everything with success until nothing more is sent."""
        for _ in range(50):
            poll = self.poll()
            self.delivered(poll.sendings)
            if poll.ask is not None:
                self.answer(poll.ask)
            elif not poll.sendings:
                return
        raise AssertionError(f"no end: {self.sent[-6:]}")

    def settle_later(self) -> None:
        """The same with a back-off's time before each poll."""
        for _ in range(50):
            poll = self.poll(later=2_000)
            self.delivered(poll.sendings)
            if poll.ask is not None:
                self.answer(poll.ask)
            elif not poll.sendings:
                return
        raise AssertionError(f"no end: {self.sent[-6:]}")

    def ready(self) -> TransactionalWorld:
        """Initialized; what was sent for it is forgotten."""
        self.done(self.transactions.init())
        self.sent.clear()
        return self

    def begun(self) -> TransactionalWorld:
        self.ready().transactions.begin()
        return self

    def done(self, call: Call) -> Call:
        """Settle, and have heard of the call, which must have succeeded."""
        self.settle()
        assert call.is_done
        assert call.error is None, call.error
        self.transactions.heard(call)
        return call

    def failed(self, call: Call) -> Exception:
        """The error of a call that has failed; it is heard."""
        assert call.is_done
        assert call.error is not None
        self.transactions.heard(call)
        return call.error


def version_of(ask: Ask) -> int:
    return LATEST[ask.api] if ask.version_max is None else min(ask.version_max, LATEST[ask.api])
