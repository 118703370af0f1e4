"""Produce (API 0). Generated from schema/produce.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Buffer, Message, Reader, Request, Structure, Writer

_fixed_hi = Struct(">hi")
_fixed_ihqq = Struct(">ihqq")
_fixed_ihqqq = Struct(">ihqqq")
_fixed_ii = Struct(">ii")


class PartitionProduceData(Structure):
    """One element of topic_data.partition_data in ProduceRequest."""

    __slots__ = ("index", "records")

    def __init__(self, *, index: int = 0, records: Buffer | None = None) -> None:
        self.index: int = index
        self.records: Buffer | None = records


def _read_PartitionProduceData(r: Reader, v: int) -> PartitionProduceData:
    m = PartitionProduceData.__new__(PartitionProduceData)
    if v >= 9:
        m.index = r.int32()
        m.records = r.compact_nullable_records()
        r.skip_tags()
    else:
        m.index = r.int32()
        m.records = r.nullable_records()
    return m


def _write_PartitionProduceData(w: Writer, m: PartitionProduceData, v: int) -> None:
    if v >= 9:
        w.int32(m.index)
        w.compact_nullable_records(m.records)
        w.uvarint(0)
    else:
        w.int32(m.index)
        w.nullable_records(m.records)


class TopicProduceData(Structure):
    """One element of topic_data in ProduceRequest."""

    __slots__ = ("topic_id", "name", "partition_data")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, name: str = "", partition_data: list[PartitionProduceData] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str = name
        self.partition_data: list[PartitionProduceData] = [] if partition_data is EMPTY else partition_data


def _read_TopicProduceData(r: Reader, v: int) -> TopicProduceData:
    m = TopicProduceData.__new__(TopicProduceData)
    if v >= 9:
        m.topic_id = r.uuid() if v == 13 else ZERO_UUID
        m.name = r.compact_string() if v <= 12 else ""
        m.partition_data = [_read_PartitionProduceData(r, v) for _ in r.each(r.compact_count(6))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partition_data = [_read_PartitionProduceData(r, v) for _ in r.each(r.count(8))]
        m.topic_id = ZERO_UUID
    return m


def _write_TopicProduceData(w: Writer, m: TopicProduceData, v: int) -> None:
    if v >= 9:
        if v == 13:
            w.uuid(m.topic_id)
        if v <= 12:
            w.compact_string(m.name)
        w.compact_count(len(m.partition_data))
        for partition_data_item in w.each(m.partition_data):
            _write_PartitionProduceData(w, partition_data_item, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partition_data))
        for partition_data_item in w.each(m.partition_data):
            _write_PartitionProduceData(w, partition_data_item, v)


class ProduceRequest(Request["ProduceResponse"]):
    """ProduceRequest, a request: versions 3 to 13, flexible from 9."""

    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")
    API_KEY: ClassVar[int] = 0
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is EMPTY else topic_data

    def write(self, w: Writer, version: int) -> None:
        _write_ProduceRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ProduceRequest:
        return _read_ProduceRequest(r, version)


def _read_ProduceRequest(r: Reader, v: int) -> ProduceRequest:
    m = ProduceRequest.__new__(ProduceRequest)
    if v >= 9:
        m.transactional_id = r.compact_nullable_string()
        m.acks, m.timeout_ms = r.fixed(_fixed_hi)
        m.topic_data = [_read_TopicProduceData(r, v) for _ in r.each(r.compact_count(2))]
        r.skip_tags()
    else:
        m.transactional_id = r.nullable_string()
        m.acks, m.timeout_ms = r.fixed(_fixed_hi)
        m.topic_data = [_read_TopicProduceData(r, v) for _ in r.each(r.count(6))]
    return m


def _write_ProduceRequest(w: Writer, m: ProduceRequest, v: int) -> None:
    if v >= 9:
        w.compact_nullable_string(m.transactional_id)
        w.buf += _fixed_hi.pack(m.acks, m.timeout_ms)
        w.compact_count(len(m.topic_data))
        for topic_data_item in w.each(m.topic_data):
            _write_TopicProduceData(w, topic_data_item, v)
        w.uvarint(0)
    else:
        w.nullable_string(m.transactional_id)
        w.buf += _fixed_hi.pack(m.acks, m.timeout_ms)
        w.count(len(m.topic_data))
        for topic_data_item in w.each(m.topic_data):
            _write_TopicProduceData(w, topic_data_item, v)


class BatchIndexAndErrorMessage(Structure):
    """One element of responses.partition_responses.record_errors in ProduceResponse."""

    __slots__ = ("batch_index", "batch_index_error_message")

    def __init__(self, *, batch_index: int = 0, batch_index_error_message: str | None = None) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message


def _read_BatchIndexAndErrorMessage(r: Reader, v: int) -> BatchIndexAndErrorMessage:
    m = BatchIndexAndErrorMessage.__new__(BatchIndexAndErrorMessage)
    if v >= 9:
        m.batch_index = r.int32()
        m.batch_index_error_message = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.batch_index = r.int32()
        m.batch_index_error_message = r.nullable_string()
    return m


def _write_BatchIndexAndErrorMessage(w: Writer, m: BatchIndexAndErrorMessage, v: int) -> None:
    if v >= 9:
        w.int32(m.batch_index)
        w.compact_nullable_string(m.batch_index_error_message)
        w.uvarint(0)
    else:
        w.int32(m.batch_index)
        w.nullable_string(m.batch_index_error_message)


class LeaderIdAndEpoch(Structure):
    """The value of responses.partition_responses.current_leader in ProduceResponse."""

    __slots__ = ("leader_id", "leader_epoch")

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


def _read_LeaderIdAndEpoch(r: Reader, v: int) -> LeaderIdAndEpoch:
    m = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
    m.leader_id, m.leader_epoch = r.fixed(_fixed_ii)
    r.skip_tags()
    return m


def _write_LeaderIdAndEpoch(w: Writer, m: LeaderIdAndEpoch, v: int) -> None:
    w.buf += _fixed_ii.pack(m.leader_id, m.leader_epoch)
    w.uvarint(0)


class PartitionProduceResponse(Structure):
    """One element of responses.partition_responses in ProduceResponse."""

    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is EMPTY else record_errors
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader


def _read_PartitionProduceResponse(r: Reader, v: int) -> PartitionProduceResponse:
    m = PartitionProduceResponse.__new__(PartitionProduceResponse)
    if v >= 9:
        m.index, m.error_code, m.base_offset, m.log_append_time_ms, m.log_start_offset = r.fixed(_fixed_ihqqq)
        m.record_errors = [_read_BatchIndexAndErrorMessage(r, v) for _ in r.each(r.compact_count(6))]
        m.error_message = r.compact_nullable_string()
        m.current_leader = LeaderIdAndEpoch()
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0 and v >= 10:
                m.current_leader = _read_LeaderIdAndEpoch(r, v)
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.index, m.error_code, m.base_offset, m.log_append_time_ms = r.fixed(_fixed_ihqq)
        m.log_start_offset = r.int64() if v >= 5 else -1
        m.record_errors = [_read_BatchIndexAndErrorMessage(r, v) for _ in r.each(r.count(6))] if v == 8 else []
        m.error_message = r.nullable_string() if v == 8 else None
        m.current_leader = LeaderIdAndEpoch()
    return m


def _write_PartitionProduceResponse(w: Writer, m: PartitionProduceResponse, v: int) -> None:
    if v >= 9:
        w.buf += _fixed_ihqqq.pack(m.index, m.error_code, m.base_offset, m.log_append_time_ms, m.log_start_offset)
        w.compact_count(len(m.record_errors))
        for record_error in w.each(m.record_errors):
            _write_BatchIndexAndErrorMessage(w, record_error, v)
        w.compact_nullable_string(m.error_message)
        tags: list[tuple[int, Writer]] = []
        if m.current_leader != LeaderIdAndEpoch() and v >= 10:
            t = Writer()
            _write_LeaderIdAndEpoch(t, m.current_leader, v)
            tags.append((0, t))
        w.tags(tags)
    else:
        w.buf += _fixed_ihqq.pack(m.index, m.error_code, m.base_offset, m.log_append_time_ms)
        if v >= 5:
            w.int64(m.log_start_offset)
        if v == 8:
            w.count(len(m.record_errors))
            for record_error in w.each(m.record_errors):
                _write_BatchIndexAndErrorMessage(w, record_error, v)
            w.nullable_string(m.error_message)


class TopicProduceResponse(Structure):
    """One element of responses in ProduceResponse."""

    __slots__ = ("topic_id", "name", "partition_responses")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        name: str = "",
        partition_responses: list[PartitionProduceResponse] = EMPTY,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str = name
        self.partition_responses: list[PartitionProduceResponse] = (
            [] if partition_responses is EMPTY else partition_responses
        )


def _read_TopicProduceResponse(r: Reader, v: int) -> TopicProduceResponse:
    m = TopicProduceResponse.__new__(TopicProduceResponse)
    if v >= 9:
        m.topic_id = r.uuid() if v == 13 else ZERO_UUID
        m.name = r.compact_string() if v <= 12 else ""
        m.partition_responses = [_read_PartitionProduceResponse(r, v) for _ in r.each(r.compact_count(33))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partition_responses = [_read_PartitionProduceResponse(r, v) for _ in r.each(r.count(22))]
        m.topic_id = ZERO_UUID
    return m


def _write_TopicProduceResponse(w: Writer, m: TopicProduceResponse, v: int) -> None:
    if v >= 9:
        if v == 13:
            w.uuid(m.topic_id)
        if v <= 12:
            w.compact_string(m.name)
        w.compact_count(len(m.partition_responses))
        for partition_response in w.each(m.partition_responses):
            _write_PartitionProduceResponse(w, partition_response, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partition_responses))
        for partition_response in w.each(m.partition_responses):
            _write_PartitionProduceResponse(w, partition_response, v)


class NodeEndpoint(Structure):
    """One element of node_endpoints in ProduceResponse."""

    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


def _read_NodeEndpoint(r: Reader, v: int) -> NodeEndpoint:
    m = NodeEndpoint.__new__(NodeEndpoint)
    m.node_id = r.int32()
    m.host = r.compact_string()
    m.port = r.int32()
    m.rack = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_NodeEndpoint(w: Writer, m: NodeEndpoint, v: int) -> None:
    w.int32(m.node_id)
    w.compact_string(m.host)
    w.int32(m.port)
    w.compact_nullable_string(m.rack)
    w.uvarint(0)


class ProduceResponse(Message):
    """ProduceResponse, a response: versions 3 to 13, flexible from 9."""

    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")
    API_KEY: ClassVar[int] = 0
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is EMPTY else responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints

    def write(self, w: Writer, version: int) -> None:
        _write_ProduceResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ProduceResponse:
        return _read_ProduceResponse(r, version)


def _read_ProduceResponse(r: Reader, v: int) -> ProduceResponse:
    m = ProduceResponse.__new__(ProduceResponse)
    if v >= 9:
        m.responses = [_read_TopicProduceResponse(r, v) for _ in r.each(r.compact_count(2))]
        m.throttle_time_ms = r.int32()
        m.node_endpoints = []
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0 and v >= 10:
                m.node_endpoints = [_read_NodeEndpoint(r, v) for _ in r.each(r.compact_count(11))]
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.responses = [_read_TopicProduceResponse(r, v) for _ in r.each(r.count(6))]
        m.throttle_time_ms = r.int32()
        m.node_endpoints = []
    return m


def _write_ProduceResponse(w: Writer, m: ProduceResponse, v: int) -> None:
    if v >= 9:
        w.compact_count(len(m.responses))
        for response in w.each(m.responses):
            _write_TopicProduceResponse(w, response, v)
        w.int32(m.throttle_time_ms)
        tags: list[tuple[int, Writer]] = []
        if m.node_endpoints and v >= 10:
            t = Writer()
            t.compact_count(len(m.node_endpoints))
            for node_endpoint in t.each(m.node_endpoints):
                _write_NodeEndpoint(t, node_endpoint, v)
            tags.append((0, t))
        w.tags(tags)
    else:
        w.count(len(m.responses))
        for response in w.each(m.responses):
            _write_TopicProduceResponse(w, response, v)
        w.int32(m.throttle_time_ms)
