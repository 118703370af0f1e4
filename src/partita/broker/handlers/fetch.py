"""Fetch: read whole batches of many partitions, wait for more if asked to. (Kafka: KafkaApis, ReplicaManager.)

Answers hold views of the files. The first partition with data gets at least one batch whatever the limits say.
Deviation: no more than 50 MiB an answer and 30 s of waiting.
"""

from __future__ import annotations

from partita.broker.handlers._partitions import endpoints, find
from partita.broker.reading.fetch_sessions import FetchPlan, Wanted
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.topics.catalogue import Partition, Topic
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

MAX_ANSWER_BYTES = 50 << 20
MAX_WAIT_MS = 30_000
READ_COMMITTED = 1
_IDS_FROM, _SESSIONS_FROM, _ZSTD_FROM, _LEADER_FROM = 13, 7, 10, 16


def handle(ctx: RequestContext, request: FetchRequest) -> Answer:
    """Answer at once when there is enough, an error, or no time to wait; else a future."""
    plan = ctx.fetch_sessions.plan(request, ctx.version, ctx.now().mono_ms)
    if isinstance(plan, ErrorCode):
        return FetchResponse(error_code=plan)
    fetch = _Fetch(ctx, request, plan)
    wait_ms = min(request.max_wait_ms, MAX_WAIT_MS)
    answer = fetch.look(is_final=wait_ms <= 0)
    if answer is not None:
        return answer
    return ctx.long_polls.wait(fetch.partitions(), fetch.look, wait_ms, ctx.connection)


class _Fetch:
    """One request: it is looked at until there is an answer, and answered once."""

    __slots__ = ("_ctx", "_plan", "_request")

    def __init__(self, ctx: RequestContext, request: FetchRequest, plan: FetchPlan) -> None:
        self._ctx = ctx
        self._request = request
        self._plan = plan

    def look(self, is_final: bool) -> FetchResponse | None:
        """Return the answer; None when there is too little and no reason not to wait."""
        limit = min(self._request.max_bytes, MAX_ANSWER_BYTES, self._ctx.config.int("fetch.max.bytes"))
        left, total, has_reason = limit, 0, is_final
        found: list[tuple[Wanted, PartitionData]] = []
        for wanted in self._plan:
            data = self._read(wanted, left, at_least_one=total == 0)
            found.append((wanted, data))
            size = len(data.records or b"")
            total += size
            left = max(0, left - size)
            has_reason = has_reason or data.error_code != 0 or data.diverging_epoch.epoch >= 0
        if found and total < self._request.min_bytes and not has_reason:
            return None
        return self._response(self._plan.answer(found))

    def partitions(self) -> list[Partition]:
        """All of them are here: with an error there would have been an answer."""
        found = []
        for wanted in self._plan:
            topic = self._topic(wanted)
            partition = topic.partition(wanted.asked.partition) if topic is not None else None
            if partition is not None:
                found.append(partition)
        return found

    def _topic(self, wanted: Wanted) -> Topic | None:
        if isinstance(wanted.topic, bytes):
            return self._ctx.catalogue.by_id.get(wanted.topic)
        return self._ctx.catalogue.get(wanted.topic)

    def _read(self, wanted: Wanted, left: int, *, at_least_one: bool) -> PartitionData:
        asked, topic = wanted.asked, self._topic(wanted)
        if self._request.replica_id >= 0 or self._request.replica_state.replica_id >= 0:
            # Nobody follows us: whoever claims to be a replica would read beyond the high watermark. (H27)
            return _error(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic is None and self._ctx.version >= _IDS_FROM:
            return _error(asked, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = find(self._ctx, topic, asked.partition, current_leader_epoch=asked.current_leader_epoch)
        if isinstance(partition, ErrorCode):
            return self._elsewhere(asked, topic, partition)
        if self._ctx.version < _ZSTD_FROM and partition.topic.config.text("compression.type") == "zstd":
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
        is_committed = self._request.isolation_level == READ_COMMITTED
        up_to = last_stable_offset if is_committed else log.high_watermark
        max_bytes = max(0, min(asked.partition_max_bytes, left))
        records = log.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
        data.records = records
        if is_committed:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset)
                for entry in log.aborted_transactions(offset, records)
            ]
        return data

    def _elsewhere(self, asked: FetchPartition, topic: Topic | None, code: ErrorCode) -> PartitionData:
        data = _error(asked, code)
        partition = topic.partition(asked.partition) if topic is not None else None
        moved = code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        if moved and partition is not None and self._ctx.version >= _LEADER_FROM:
            data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        return data

    def _response(self, sent: list[tuple[Wanted, PartitionData]]) -> FetchResponse:
        topics: dict[bytes | str, FetchableTopicResponse] = {}
        leaders = []
        for wanted, data in sent:
            entry = topics.get(wanted.topic)
            if entry is None:
                entry = topics[wanted.topic] = _topic_response(wanted.topic)
            entry.partitions.append(data)
            if data.current_leader.leader_id >= 0:
                leaders.append(data.current_leader.leader_id)
        return FetchResponse(
            session_id=self._plan.session_id if self._ctx.version >= _SESSIONS_FROM else 0,
            responses=list(topics.values()),
            node_endpoints=endpoints(self._ctx, leaders, NodeEndpoint) if leaders else [],
        )


def _topic_response(topic: bytes | str) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic_id=topic) if isinstance(topic, bytes) else FetchableTopicResponse(topic=topic)


def _divergence(asked: FetchPartition, log: PartitionLog, leader_epoch: int) -> EpochEndOffset | ErrorCode | None:
    """Where the client's history and ours part; None when they do not."""
    epoch, end_offset = log.epoch_end_offset(asked.last_fetched_epoch, leader_epoch)
    if epoch < 0 or end_offset < 0:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _error(asked: FetchPartition, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=asked.partition, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
    )
