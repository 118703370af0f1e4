"""Produce: check one batch per partition, append it as it is, say where it went. (Kafka: KafkaApis, ReplicaManager.)

Batches are not opened, but for compacted topics, whose records must have keys, and where `compression.type` wants
another codec than the producer's.
"""

from __future__ import annotations

from partita.broker.config import TopicConfig
from partita.broker.handlers._partitions import endpoints, find
from partita.broker.reading.long_polls import Moved
from partita.broker.requests.context import Answer, RequestContext
from partita.broker.topics.catalogue import Partition, Topic
from partita.log.durability import Durability
from partita.log.partition_log import AppendRefused, PartitionLog
from partita.log.storage import StorageError
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from partita.protocol.primitives import Buffer
from partita.records.header import CODEC_NAMES, BatchHeader, InvalidBatch, read_header
from partita.records.validate import check_produced

PRODUCERS_CODEC = "producer"
_IDS_FROM = 13
_LEADER_FROM = 10


def handle(ctx: RequestContext, request: ProduceRequest) -> Answer:
    """Answer at once, or under durability `sync` when everything is durable; not at all with acks=0."""
    now = ctx.now()
    written: list[tuple[Partition, int, PartitionProduceResponse]] = []
    response = ProduceResponse(node_endpoints=[])
    for data in request.topic_data:
        topic = _topic(ctx, data.topic_id, data.name)
        response.responses.append(
            TopicProduceResponse(
                topic_id=data.topic_id,
                name=data.name,
                partition_responses=[_append(ctx, request, topic, part, now, written) for part in data.partition_data],
            )
        )
    if request.acks == 0:
        return None
    moved = [
        part.current_leader.leader_id
        for topic_response in response.responses
        for part in topic_response.partition_responses
        if part.current_leader.leader_id >= 0
    ]
    if moved:
        response.node_endpoints = endpoints(ctx, moved, NodeEndpoint)
    if ctx.cluster.store.durability is not Durability.SYNC or not written:
        return response

    def look(moved: Moved, is_final: bool) -> ProduceResponse | None:
        if any(log.high_watermark < end and log.failure is None for log, end, _ in waiting) and not is_final:
            return None
        return _finish(response, waiting)

    waiting = [(partition.log, end, part) for partition, end, part in written]
    if (durable := look((), False)) is not None:
        # A repetition of what is durable already: no sync will come to wake it.
        return durable
    partitions = [partition for partition, _, _ in written]
    return ctx.long_polls.wait(partitions, look, max(0, request.timeout_ms), ctx.connection)


def _finish(
    response: ProduceResponse, waiting: list[tuple[PartitionLog, int, PartitionProduceResponse]]
) -> ProduceResponse:
    """Say what did not become durable: time was up, or the disk failed."""
    for log, end, part in waiting:
        if log.high_watermark < end:
            part.error_code = ErrorCode.REQUEST_TIMED_OUT if log.failure is None else ErrorCode.KAFKA_STORAGE_ERROR
            part.base_offset = -1
    return response


def _topic(ctx: RequestContext, topic_id: bytes, name: str) -> Topic | None:
    return ctx.catalogue.by_id.get(topic_id) if ctx.version >= _IDS_FROM else ctx.catalogue.get(name)


