"""Reads exactly one offset range in a task: fetch, one fetch ahead, straight into Arrow.

Gaps left by compaction, markers and aborted transactions are normal; records that were removed or truncated away
while the batch ran are a loss. A broker that gives no answer ends in an error after the client's timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partita.errors import KafkaError, error_for
from partita.lazy import later
from partita.net.cluster import Cluster
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.primitives import ZERO_UUID, Buffer
from partita.records.header import cut, read_header
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import DataLossError, LossReason, SourceError
from partita.spark.reading.portions import BYTES_MAX, Portion, Portions, bounded
from partita.spark.settings.positions import EARLIEST

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.records import to_arrow as arrow_rows
else:
    # Planners and the processes of streams read no rows.
    arrow_rows = later("partita.records.to_arrow")

NONE = -1


class ServingNode:
    """The broker that serves one partition now. Belongs to the cluster's event loop; times are seconds of its clock."""

    def __init__(self, cluster: Cluster, topic: str, partition: int, rack: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partition = partition
        self._rack = rack
        self._replica = NONE
        self._until = 0.0
        self._is_new = False
        self._is_shunned = False

    @property
    def is_replica(self) -> bool:
        """Whether a nearby replica serves, and not the leader."""
        return self._replica != NONE

    @property
    def rack(self) -> str:
        """The rack to send; empty when the next answer has to come from the leader itself."""
        return "" if self._is_shunned else self._rack

    async def find(self, now: float) -> int:
        """The id of the broker to ask. Raises KafkaError while no leader is known."""
        if self.is_replica and not self._cluster.view.has_online_replica(self._topic, self._partition, self._replica):
            self.shun()
        if self.is_replica and (self._is_new or now < self._until):
            self._is_new = False
            return self._replica
        self._replica = NONE
        return (await self._cluster.leader_for(self._topic, self._partition)).id

    def on_answer(self, preferred: int, now: float) -> bool:
        """Record an answer without error. Return whether it names another broker to ask, in place of records."""
        was_shunned, self._is_shunned = self._is_shunned, False
        if preferred in (NONE, self._replica) or was_shunned:
            return False
        self._is_new = True
        self._replica, self._until = preferred, now + self._cluster.config.metadata_max_age_ms / 1000
        return True

    def shun(self) -> None:
        """Go back to the leader for the next fetch: the replica failed or is behind."""
        self._is_shunned = self.is_replica
        self._replica = NONE


FETCH_BY_NAME = 12
SHORT_ANSWERS_MAX = 3
"""A new leader may briefly report an old high watermark; only one that it repeats means a truncation."""
TOPIC_CHANGED = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID})


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Settings of a fetch; sizes in bytes. `rack` is where this task runs; empty: the leader serves.

    4 MB of a partition cost least: 0.10 CPU seconds for a million records of 100 bytes, 8 MB 0.12, 1 MB 0.17.
    """

    read_committed: bool = False
    fail_on_data_loss: bool = True
    headers: bool = False
    leader_epoch: bool = False
    max_wait_ms: int = 500
    max_bytes: int = 64 << 20
    partition_max_bytes: int = 4 << 20
    batch_bytes: int = BYTES_MAX
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer: batches from `position` on; `next_position` is where the following fetch begins."""

    position: int
    next_position: int
    data: Buffer = b""
    aborted: tuple[tuple[int, int], ...] | None = None


