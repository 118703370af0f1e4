"""ShareFetch (API 78). Generated from schema/share_fetch.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Buffer, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_iiiiii = Struct(">iiiiii")
_fixed_qq = Struct(">qq")
_fixed_qqh = Struct(">qqh")


class AcknowledgementBatch(Structure):
    """One element of topics.partitions.acknowledgement_batches in ShareFetchRequest."""

    __slots__ = ("first_offset", "last_offset", "acknowledge_types")

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, acknowledge_types: list[int] = EMPTY) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is EMPTY else acknowledge_types


def _read_AcknowledgementBatch(r: Reader, v: int) -> AcknowledgementBatch:
    m = AcknowledgementBatch.__new__(AcknowledgementBatch)
    m.first_offset, m.last_offset = r.fixed(_fixed_qq)
    m.acknowledge_types = [r.int8() for _ in r.each(r.compact_count(1))]
    r.skip_tags()
    return m


def _write_AcknowledgementBatch(w: Writer, m: AcknowledgementBatch, v: int) -> None:
    w.buf += _fixed_qq.pack(m.first_offset, m.last_offset)
    w.compact_count(len(m.acknowledge_types))
    for acknowledge_type in w.each(m.acknowledge_types):
        w.int8(acknowledge_type)
    w.uvarint(0)


class ShareFetchPartition(Structure):
    """One element of topics.partitions in ShareFetchRequest."""

    __slots__ = ("partition_index", "acknowledgement_batches")

    def __init__(
        self, *, partition_index: int = 0, acknowledgement_batches: list[AcknowledgementBatch] = EMPTY
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = (
            [] if acknowledgement_batches is EMPTY else acknowledgement_batches
        )


def _read_ShareFetchPartition(r: Reader, v: int) -> ShareFetchPartition:
    m = ShareFetchPartition.__new__(ShareFetchPartition)
    m.partition_index = r.int32()
    m.acknowledgement_batches = [_read_AcknowledgementBatch(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareFetchPartition(w: Writer, m: ShareFetchPartition, v: int) -> None:
    w.int32(m.partition_index)
    w.compact_count(len(m.acknowledgement_batches))
    for acknowledgement_batche in w.each(m.acknowledgement_batches):
        _write_AcknowledgementBatch(w, acknowledgement_batche, v)
    w.uvarint(0)


class ShareFetchTopic(Structure):
    """One element of topics in ShareFetchRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ShareFetchPartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ShareFetchPartition] = [] if partitions is EMPTY else partitions


