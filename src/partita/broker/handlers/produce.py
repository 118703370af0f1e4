"""Produce: check one batch per partition, append it as it is, say where it went. (Kafka: KafkaApis, ReplicaManager.)

Batches are not opened, but for compacted topics, whose records must have keys, where `compression.type` wants another
codec than the producer's, where the header's timestamps are out of bounds, and with `partita.validate.records=full`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partita.broker.api.context import Answer, RequestContext, Steps
from partita.broker.api.needs import REFUSED_WITH, Checked, NeedsEach, Verdict, refused
from partita.broker.api.served import Errors, Quota, Served
from partita.broker.handlers._partitions import endpoints, find
from partita.broker.handlers._produced import RecordsRejected, RecordWork, may_be_mistimed, record_work
from partita.broker.handlers._verified import Transactional, verify
from partita.broker.reading.long_polls import FEW, Moved
from partita.broker.topics.catalogue import Partition, Topic
from partita.log.log_config import SYNC
from partita.log.partition_log import AppendRefused, PartitionLog
from partita.log.producer_state import Guard
from partita.log.storage import StorageError
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from partita.protocol.primitives import Buffer
from partita.records.header import BatchHeader, InvalidBatch, read_header
from partita.records.validate import check_produced
from partita.security.rights.operations import Operation, ResourceType

if TYPE_CHECKING:
    from partita.broker.permits.rights import Asking

API = Served(
    ProduceRequest,
    rights=(
        Checked(
            "WRITE TRANSACTIONAL_ID, if a batch belongs to a transaction",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition",
        ),
        NeedsEach(Operation.WRITE, ResourceType.TOPIC, "topic_data", "responses", "name", ids_from=13),
    ),
    errors=Errors(fields={"base_offset": -1}),
    quota=Quota("producer_byte_rate"),
    advertised_min=0,
)

_IDS_FROM = 13
_LEADER_FROM = 10
_ATTRIBUTES_AT, _IS_TRANSACTIONAL = 22, 0x10
"""Position of the lower byte of a batch's attributes, and its bit for transactions."""


def handle(ctx: RequestContext, request: ProduceRequest) -> Steps[Answer]:
    """Answer at once, or under durability `sync` when everything is durable; with acks=0 close if anything is refused.

    Batches whose records need long work are worked on beside the event loop, before any of the request is appended.
    """
    now = ctx.now()
    turn = _turn_between(request)
    batches: list[_Batch] = []
    for topic in request.topic_data:
        yield from turn
        for data in topic.partition_data:
            yield from turn
            batches.append(_checked(ctx, request, topic.topic_id, topic.name, data, now))
    for batch in batches:
        yield from turn
        if batch.work is not None:
            # One after the other: every connection gets its turn.
            batch.take((yield ctx.run_beside(batch.outcome)) if batch.is_long else batch.outcome())
    yield from verify(ctx, request.transactional_id, batches, _refuse)
    written: list[tuple[Partition, int, PartitionProduceResponse]] = []
    now = ctx.now()
    parts = []
    for batch in batches:
        yield from turn
        parts.append(_append(ctx, batch, now, written))
    return (yield from _answered(ctx, request, iter(parts), written))


def _turn_between(request: ProduceRequest) -> tuple[None, ...]:
    """The step after each partition; none for a request of one, which gains nothing by being parked half done.

    Its buffer would be held meanwhile, and the next megabyte need a new one.
    """
    is_of_one = len(request.topic_data) == 1 and len(request.topic_data[0].partition_data) == 1
    return () if is_of_one else (None,)


