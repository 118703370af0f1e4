"""Fetch: read whole batches of many partitions, wait for more if asked to. (Kafka: KafkaApis, ReplicaManager.)

Answers hold views of the files. The first partition with data gets at least one batch whatever the limits say.

Deviation: Partita answers a Fetch with at most 50 MiB after at most 30 s, where Kafka allows 55 MiB (`fetch.max.bytes`)
and any wait.
"""

from __future__ import annotations

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.error_answers import error_answer
from partita.broker.api.needs import OTHERS_GO_ON, InHandler
from partita.broker.api.served import PARTITIONS_MAX, Errors, Quota, Served
from partita.broker.handlers._partitions import endpoints, find
from partita.broker.reading.fetch_sessions import FetchPlan, Key, Wanted, wanted
from partita.broker.reading.long_polls import FEW, Moved
from partita.broker.topics.catalogue import Partition, Topic
from partita.broker.wire.turns import let_go
from partita.group.steps import finished
from partita.log.partition_log import PartitionLog
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from partita.records.header import InvalidBatch
from partita.security.rights.operations import Operation, ResourceType

API = Served(
    FetchRequest,
    rights=(InHandler("READ on each TOPIC", OTHERS_GO_ON),),
    elements_max=PARTITIONS_MAX,
    errors=Errors(fields={"high_watermark": -1, "records": b""}),
    quota=Quota("consumer_byte_rate"),
)

MAX_ANSWER_BYTES = 50 << 20
MAX_WAIT_MS = 30_000
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_IDS_FROM, _SESSIONS_FROM, _ZSTD_FROM, _LEADER_FROM = 13, 7, 10, 16
_REFUSED_BEFORE_READING = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
)


