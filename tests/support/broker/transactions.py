"""A broker without sockets for transactions: every request in a few words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from partita.broker.api.context import RequestContext
from partita.broker.storage.store import Store
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.broker.transactions.runner import TransactionRunner
from partita.group import partition_for
from partita.log.partition_log import PartitionLog
from partita.log.producer_state import bytes_of, read_marker
from partita.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from partita.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    V3AndBelowTopic,
)
from partita.protocol.messages.describe_transactions import DescribedTransaction, DescribeTransactionsRequest
from partita.protocol.messages.end_txn import EndTxnRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from partita.records.batch import iter_records
from partita.records.builder import build_batch
from partita.records.control import COMMIT
from partita.records.header import iter_batches
from partita.transactions.contract import Record
from partita.transactions.log_records import read_record
from support.broker.data_plane import DataPlane

Given = tuple[int, int]
"""A producer id and an epoch."""


class TransactionPlane(DataPlane):
    """Topics t and u with two partitions each; `p` is the transactional id where none is named."""

    def __init__(self, store: Store | None = None, nodes: int = 1, **options: object) -> None:
        super().__init__(store, nodes, **options)
        self.cluster.is_running = True
        self.services.follow_topics()
        self.run(self.services.load_groups)
        for name in ("t", "u"):
            if self.cluster.catalogue.get(name) is None:
                self.topic(name, 2)
        self.find()
        self.find("g", key_type=0)

    def run(self, work: Any) -> Any:
        """Call `work()` on the loop."""

        async def call() -> Any:
            return work()

        return self.loop.run_until_complete(call())

    def find(self, key: str = "p", key_type: int = 1) -> int:
        """The code of FindCoordinator."""
        answer = self.ask("find_coordinator", 4, FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]))
        return int(answer.coordinators[0].error_code)

    @property
    def runner(self) -> TransactionRunner:
        """The shard of `p`."""
        found = self.services.transactions().runner_of("p")
        assert found is not None, "somebody leads the shard"
        return found

    def init(self, name: str | None = "p", given: Given = (-1, -1), version: int = 5, timeout_ms: int = 60_000) -> Any:
        """(code, producer id, epoch)."""
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=given[0], producer_epoch=given[1]
        )
        answer = self.ask("init_producer_id", version, request)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def start(self, name: str = "p", **fields: Any) -> Given:
        """The producer id and epoch that InitProducerId gives."""
        code, producer_id, epoch = self.init(name, **fields)
        assert code == 0
        return producer_id, epoch

    def add(self, given: Given, *partitions: tuple[str, int], name: str = "p", version: int = 3) -> list[int]:
        """The codes of AddPartitionsToTxn by a client."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=given[0],
            v3_and_below_producer_epoch=given[1],
            v3_and_below_topics=[V3AndBelowTopic(name=topic, partitions=[index]) for topic, index in partitions],
        )
        answer = self.ask("add_partitions_to_txn", version, request)
        return [r.partition_error_code for t in answer.results_by_topic_v3_and_below for r in t.results_by_partition]

    def verify(
        self, given: Given, *partitions: tuple[str, int], name: str = "p", version: int = 5, only: bool = True
    ) -> list[int]:
        """The codes of AddPartitionsToTxn by a broker."""
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions]
        one = AddPartitionsToTxnTransaction(
            transactional_id=name, producer_id=given[0], producer_epoch=given[1], verify_only=only, topics=topics
        )
        answer = self.ask("add_partitions_to_txn", version, AddPartitionsToTxnRequest(transactions=[one]))
        if answer.error_code:
            return [answer.error_code]
        (result,) = answer.results_by_transaction
        return [r.partition_error_code for t in result.topic_results for r in t.results_by_partition]

    def add_offsets(self, given: Given, group: str = "g", name: str = "p", version: int = 4) -> int:
        """The code of AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=given[0], producer_epoch=given[1], group_id=group
        )
        return int(self.ask("add_offsets_to_txn", version, request).error_code)

    def commit_offset(
        self, given: Given, offset: int = 7, group: str = "g", name: str = "p", version: int = 5, **fields: Any
    ) -> int:
        """The code of TxnOffsetCommit for partition 0 of t."""
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=group,
            producer_id=given[0],
            producer_epoch=given[1],
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
            **fields,
        )
        return int(self.ask("txn_offset_commit", version, request).topics[0].partitions[0].error_code)

    def committed(self, group: str = "g", *, stable: bool = False) -> int:
        """The committed offset of partition 0 of t; minus the code of an error."""
        topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        asked = OffsetFetchRequestGroup(group_id=group, topics=[topic])
        answer = self.ask("offset_fetch", 9, OffsetFetchRequest(groups=[asked], require_stable=stable))
        partition = answer.groups[0].topics[0].partitions[0]
        return -int(partition.error_code) if partition.error_code else int(partition.committed_offset)

    def send(
        self, given: Given, *partitions: tuple[str, int], sequence: int = 0, version: int = 12, name: str | None = "p",
        count: int = 1, transactional: bool = True,
    ) -> list[int]:  # fmt: skip
        """The codes of Produce."""
        return [part.error_code for part in self.send_for(
            given, *partitions, sequence=sequence, version=version, name=name, count=count, transactional=transactional
        )]  # fmt: skip

    def send_for(
        self, given: Given, *partitions: tuple[str, int], sequence: int = 0, version: int = 12, name: str | None = "p",
        count: int = 1, transactional: bool = True,
    ) -> list[Any]:  # fmt: skip
        """The answers of Produce for each partition (t-0 where none is named)."""
        now = self.cluster.clock.now()
        records = build_batch(
            [(now.wall_ms, b"k", b"v", ())] * count,
            producer_id=given[0],
            producer_epoch=given[1],
            base_sequence=sequence,
            is_transactional=transactional,
        )
        topics = [
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
            for topic, index in partitions or (("t", 0),)
        ]
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5000, topic_data=topics)
        answer = self.ask("produce", version, request)
        return [part for topic in answer.responses for part in topic.partition_responses]

    def end(self, given: Given, committed: bool = True, version: int = 5, name: str = "p") -> Any:
        """The code of EndTxn; from version 5 on (code, producer id, epoch)."""
        request = EndTxnRequest(
            transactional_id=name, producer_id=given[0], producer_epoch=given[1], committed=committed
        )
        answer = self.ask("end_txn", version, request)
        code = answer.error_code
        return (code, answer.producer_id, answer.producer_epoch) if version >= 5 else code

    def mark(
        self, given: Given, *partitions: tuple[str, int], committed: bool = True, coordinator: int = 0,
        version: int = 2, level: int = 0,
    ) -> list[int]:  # fmt: skip
        """The codes of WriteTxnMarkers."""
        marker = WritableTxnMarker(
            producer_id=given[0],
            producer_epoch=given[1],
            transaction_result=committed,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index]) for topic, index in partitions],
            coordinator_epoch=coordinator,
            transaction_version=level,
        )
        answer = self.ask("write_txn_markers", version, WriteTxnMarkersRequest(markers=[marker]))
        return [p.error_code for m in answer.markers for t in m.topics for p in t.partitions]

    def describe(self, name: str = "p") -> DescribedTransaction:
        """What DescribeTransactions tells of one id."""
        answer = self.ask("describe_transactions", 0, DescribeTransactionsRequest(transactional_ids=[name]))
        (found,) = answer.transaction_states
        assert isinstance(found, DescribedTransaction)
        return found

    def log(self, topic: str = "t", index: int = 0) -> PartitionLog:
        """A partition's log."""
        partition = self.cluster.catalogue.partition(topic, index)
        assert partition is not None
        return partition.log

    def offsets_log(self, group: str = "g") -> tuple[str, int]:
        """The partition that holds a group's offsets."""
        return OFFSETS_TOPIC, partition_for(group, len(self.cluster.catalogue.by_name[OFFSETS_TOPIC].partitions))

    def states(self, name: str = "p") -> list[tuple[str, int]]:
        """State and epoch of every record of an id, as the log of `__transaction_state` has them."""
        partition = self.services.transactions().partition_of(name)
        assert partition is not None
        log, found = partition.log, []
        for _, batch in iter_batches(log.read(0, 1 << 20, up_to=log.log_end_offset)):
            for record in iter_records(batch):
                value = None if record.value is None else bytes_of(record.value)
                loaded = read_record(Record(bytes_of(record.key), value))
                if loaded is not None and loaded.transactional_id == name:
                    of = loaded.transaction
                    found.append(("-", -1) if of is None else (of.state.text, of.epoch))
        return found

    def markers(self, topic: str = "t", index: int = 0) -> list[tuple[int, int, bool]]:
        """(producer id, epoch, whether it commits) of every marker in a log."""
        log, found = self.log(topic, index), []
        for header, batch in iter_batches(log.read(log.log_start_offset, 1 << 20, up_to=log.log_end_offset)):
            marker = read_marker(batch) if header.is_control else None
            if marker is not None:
                found.append((header.producer_id, header.producer_epoch, marker[0] == COMMIT))
        return found

    def move(self, name: str = "p") -> None:
        """Let the coordinator of an id load again, as after a move."""
        partition = self.services.transactions().partition_of(name)
        assert partition is not None
        self.run(lambda: self.services.transactions().resigned(partition.index, partition.leader_epoch + 1))
        self.run(lambda: self.cluster.elect(partition, partition.leader))
        self.run(lambda: self.cluster.elect(partition, partition.leader))

    def context(self, version: int = 0) -> RequestContext:
        """What a handler is given."""
        return RequestContext(self.services, self.node, 0, version, client_id="test", connection=self.connection)


@contextmanager
def transaction_plane(store: Store | None = None, nodes: int = 1, **options: object) -> Iterator[TransactionPlane]:
    """A broker without sockets, for one block."""
    plane = TransactionPlane(store, nodes, **options)
    try:
        yield plane
    finally:
        plane.close()


def wait_for(plane: TransactionPlane, condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds, for 20 s at least."""
    for _ in range(10_000):
        if condition():
            return
        plane.loop.run_until_complete(asyncio.sleep(0.002))
    raise AssertionError("it did not come true")