class _Batch:
    """One partition's batch on its way: the bytes to append, or the reason for its refusal."""

    __slots__ = ("data", "guard", "header", "needs_guard", "records", "refusal", "topic", "work")

    def __init__(self, data: PartitionProduceData, topic: Topic | None) -> None:
        self.data = data
        self.topic = topic
        self.records: Buffer = b""
        self.header: BatchHeader | None = None
        self.work: RecordWork | None = None
        self.refusal: PartitionProduceResponse | None = None
        self.guard: Guard | None = None
        """The proof that the batch may begin a transaction in its partition."""
        self.needs_guard = False

    @property
    def index(self) -> int:
        """The partition's number."""
        return self.data.index

    @property
    def is_long(self) -> bool:
        """Whether the work on its records is to be done beside the event loop."""
        return self.work is not None and self.header is not None and self.work.is_long(self.header)

    def outcome(self) -> Buffer | InvalidBatch:
        """Do the work on the records; return the batch to append, or the error in it."""
        assert self.work is not None, "there is work"
        try:
            return self.work.run(self.records)
        except InvalidBatch as error:
            return error

    def take(self, outcome: Buffer | InvalidBatch) -> None:
        """Go on with the result of the work."""
        if not isinstance(outcome, InvalidBatch):
            self.records = outcome
            self.header = read_header(outcome)
            return
        self.refusal = _refused(self.data.index, outcome.code, outcome.reason)
        if isinstance(outcome, RecordsRejected):
            self.refusal.record_errors = outcome.errors


def _answered(
    ctx: RequestContext,
    request: ProduceRequest,
    parts: Iterator[PartitionProduceResponse],
    written: list[tuple[Partition, int, PartitionProduceResponse]],
) -> Steps[Answer]:
    """Answer for all partitions; under durability `sync` as soon as what was written is durable."""
    if request.acks == 0:
        # As in Kafka: the end of the connection is all that makes such a producer look for the leaders again.
        if any(part.error_code for part in parts):
            ctx.connection.close()
        return None
    response = ProduceResponse(node_endpoints=[])
    turn = _turn_between(request)
    for topic in request.topic_data:
        yield from turn
        answered = [next(parts) for _ in topic.partition_data]
        response.responses.append(
            TopicProduceResponse(topic_id=topic.topic_id, name=topic.name, partition_responses=answered)
        )
    moved = [
        part.current_leader.leader_id
        for topic_response in response.responses
        for part in topic_response.partition_responses
        if part.current_leader.leader_id >= 0
    ]
    if moved:
        response.node_endpoints = endpoints(ctx, moved, NodeEndpoint)
    if ctx.cluster.store.durability is not SYNC or not written:
        return response
    return (yield from _when_durable(ctx, request, response, written))


def _when_durable(
    ctx: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    written: list[tuple[Partition, int, PartitionProduceResponse]],
) -> Steps[Answer]:
    waiting = [(partition.log, end, part) for partition, end, part in written]

    def look(moved: Moved, is_final: bool) -> ProduceResponse | None:
        if any(log.high_watermark < end and log.failure is None for log, end, _ in waiting) and not is_final:
            return None
        return _finish(response, waiting)

    if (durable := look((), False)) is not None:
        # A repetition of what is durable already: no sync will come to wake it.
        return durable
    ends = {partition: end for partition, end, _ in written}
    wait_ms = max(0, request.timeout_ms)
    if len(ends) <= FEW:
        return ctx.long_polls.wait(list(ends), look, wait_ms, ctx.connection)

    def has_moved(partition: Partition) -> bool:
        return partition.log.high_watermark >= ends[partition] or partition.log.failure is not None

    return (yield from ctx.long_polls.wait_for_many(list(ends), has_moved, look, wait_ms, ctx.connection))


def _finish(
    response: ProduceResponse, waiting: list[tuple[PartitionLog, int, PartitionProduceResponse]]
) -> ProduceResponse:
    """Report records that did not become durable: time was up, or the disk failed."""
    for log, end, part in waiting:
        if log.high_watermark < end:
            part.error_code = ErrorCode.REQUEST_TIMED_OUT if log.failure is None else ErrorCode.KAFKA_STORAGE_ERROR
            part.base_offset = -1
    return response


def _topic(ctx: RequestContext, topic_id: bytes, name: str) -> Topic | None:
    return ctx.catalogue.by_id.get(topic_id) if ctx.version >= _IDS_FROM else ctx.catalogue.get(name)