def handle(ctx: RequestContext, request: FetchRequest) -> Steps[Answer]:
    """Answer at once when there is enough, an error, or no time to wait; else a future.

    Unknown isolation levels are refused, as in Kafka.

    Whenever all of many partitions are read, others have their turn in between.
    """
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        refused = error_answer(request.API_KEY, ctx.version, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert isinstance(refused, FetchResponse), "every Fetch is answered"
        return refused
    wait_ms = min(request.max_wait_ms, MAX_WAIT_MS)
    named: dict[Key, Wanted] = {}
    for topic in request.topics:
        yield None
        for key, one in wanted(topic, ctx.version):
            yield None
            named[key] = one
    plan = ctx.fetch_sessions.plan(request, ctx.version, ctx.now().mono_ms, ctx.connection, named)
    if isinstance(plan, ErrorCode):
        return FetchResponse(error_code=plan)
    fetch = _Fetch(ctx, request, plan, (yield from _refused(ctx, plan)))
    if len(plan) > FEW:
        return (yield from _many(ctx, fetch, plan, wait_ms))
    answer = yield from fetch.read(is_final=wait_ms <= 0)
    if answer is not None:
        return answer
    if fetch.is_enough(list(filter(fetch.has_moved, fetch.partitions()))):
        return (yield from fetch.read(is_final=True))
    return ctx.long_polls.wait(fetch.partitions(), fetch.look, wait_ms, ctx.connection)


def _many(ctx: RequestContext, fetch: _Fetch, plan: FetchPlan, wait_ms: int) -> Steps[FetchResponse]:
    answer = yield from fetch.read(is_final=wait_ms <= 0)
    if answer is None:
        yield (
            yield from ctx.long_polls.wait_for_many(
                fetch.partitions(), fetch.has_moved, fetch.look_for_reason, wait_ms, ctx.connection
            )
        )
        answer = yield from fetch.read(is_final=True)
    assert answer is not None, "a final reading is answered"
    yield from fetch.let_go()
    yield from plan.let_go()
    return answer


class _Fetch:
    """One request: its partitions are read once, those that move are looked at again, and it is answered once."""

    __slots__ = ("_limit", "_plan", "_read_to", "_refused", "_request", "_sizes", "_total", "_wanted", "ctx")

    def __init__(
        self, ctx: RequestContext, request: FetchRequest, plan: FetchPlan, refused: frozenset[bytes | str]
    ) -> None:
        self.ctx = ctx
        self._request = request
        self._plan = plan
        self._limit = min(request.max_bytes, MAX_ANSWER_BYTES, ctx.config.int("fetch.max.bytes"))
        self._refused = refused
        self._wanted: dict[Partition, Wanted] = {}
        self._read_to: dict[Partition, int] = {}
        """End of each partition for this reader when it was read."""
        self._sizes: dict[Partition, int] = {}
        """Available bytes of each partition at the last look."""
        self._total = 0

    def read(self, *, is_final: bool) -> Steps[FetchResponse | None]:
        """Read all partitions; return the answer, or None when there is too little and no reason not to wait."""
        left, total, has_reason = self._limit, 0, is_final
        found: list[tuple[Wanted, PartitionData]] = []
        for one in self._plan:
            yield None
            data = self._read(one, left, at_least_one=total == 0)
            found.append((one, data))
            size = len(data.records or b"")
            total += size
            left = max(0, left - size)
            has_reason = has_reason or _is_reason(data)
        if found and total < self._enough and not has_reason:
            yield from self._remember(found)
            if self._total < self._enough:
                yield from let_go(found)
                return None
        return (yield from self._response(found))

    def look(self, moved: Moved, is_final: bool) -> FetchResponse | None:
        """Look at the partitions that moved; return the answer once there is enough or time is up."""
        return finished(self.read(is_final=True)) if is_final or self.is_enough(moved) else None

    def look_for_reason(self, moved: Moved, is_final: bool) -> FetchResponse | None:
        """The same for many partitions: they are read when it is this request's turn, after this empty answer."""
        return FetchResponse() if is_final or self.is_enough(moved) else None

    def is_enough(self, moved: Moved) -> bool:
        """Whether to answer: with what moved there is enough, or something that the client must know."""
        for partition in moved:
            data = self._read(self._wanted[partition], self._limit, at_least_one=True)
            if _is_reason(data):
                return True
            self._count_readable(partition, data)
        return self._total >= self._enough

    def has_moved(self, partition: Partition) -> bool:
        """Whether the partition went on since it was read."""
        return self._up_to(partition.log) != self._read_to[partition]

    def partitions(self) -> list[Partition]:
        """The partitions to wait for. All of them are here: with an error there would have been an answer."""
        return list(self._wanted)

    def let_go(self) -> Steps[None]:
        """Give back what is remembered of very many partitions."""
        yield from let_go(self._wanted, self._read_to, self._sizes)

    @property
    def _enough(self) -> int:
        return min(self._request.min_bytes, self._limit)

    def _remember(self, found: list[tuple[Wanted, PartitionData]]) -> Steps[None]:
        for one, data in found:
            yield None
            topic = self._topic(one)
            partition = topic.partition(one.asked.partition) if topic is not None else None
            if partition is not None:
                self._wanted[partition] = one
                self._read_to[partition] = data.last_stable_offset if self._is_committed else data.high_watermark
                if data.records:
                    self._count_readable(partition, data)

    def _count_readable(self, partition: Partition, data: PartitionData) -> None:
        """Count readable bytes, of which one answer may hold a part: waiting would not make it hold more."""
        asked = self._wanted[partition].asked
        size = 0
        if data.records:
            readable = partition.log.readable_bytes(asked.fetch_offset, self._up_to(partition.log))
            size = self._enough if readable is None else min(readable, asked.partition_max_bytes)
        self._total += size - self._sizes.get(partition, 0)
        self._sizes[partition] = size

    def _topic(self, wanted: Wanted) -> Topic | None:
        if isinstance(wanted.topic, bytes):
            return self.ctx.catalogue.by_id.get(wanted.topic)
        return self.ctx.catalogue.get(wanted.topic)

    def _read(self, wanted: Wanted, left: int, *, at_least_one: bool) -> PartitionData:
        asked, topic = wanted.asked, self._topic(wanted)
        if self._request.replica_id >= 0 or self._request.replica_state.replica_id >= 0:
            # Nobody follows us: whoever claims to be a replica would read beyond the high watermark. (H27)
            return _error(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self._refused and wanted.topic in self._refused:
            return _error(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic is None and self.ctx.version >= _IDS_FROM:
            return _error(asked, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = find(self.ctx, topic, asked.partition, current_leader_epoch=asked.current_leader_epoch)
        if isinstance(partition, ErrorCode):
            return self._elsewhere(asked, topic, partition)
        if self.ctx.version < _ZSTD_FROM and partition.topic.config.text("compression.type") == "zstd":
            return _error(asked, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        try:
            return self._records(asked, partition, left, at_least_one)
        except InvalidBatch as error:
            return _error(asked, error.code)
        except StorageError:
            return _error(asked, ErrorCode.KAFKA_STORAGE_ERROR)

    def _records(self, asked: FetchPartition, partition: Partition, left: int, at_least_one: bool) -> PartitionData:
        log, offset = partition.log, asked.fetch_offset
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return _error(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        last_stable_offset = log.last_stable_offset
        data = PartitionData(
            partition_index=asked.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if asked.last_fetched_epoch >= 0:
            diverging = _divergence(asked, log, partition.leader_epoch)
            if isinstance(diverging, ErrorCode):
                return _error(asked, diverging)
            if diverging is not None:
                data.diverging_epoch = diverging
                return data
        up_to = self._up_to(log)
        max_bytes = max(0, min(asked.partition_max_bytes, left))
        records = log.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
        data.records = records
        if self._is_committed:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset)
                for entry in log.aborted_transactions(offset, records)
            ]
        return data

    @property
    def _is_committed(self) -> bool:
        return self._request.isolation_level == READ_COMMITTED

    def _up_to(self, log: PartitionLog) -> int:
        return log.last_stable_offset if self._is_committed else log.high_watermark

    def _elsewhere(self, asked: FetchPartition, topic: Topic | None, code: ErrorCode) -> PartitionData:
        data = _error(asked, code)
        partition = topic.partition(asked.partition) if topic is not None else None
        moved = code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        if moved and partition is not None and self.ctx.version >= _LEADER_FROM:
            data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        return data

    def _response(self, found: list[tuple[Wanted, PartitionData]]) -> Steps[FetchResponse]:
        topics: dict[bytes | str, FetchableTopicResponse] = {}
        leaders = []
        found.reverse()
        while found:
            yield None
            one, data = found.pop()
            if not self._plan.shows(one, data):
                continue
            entry = topics.get(one.topic)
            if entry is None:
                entry = topics[one.topic] = _topic_response(one.topic)
            entry.partitions.append(data)
            self._count(one, data)
            if data.current_leader.leader_id >= 0:
                leaders.append(data.current_leader.leader_id)
        return FetchResponse(
            session_id=self._plan.session_id if self.ctx.version >= _SESSIONS_FROM else 0,
            responses=list(topics.values()),
            node_endpoints=endpoints(self.ctx, leaders, NodeEndpoint) if leaders else [],
        )

    def _count(self, wanted: Wanted, data: PartitionData) -> None:
        topic = self._topic(wanted)
        if topic is not None:
            self.ctx.traffic.fetched(topic.name, len(data.records or b""), failed=data.error_code != 0)


def _refused(ctx: RequestContext, plan: FetchPlan) -> Steps[frozenset[bytes | str]]:
    """Return the topics that the client may not read now; checked for the answer however long it waits."""
    asking = ctx.asking
    if asking is None:
        return frozenset()
    topics: dict[bytes | str, None] = {}
    for one in plan:
        yield None
        topics[one.topic] = None
    refused = set()
    for topic in topics:
        yield None
        known = ctx.catalogue.by_id.get(topic) if isinstance(topic, bytes) else None
        name = topic if isinstance(topic, str) else None if known is None else known.name
        if name is not None and not asking.may(Operation.READ, ResourceType.TOPIC, name):
            refused.add(topic)
    return frozenset(refused)


def _topic_response(topic: bytes | str) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic_id=topic) if isinstance(topic, bytes) else FetchableTopicResponse(topic=topic)


def _is_reason(data: PartitionData) -> bool:
    """Whether a client that waits for data must get this at once."""
    return data.error_code != 0 or data.diverging_epoch.epoch >= 0


def _divergence(asked: FetchPartition, log: PartitionLog, leader_epoch: int) -> EpochEndOffset | ErrorCode | None:
    """Divergence of the client's history from ours; None when they do not."""
    epoch, end_offset = log.epoch_end_offset(asked.last_fetched_epoch, leader_epoch)
    if epoch < 0 or end_offset < 0:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _error(asked: FetchPartition, code: ErrorCode) -> PartitionData:
    """A partition without records. What Kafka refuses before it reads has an empty list of aborted transactions."""
    aborted: list[AbortedTransaction] | None = [] if code in _REFUSED_BEFORE_READING else None
    return PartitionData(
        partition_index=asked.partition, error_code=code, high_watermark=-1, aborted_transactions=aborted, records=b""
    )


def finish_error(answer: FetchResponse, request: FetchRequest, version: int) -> FetchResponse:
    """The session lives on, but for versions that have none."""
    answer.session_id = request.session_id
    return answer


def without_records(ctx: RequestContext, request: FetchRequest) -> FetchResponse:
    """The answer to a client that is over its quota already; its session goes on."""
    answer = FetchResponse()
    if request.session_epoch > 0:
        plan = ctx.fetch_sessions.plan(request, ctx.version, ctx.now().mono_ms, ctx.connection)
        if isinstance(plan, ErrorCode):
            return FetchResponse(error_code=plan)
        answer.session_id = plan.session_id
    return answer


def bytes_read(answer: FetchResponse) -> int:
    """The bytes of records in an answer."""
    return sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions)