def _read_ShareFetchTopic(r: Reader, v: int) -> ShareFetchTopic:
    m = ShareFetchTopic.__new__(ShareFetchTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_ShareFetchPartition(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_ShareFetchTopic(w: Writer, m: ShareFetchTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ShareFetchPartition(w, partition, v)
    w.uvarint(0)


class ForgottenShareTopic(Structure):
    """One element of forgotten_topics_data in ShareFetchRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ForgottenShareTopic(r: Reader, v: int) -> ForgottenShareTopic:
    m = ForgottenShareTopic.__new__(ForgottenShareTopic)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ForgottenShareTopic(w: Writer, m: ForgottenShareTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ShareFetchRequest(Request["ShareFetchResponse"]):
    """ShareFetchRequest, a request: versions 1 to 2, flexible from 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )
    API_KEY: ClassVar[int] = 78
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareFetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenShareTopic] = EMPTY,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.max_records: int = max_records
        self.batch_size: int = batch_size
        self.share_acquire_mode: int = share_acquire_mode
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[ShareFetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[ForgottenShareTopic] = (
            [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        )

    def write(self, w: Writer, version: int) -> None:
        _write_ShareFetchRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareFetchRequest:
        return _read_ShareFetchRequest(r, version)


def _read_ShareFetchRequest(r: Reader, v: int) -> ShareFetchRequest:
    m = ShareFetchRequest.__new__(ShareFetchRequest)
    m.group_id = r.compact_nullable_string()
    m.member_id = r.compact_nullable_string()
    m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size = r.fixed(_fixed_iiiiii)
    m.share_acquire_mode = r.int8() if v == 2 else 0
    m.is_renew_ack = r.boolean() if v == 2 else False
    m.topics = [_read_ShareFetchTopic(r, v) for _ in r.each(r.compact_count(18))]
    m.forgotten_topics_data = [_read_ForgottenShareTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareFetchRequest(w: Writer, m: ShareFetchRequest, v: int) -> None:
    w.compact_nullable_string(m.group_id)
    w.compact_nullable_string(m.member_id)
    w.buf += _fixed_iiiiii.pack(
        m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size
    )
    if v == 2:
        w.int8(m.share_acquire_mode)
        w.boolean(m.is_renew_ack)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_ShareFetchTopic(w, topic, v)
    w.compact_count(len(m.forgotten_topics_data))
    for forgotten_topics_data_item in w.each(m.forgotten_topics_data):
        _write_ForgottenShareTopic(w, forgotten_topics_data_item, v)
    w.uvarint(0)


class ShareLeaderIdAndEpoch(Structure):
    """The value of responses.partitions.current_leader in ShareFetchResponse."""

    __slots__ = ("leader_id", "leader_epoch")

    def __init__(self, *, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


def _read_ShareLeaderIdAndEpoch(r: Reader, v: int) -> ShareLeaderIdAndEpoch:
    m = ShareLeaderIdAndEpoch.__new__(ShareLeaderIdAndEpoch)
    m.leader_id, m.leader_epoch = r.fixed(_fixed_ii)
    r.skip_tags()
    return m


def _write_ShareLeaderIdAndEpoch(w: Writer, m: ShareLeaderIdAndEpoch, v: int) -> None:
    w.buf += _fixed_ii.pack(m.leader_id, m.leader_epoch)
    w.uvarint(0)


class AcquiredRecords(Structure):
    """One element of responses.partitions.acquired_records in ShareFetchResponse."""

    __slots__ = ("first_offset", "last_offset", "delivery_count")

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, delivery_count: int = 0) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_count: int = delivery_count


def _read_AcquiredRecords(r: Reader, v: int) -> AcquiredRecords:
    m = AcquiredRecords.__new__(AcquiredRecords)
    m.first_offset, m.last_offset, m.delivery_count = r.fixed(_fixed_qqh)
    r.skip_tags()
    return m


def _write_AcquiredRecords(w: Writer, m: AcquiredRecords, v: int) -> None:
    w.buf += _fixed_qqh.pack(m.first_offset, m.last_offset, m.delivery_count)
    w.uvarint(0)


class ShareFetchPartitionData(Structure):
    """One element of responses.partitions in ShareFetchResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: ShareLeaderIdAndEpoch | None = None,
        records: Buffer = b"",
        acquired_records: list[AcquiredRecords] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acknowledge_error_code: int = acknowledge_error_code
        self.acknowledge_error_message: str | None = acknowledge_error_message
        self.current_leader: ShareLeaderIdAndEpoch = (
            ShareLeaderIdAndEpoch() if current_leader is None else current_leader
        )
        self.records: Buffer = records
        self.acquired_records: list[AcquiredRecords] = [] if acquired_records is EMPTY else acquired_records


def _read_ShareFetchPartitionData(r: Reader, v: int) -> ShareFetchPartitionData:
    m = ShareFetchPartitionData.__new__(ShareFetchPartitionData)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.acknowledge_error_code = r.int16()
    m.acknowledge_error_message = r.compact_nullable_string()
    m.current_leader = _read_ShareLeaderIdAndEpoch(r, v)
    m.records = r.compact_nullable_records() or b""
    m.acquired_records = [_read_AcquiredRecords(r, v) for _ in r.each(r.compact_count(19))]
    r.skip_tags()
    return m


def _write_ShareFetchPartitionData(w: Writer, m: ShareFetchPartitionData, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.int16(m.acknowledge_error_code)
    w.compact_nullable_string(m.acknowledge_error_message)
    _write_ShareLeaderIdAndEpoch(w, m.current_leader, v)
    w.compact_nullable_records(m.records)
    w.compact_count(len(m.acquired_records))
    for acquired_record in w.each(m.acquired_records):
        _write_AcquiredRecords(w, acquired_record, v)
    w.uvarint(0)


class ShareFetchableTopicResponse(Structure):
    """One element of responses in ShareFetchResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ShareFetchPartitionData] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ShareFetchPartitionData] = [] if partitions is EMPTY else partitions


def _read_ShareFetchableTopicResponse(r: Reader, v: int) -> ShareFetchableTopicResponse:
    m = ShareFetchableTopicResponse.__new__(ShareFetchableTopicResponse)
    m.topic_id = r.uuid()
    m.partitions = [_read_ShareFetchPartitionData(r, v) for _ in r.each(r.compact_count(22))]
    r.skip_tags()
    return m


def _write_ShareFetchableTopicResponse(w: Writer, m: ShareFetchableTopicResponse, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ShareFetchPartitionData(w, partition, v)
    w.uvarint(0)


class ShareNodeEndpoint(Structure):
    """One element of node_endpoints in ShareFetchResponse."""

    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


def _read_ShareNodeEndpoint(r: Reader, v: int) -> ShareNodeEndpoint:
    m = ShareNodeEndpoint.__new__(ShareNodeEndpoint)
    m.node_id = r.int32()
    m.host = r.compact_string()
    m.port = r.int32()
    m.rack = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_ShareNodeEndpoint(w: Writer, m: ShareNodeEndpoint, v: int) -> None:
    w.int32(m.node_id)
    w.compact_string(m.host)
    w.int32(m.port)
    w.compact_nullable_string(m.rack)
    w.uvarint(0)


class ShareFetchResponse(Message):
    """ShareFetchResponse, a response: versions 1 to 2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    API_KEY: ClassVar[int] = 78
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[ShareNodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareFetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[ShareNodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints

    def write(self, w: Writer, version: int) -> None:
        _write_ShareFetchResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareFetchResponse:
        return _read_ShareFetchResponse(r, version)


def _read_ShareFetchResponse(r: Reader, v: int) -> ShareFetchResponse:
    m = ShareFetchResponse.__new__(ShareFetchResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.acquisition_lock_timeout_ms = r.int32()
    m.responses = [_read_ShareFetchableTopicResponse(r, v) for _ in r.each(r.compact_count(18))]
    m.node_endpoints = [_read_ShareNodeEndpoint(r, v) for _ in r.each(r.compact_count(11))]
    r.skip_tags()
    return m


def _write_ShareFetchResponse(w: Writer, m: ShareFetchResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.int32(m.acquisition_lock_timeout_ms)
    w.compact_count(len(m.responses))
    for response in w.each(m.responses):
        _write_ShareFetchableTopicResponse(w, response, v)
    w.compact_count(len(m.node_endpoints))
    for node_endpoint in w.each(m.node_endpoints):
        _write_ShareNodeEndpoint(w, node_endpoint, v)
    w.uvarint(0)