def _checked(
    ctx: RequestContext, request: ProduceRequest, topic_id: bytes, name: str, data: PartitionProduceData, now: Now
) -> _Batch:
    """Check what can be checked without a look at the records."""
    topic = _topic(ctx, topic_id, name)
    batch = _Batch(data, topic)
    if request.acks not in (-1, 0, 1):
        batch.refusal = _refused(data.index, ErrorCode.INVALID_REQUIRED_ACKS)
    elif topic is None and ctx.version >= _IDS_FROM:
        batch.refusal = _refused(data.index, ErrorCode.UNKNOWN_TOPIC_ID)
    elif topic is not None and topic.is_internal:
        reason = "clients may not write to an internal topic"
        batch.refusal = _refused(data.index, ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    else:
        partition = find(ctx, topic, data.index)
        if isinstance(partition, ErrorCode):
            batch.refusal = _not_here(ctx, topic, data.index, partition)
        else:
            _check_header(ctx, batch, partition.topic, now)
    return batch


def _check_header(ctx: RequestContext, batch: _Batch, topic: Topic, now: Now) -> None:
    config, index = topic.config, batch.data.index
    records = batch.data.records or b""
    try:
        header = check_produced(records, max_message_bytes=config.int("max.message.bytes"), produce_version=ctx.version)
    except InvalidBatch as error:
        batch.refusal = _refused(index, error.code, error.reason)
        return
    batch.header = header
    batch.records = records if len(records) == header.size_in_bytes else memoryview(records)[: header.size_in_bytes]
    is_suspect = config.text("message.timestamp.type") == "CreateTime" and may_be_mistimed(header, now.wall_ms, config)
    batch.work = record_work(config, f"{topic.name}-{index}", now, checks_times=is_suspect)


def _append(
    ctx: RequestContext, batch: _Batch, now: Now, written: list[tuple[Partition, int, PartitionProduceResponse]]
) -> PartitionProduceResponse:
    part = _appended_part(ctx, batch, now, written)
    if batch.topic is not None:
        records = 0 if batch.header is None else batch.header.records_count
        size = len(batch.data.records or b"")
        ctx.traffic.produced(batch.topic.name, records, size, refused=part.error_code != 0)
    return part


def _appended_part(
    ctx: RequestContext, batch: _Batch, now: Now, written: list[tuple[Partition, int, PartitionProduceResponse]]
) -> PartitionProduceResponse:
    if batch.refusal is not None:
        return batch.refusal
    index = batch.data.index
    partition = find(ctx, batch.topic, index)
    if isinstance(partition, ErrorCode):
        return _not_here(ctx, batch.topic, index, partition)
    try:
        log = partition.log
        appended = log.append(
            batch.records,
            partition.leader_epoch,
            now,
            header=batch.header,
            guard=batch.guard,
            needs_guard=batch.needs_guard,
        )
    except AppendRefused as error:
        return _refused(index, error.code, error.reason)
    except StorageError as error:
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    part = PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    written.append((partition, log.log_end_offset, part))
    return part


def _not_here(ctx: RequestContext, topic: Topic | None, index: int, code: ErrorCode) -> PartitionProduceResponse:
    part = _refused(index, code)
    partition = topic.partition(index) if topic is not None else None
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and partition is not None and ctx.version >= _LEADER_FROM:
        part.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    return part


def _refuse(batch: Transactional, code: ErrorCode, reason: str | None) -> None:
    assert isinstance(batch, _Batch), "only batches of this request are verified"
    if batch.refusal is None:
        batch.refusal = _refused(batch.index, code, reason)


def _refused(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_append_time_ms=-1, error_message=message
    )


def check_rights(asking: Asking, request: ProduceRequest) -> Verdict | None:
    """Produce: a batch of a transaction needs the right to write with the transactional id."""
    if not any(_is_transactional(data.records) for topic in request.topic_data for data in topic.partition_data):
        return None
    transactional_id, kind = request.transactional_id, ResourceType.TRANSACTIONAL_ID
    if transactional_id is not None and asking.may(Operation.WRITE, kind, transactional_id):
        return None
    return refused(asking, request, REFUSED_WITH[kind])


def _is_transactional(records: Buffer | None) -> bool:
    return records is not None and len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & _IS_TRANSACTIONAL != 0


def finish_error(answer: ProduceResponse, request: ProduceRequest, version: int) -> ProduceResponse | None:
    """With acks=0 no answer is due."""
    return answer if request.acks else None