class RangeReader:
    """`for batch in RangeReader(link, task, settings).batches()`: at most 65,536 rows and 16 MB each."""

    def __init__(self, link: BrokerLink, task: RangeTask, settings: FetchSettings) -> None:
        self._link = link
        self._task = task
        self._settings = settings
        self._where = f"{task.topic}-{task.partition}"
        self._short_answers = 0
        self._portions = Portions(settings.batch_bytes)
        self._node = ServingNode(link.cluster, task.topic, task.partition, settings.rack)
        self._pending: Future[Fetched] | None = None

    def start(self) -> None:
        """Begin with the first fetch; `batches` does so by itself. Call `close` if `batches` may not be exhausted."""
        if self._pending is None:
            self._pending = self._link.submit(self.fetch(self._task.begin))

    def close(self) -> None:
        """Give up the fetch that is under way."""
        if self._pending is not None:
            self._pending.cancel()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All records of the range, in order. Raises DataLossError, SourceError or KafkaError."""
        self.start()
        try:
            while self._pending is not None:
                fetched = self._pending.result()
                self._pending = None
                if fetched.next_position < self._task.end:
                    self._pending = self._link.submit(self.fetch(fetched.next_position))
                yield from self.decode(fetched)
        finally:
            self.close()

    def decode(self, fetched: Fetched) -> Iterator[pa.RecordBatch]:
        """The records of one answer, in order. Raises SourceError."""
        for portion in self._portions.of(fetched.data, fetched.aborted):
            yield from self._decode_portion(portion, fetched.position)

    def _decode_portion(self, portion: Portion, position: int) -> Iterator[pa.RecordBatch]:
        end = min(portion.next_offset, self._task.end)
        while position < end:
            part = arrow_rows.FetchedPart(
                topic=self._task.topic,
                partition=self._task.partition,
                data=portion.data,
                fetch_offset=position,
                end_offset=self._task.end,
                aborted=portion.aborted,
            )
            read = arrow_rows.to_arrow(
                [part],
                timestamp_unit="us",
                headers=self._settings.headers,
                leader_epoch=self._settings.leader_epoch,
            )
            self._portions.inflated(portion, read.batch.nbytes)
            yield from bounded(read.batch, self._settings.batch_bytes)
            if read.faults[0] is not None:
                why = f"{self._where} cannot be read at offset {read.next_offsets[0]}: {read.faults[0]}"
                raise SourceError(
                    f"{why}. To go on without this batch, begin behind it: with startingOffsets, and for a stream in a "
                    "new checkpoint"
                )
            if read.next_offsets[0] <= position:
                return
            position = read.next_offsets[0]

    async def fetch(self, position: int) -> Fetched:
        """One answer with records from `position` on, in the link's loop. Raises DataLossError or KafkaError."""
        fetched: Fetched = await self._link.cluster.retry(lambda: self._fetch_once(position))
        return fetched

    async def _fetch_once(self, position: int) -> Fetched:
        """Return one answer. Raises a retriable KafkaError when it should be asked for again."""
        task, answered = self._task, await self._partition_answer(position)
        if answered.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._out_of_range(position)
        if answered.error_code in TOPIC_CHANGED:
            return await self._topic_changed(position)
        if answered.error_code:
            raise self._error(answered.error_code)
        if not answered.records:
            self._short_answers += answered.high_watermark < task.end
            if self._short_answers > SHORT_ANSWERS_MAX:
                return self._lost(
                    position,
                    task.end,
                    LossReason.TRUNCATED,
                    f"ends at {answered.high_watermark}, before the planned {task.end}",
                )
            raise error_for(ErrorCode.REQUEST_TIMED_OUT, f"{self._where}: no records at offset {position}")
        aborted = None
        if self._settings.read_committed:
            aborted = tuple((a.producer_id, a.first_offset) for a in answered.aborted_transactions or ())
        return Fetched(position, self._behind(answered.records, position), answered.records, aborted)

    async def _partition_answer(self, position: int) -> PartitionData:
        """Return the answer of the serving broker, or of the leader if a nearby replica cannot answer."""
        loop = asyncio.get_running_loop()
        while True:
            node_id = await self._node.find(loop.time())
            try:
                answered = await self._ask(node_id, position)
            except KafkaError:
                self._node.shun()
                raise
            if self._node.is_replica and (answered.error_code or not answered.records):
                self._node.shun()
            elif answered.error_code or not self._node.on_answer(answered.preferred_read_replica, loop.time()):
                return answered

    async def _ask(self, node_id: int, position: int) -> PartitionData:
        max_version = FETCH_BY_NAME if self._task.topic_id == ZERO_UUID else None
        answer = await self._link.cluster.request(node_id, self._request(position), max_version=max_version)
        if answer.error_code:
            raise self._error(answer.error_code)
        return answer.responses[0].partitions[0]

    def _error(self, code: int) -> KafkaError:
        """The error of an answer; a broker's failure that it does not explain is asked about again, as in Kafka."""
        if code == ErrorCode.UNKNOWN_SERVER_ERROR:
            return error_for(
                ErrorCode.REQUEST_TIMED_OUT, f"{self._where}: UNKNOWN_SERVER_ERROR, the broker's log says why"
            )
        return error_for(code, self._where, operation="READ", names=[self._task.topic], user=self._link.cluster.user)

    def _request(self, position: int) -> FetchRequest:
        task, settings = self._task, self._settings
        partition = FetchPartition(
            partition=task.partition, fetch_offset=position, partition_max_bytes=settings.partition_max_bytes
        )
        return FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.max_bytes,
            isolation_level=int(settings.read_committed),
            rack_id=self._node.rack,
            topics=[FetchTopic(topic=task.topic, topic_id=task.topic_id, partitions=[partition])],
        )

    @staticmethod
    def _behind(records: Buffer, position: int) -> int:
        """The offset behind the last whole batch, whatever records it still has."""
        for magic, entry in cut(records):
            behind = read_header(entry).next_offset if magic >= 2 else int.from_bytes(entry[:8], "big") + 1
            position = max(position, behind)
        return position

    async def _out_of_range(self, position: int) -> Fetched:
        task = self._task
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=task.topic,
                    partitions=[ListOffsetsPartition(partition_index=task.partition, timestamp=EARLIEST)],
                )
            ],
        )
        answer: Any = await self._link.cluster.request_leader(task.topic, task.partition, request)
        answered = answer.topics[0].partitions[0]
        if answered.error_code:
            raise self._error(answered.error_code)
        if answered.offset <= position:
            return self._lost(position, task.end, LossReason.TRUNCATED, f"was truncated below offset {position}")
        return self._lost(
            position,
            answered.offset,
            LossReason.REMOVED,
            f"lost offsets {position} to {answered.offset}: its log starts there now",
        )

    async def _topic_changed(self, position: int) -> Fetched:
        """Find out whether the broker does not know the topic's id yet or the topic was recreated."""
        task = self._task
        await self._link.cluster.refresh([task.topic])
        now = self._link.cluster.view.topic_id(task.topic)
        if now in (ZERO_UUID, task.topic_id):
            raise error_for(ErrorCode.UNKNOWN_TOPIC_ID, self._where)
        return self._lost(position, task.end, LossReason.RECREATED, "belongs to a topic that was deleted and recreated")

    def _lost(self, position: int, go_on: int, reason: LossReason, why: str) -> Fetched:
        """Skip the gap, unless losses fail the query."""
        if self._settings.fail_on_data_loss:
            why = reason.because(f"{self._where} {why}")
            raise DataLossError(f"{why}. Set failOnDataLoss=false to go on without these records")
        return Fetched(position, go_on)
