"""ShareAcknowledge (API 79). Generated from schema/share_acknowledge.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_qq = Struct(">qq")


class AcknowledgementBatch(Structure):
    """One element of topics.partitions.acknowledgement_batches in ShareAcknowledgeRequest."""

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


class ShareAcknowledgePartition(Structure):
    """One element of topics.partitions in ShareAcknowledgeRequest."""

    __slots__ = ("partition_index", "acknowledgement_batches")

    def __init__(
        self, *, partition_index: int = 0, acknowledgement_batches: list[AcknowledgementBatch] = EMPTY
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = (
            [] if acknowledgement_batches is EMPTY else acknowledgement_batches
        )


def _read_ShareAcknowledgePartition(r: Reader, v: int) -> ShareAcknowledgePartition:
    m = ShareAcknowledgePartition.__new__(ShareAcknowledgePartition)
    m.partition_index = r.int32()
    m.acknowledgement_batches = [_read_AcknowledgementBatch(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareAcknowledgePartition(w: Writer, m: ShareAcknowledgePartition, v: int) -> None:
    w.int32(m.partition_index)
    w.compact_count(len(m.acknowledgement_batches))
    for acknowledgement_batche in w.each(m.acknowledgement_batches):
        _write_AcknowledgementBatch(w, acknowledgement_batche, v)
    w.uvarint(0)


class ShareAcknowledgeTopic(Structure):
    """One element of topics in ShareAcknowledgeRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ShareAcknowledgePartition] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ShareAcknowledgePartition] = [] if partitions is EMPTY else partitions


def _read_ShareAcknowledgeTopic(r: Reader, v: int) -> ShareAcknowledgeTopic:
    m = ShareAcknowledgeTopic.__new__(ShareAcknowledgeTopic)
    m.topic_id = r.uuid()
    m.partitions = [_read_ShareAcknowledgePartition(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_ShareAcknowledgeTopic(w: Writer, m: ShareAcknowledgeTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ShareAcknowledgePartition(w, partition, v)
    w.uvarint(0)


class ShareAcknowledgeRequest(Request["ShareAcknowledgeResponse"]):
    """ShareAcknowledgeRequest, a request: versions 1 to 2, flexible from 0."""

    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")
    API_KEY: ClassVar[int] = 79
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareAcknowledgeTopic] = EMPTY,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[ShareAcknowledgeTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_ShareAcknowledgeRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareAcknowledgeRequest:
        return _read_ShareAcknowledgeRequest(r, version)


def _read_ShareAcknowledgeRequest(r: Reader, v: int) -> ShareAcknowledgeRequest:
    m = ShareAcknowledgeRequest.__new__(ShareAcknowledgeRequest)
    m.group_id = r.compact_nullable_string()
    m.member_id = r.compact_nullable_string()
    m.share_session_epoch = r.int32()
    m.is_renew_ack = r.boolean() if v == 2 else False
    m.topics = [_read_ShareAcknowledgeTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareAcknowledgeRequest(w: Writer, m: ShareAcknowledgeRequest, v: int) -> None:
    w.compact_nullable_string(m.group_id)
    w.compact_nullable_string(m.member_id)
    w.int32(m.share_session_epoch)
    if v == 2:
        w.boolean(m.is_renew_ack)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_ShareAcknowledgeTopic(w, topic, v)
    w.uvarint(0)


class ShareLeaderIdAndEpoch(Structure):
    """The value of responses.partitions.current_leader in ShareAcknowledgeResponse."""

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


class ShareAcknowledgePartitionData(Structure):
    """One element of responses.partitions in ShareAcknowledgeResponse."""

    __slots__ = ("partition_index", "error_code", "error_message", "current_leader")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: ShareLeaderIdAndEpoch | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.current_leader: ShareLeaderIdAndEpoch = (
            ShareLeaderIdAndEpoch() if current_leader is None else current_leader
        )


def _read_ShareAcknowledgePartitionData(r: Reader, v: int) -> ShareAcknowledgePartitionData:
    m = ShareAcknowledgePartitionData.__new__(ShareAcknowledgePartitionData)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.current_leader = _read_ShareLeaderIdAndEpoch(r, v)
    r.skip_tags()
    return m


def _write_ShareAcknowledgePartitionData(w: Writer, m: ShareAcknowledgePartitionData, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    w.compact_nullable_string(m.error_message)
    _write_ShareLeaderIdAndEpoch(w, m.current_leader, v)
    w.uvarint(0)


class ShareAcknowledgeTopicResponse(Structure):
    """One element of responses in ShareAcknowledgeResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[ShareAcknowledgePartitionData] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[ShareAcknowledgePartitionData] = [] if partitions is EMPTY else partitions


def _read_ShareAcknowledgeTopicResponse(r: Reader, v: int) -> ShareAcknowledgeTopicResponse:
    m = ShareAcknowledgeTopicResponse.__new__(ShareAcknowledgeTopicResponse)
    m.topic_id = r.uuid()
    m.partitions = [_read_ShareAcknowledgePartitionData(r, v) for _ in r.each(r.compact_count(17))]
    r.skip_tags()
    return m


def _write_ShareAcknowledgeTopicResponse(w: Writer, m: ShareAcknowledgeTopicResponse, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_ShareAcknowledgePartitionData(w, partition, v)
    w.uvarint(0)


class ShareNodeEndpoint(Structure):
    """One element of node_endpoints in ShareAcknowledgeResponse."""

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


class ShareAcknowledgeResponse(Message):
    """ShareAcknowledgeResponse, a response: versions 1 to 2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    API_KEY: ClassVar[int] = 79
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
        responses: list[ShareAcknowledgeTopicResponse] = EMPTY,
        node_endpoints: list[ShareNodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareAcknowledgeTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[ShareNodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints

    def write(self, w: Writer, version: int) -> None:
        _write_ShareAcknowledgeResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareAcknowledgeResponse:
        return _read_ShareAcknowledgeResponse(r, version)


def _read_ShareAcknowledgeResponse(r: Reader, v: int) -> ShareAcknowledgeResponse:
    m = ShareAcknowledgeResponse.__new__(ShareAcknowledgeResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.acquisition_lock_timeout_ms = r.int32() if v == 2 else 0
    m.responses = [_read_ShareAcknowledgeTopicResponse(r, v) for _ in r.each(r.compact_count(18))]
    m.node_endpoints = [_read_ShareNodeEndpoint(r, v) for _ in r.each(r.compact_count(11))]
    r.skip_tags()
    return m


def _write_ShareAcknowledgeResponse(w: Writer, m: ShareAcknowledgeResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    if v == 2:
        w.int32(m.acquisition_lock_timeout_ms)
    w.compact_count(len(m.responses))
    for response in w.each(m.responses):
        _write_ShareAcknowledgeTopicResponse(w, response, v)
    w.compact_count(len(m.node_endpoints))
    for node_endpoint in w.each(m.node_endpoints):
        _write_ShareNodeEndpoint(w, node_endpoint, v)
    w.uvarint(0)