def _append(
    ctx: RequestContext,
    request: ProduceRequest,
    topic: Topic | None,
    data: PartitionProduceData,
    now: Now,
    written: list[tuple[Partition, int, PartitionProduceResponse]],
) -> PartitionProduceResponse:
    if request.acks not in (-1, 0, 1):
        return _refused(data.index, ErrorCode.INVALID_REQUIRED_ACKS)
    if topic is None and ctx.version >= _IDS_FROM:
        return _refused(data.index, ErrorCode.UNKNOWN_TOPIC_ID)
    if topic is not None and topic.is_internal:
        return _refused(data.index, ErrorCode.INVALID_TOPIC_EXCEPTION, "clients may not write to an internal topic")
    partition = find(ctx, topic, data.index)
    if isinstance(partition, ErrorCode):
        return _not_here(ctx, topic, data.index, partition)
    try:
        part = _write(ctx, partition, data, now)
        if part.error_code == ErrorCode.NONE:
            written.append((partition, partition.log.log_end_offset, part))
        return part
    except InvalidBatch as error:
        return _refused(data.index, error.code, error.reason)
    except AppendRefused as error:
        return _refused(data.index, error.code, error.reason)
    except StorageError as error:
        return _refused(data.index, ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def _write(ctx: RequestContext, partition: Partition, data: PartitionProduceData, now: Now) -> PartitionProduceResponse:
    log, config = partition.log, partition.topic.config
    max_bytes = config.int("max.message.bytes")
    records = data.records or b""
    header = check_produced(records, max_message_bytes=max_bytes, produce_version=ctx.version)
    batch = records if len(records) == header.size_in_bytes else memoryview(records)[: header.size_in_bytes]
    if header.is_transactional:
        reason = "no transaction can be open: this broker has no transaction coordinator yet"
        return _refused(data.index, ErrorCode.INVALID_TXN_STATE, reason)
    if not log.config.log_append_time:
        wrong = _wrong_time(
            header,
            now.wall_ms,
            config.int("message.timestamp.before.max.ms"),
            config.int("message.timestamp.after.max.ms"),
        )
        if wrong is not None:
            return _refused(data.index, ErrorCode.INVALID_TIMESTAMP, wrong)
    if log.config.compact:
        keyless = _without_key(batch, partition)
        if keyless:
            part = _refused(data.index, ErrorCode.INVALID_RECORD, "One or more records have been rejected")
            part.record_errors = keyless
            return part
    wanted = config.text("compression.type")
    if wanted != PRODUCERS_CODEC:
        batch = _recompressed(batch, wanted, config)
        header = read_header(batch)
        if header.size_in_bytes > max_bytes:
            reason = f"record batch of {header.size_in_bytes} bytes as {wanted}; max.message.bytes is {max_bytes}"
            raise InvalidBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
    appended = log.append(batch, partition.leader_epoch, now, header=header)
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _recompressed(batch: Buffer, wanted: str, config: TopicConfig) -> Buffer:
    from partita.records.recompress import recompress

    level = config.int(f"compression.{wanted}.level") if wanted in ("gzip", "lz4", "zstd") else None
    return recompress(batch, CODEC_NAMES.index("none" if wanted == "uncompressed" else wanted), level)


def _wrong_time(header: BatchHeader, wall_ms: int, before_max_ms: int, after_max_ms: int) -> str | None:
    """The header's first and largest timestamp stand for all records."""
    if header.max_timestamp - wall_ms > after_max_ms:
        return f"timestamp {header.max_timestamp} is more than {after_max_ms} ms ahead of the broker's {wall_ms}"
    if header.base_timestamp >= 0 and wall_ms - header.base_timestamp > before_max_ms:
        return f"timestamp {header.base_timestamp} is more than {before_max_ms} ms behind the broker's {wall_ms}"
    return None


def _without_key(batch: Buffer, partition: Partition) -> list[BatchIndexAndErrorMessage]:
    from partita.records.batch import iter_records

    where = f"{partition.topic.name}-{partition.index}"
    return [
        BatchIndexAndErrorMessage(
            batch_index=i,
            batch_index_error_message=f"Compacted topic cannot accept message without key in topic partition {where}.",
        )
        for i, record in enumerate(iter_records(batch, check_crcs=False))
        if record.key is None
    ]


def _not_here(ctx: RequestContext, topic: Topic | None, index: int, code: ErrorCode) -> PartitionProduceResponse:
    part = _refused(index, code)
    partition = topic.partition(index) if topic is not None else None
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and partition is not None and ctx.version >= _LEADER_FROM:
        part.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    return part


def _refused(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_append_time_ms=-1, error_message=message
    )
