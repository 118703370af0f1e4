"""Metadata (API 3). Generated from schema/metadata.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_hii = Struct(">hii")
_fixed_hiii = Struct(">hiii")


class MetadataRequestTopic(Structure):
    """One element of topics in MetadataRequest."""

    __slots__ = ("topic_id", "name")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, name: str | None = "") -> None:
        self.topic_id: bytes = topic_id
        self.name: str | None = name


def _read_MetadataRequestTopic(r: Reader, v: int) -> MetadataRequestTopic:
    m = MetadataRequestTopic.__new__(MetadataRequestTopic)
    if v >= 9:
        m.topic_id = r.uuid() if v >= 10 else ZERO_UUID
        m.name = r.compact_nullable_string() if v >= 10 else r.compact_string()
        r.skip_tags()
    else:
        m.name = r.string()
        m.topic_id = ZERO_UUID
    return m


def _write_MetadataRequestTopic(w: Writer, m: MetadataRequestTopic, v: int) -> None:
    if v >= 9:
        if v >= 10:
            w.uuid(m.topic_id)
        if v >= 10:
            w.compact_nullable_string(m.name)
        else:
            w.compact_string(w.required(m.name, "name"))
        w.uvarint(0)
    else:
        w.string(w.required(m.name, "name"))


class MetadataRequest(Request["MetadataResponse"]):
    """MetadataRequest, a request: versions 0 to 13, flexible from 9."""

    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    API_KEY: ClassVar[int] = 3
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations

    def write(self, w: Writer, version: int) -> None:
        _write_MetadataRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> MetadataRequest:
        return _read_MetadataRequest(r, version)


def _read_MetadataRequest(r: Reader, v: int) -> MetadataRequest:
    m = MetadataRequest.__new__(MetadataRequest)
    if v >= 9:
        m.topics = (
            None if (n := r.compact_nullable_count(2)) < 0 else [_read_MetadataRequestTopic(r, v) for _ in r.each(n)]
        )
        m.allow_auto_topic_creation = r.boolean()
        m.include_cluster_authorized_operations = r.boolean() if v <= 10 else False
        m.include_topic_authorized_operations = r.boolean()
        r.skip_tags()
    else:
        m.topics = (
            (None if (n := r.nullable_count(2)) < 0 else [_read_MetadataRequestTopic(r, v) for _ in r.each(n)])
            if v >= 1
            else [_read_MetadataRequestTopic(r, v) for _ in r.each(r.count(2))]
        )
        m.allow_auto_topic_creation = r.boolean() if v >= 4 else True
        m.include_cluster_authorized_operations = r.boolean() if v == 8 else False
        m.include_topic_authorized_operations = r.boolean() if v == 8 else False
    return m


def _write_MetadataRequest(w: Writer, m: MetadataRequest, v: int) -> None:
    if v >= 9:
        if m.topics is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.topics))
            for topic in w.each(m.topics):
                _write_MetadataRequestTopic(w, topic, v)
        w.boolean(m.allow_auto_topic_creation)
        if v <= 10:
            w.boolean(m.include_cluster_authorized_operations)
        w.boolean(m.include_topic_authorized_operations)
        w.uvarint(0)
    else:
        if v >= 1:
            if m.topics is None:
                w.count(-1)
            else:
                w.count(len(m.topics))
                for topic in w.each(m.topics):
                    _write_MetadataRequestTopic(w, topic, v)
        else:
            items = w.required(m.topics, "topics")
            w.count(len(items))
            for topic in w.each(items):
                _write_MetadataRequestTopic(w, topic, v)
        if v >= 4:
            w.boolean(m.allow_auto_topic_creation)
        if v == 8:
            w.boolean(m.include_cluster_authorized_operations)
            w.boolean(m.include_topic_authorized_operations)


class MetadataResponseBroker(Structure):
    """One element of brokers in MetadataResponse."""

    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


def _read_MetadataResponseBroker(r: Reader, v: int) -> MetadataResponseBroker:
    m = MetadataResponseBroker.__new__(MetadataResponseBroker)
    if v >= 9:
        m.node_id = r.int32()
        m.host = r.compact_string()
        m.port = r.int32()
        m.rack = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.node_id = r.int32()
        m.host = r.string()
        m.port = r.int32()
        m.rack = r.nullable_string() if v >= 1 else None
    return m


def _write_MetadataResponseBroker(w: Writer, m: MetadataResponseBroker, v: int) -> None:
    if v >= 9:
        w.int32(m.node_id)
        w.compact_string(m.host)
        w.int32(m.port)
        w.compact_nullable_string(m.rack)
        w.uvarint(0)
    else:
        w.int32(m.node_id)
        w.string(m.host)
        w.int32(m.port)
        if v >= 1:
            w.nullable_string(m.rack)


class MetadataResponsePartition(Structure):
    """One element of topics.partitions in MetadataResponse."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas


def _read_MetadataResponsePartition(r: Reader, v: int) -> MetadataResponsePartition:
    m = MetadataResponsePartition.__new__(MetadataResponsePartition)
    if v >= 9:
        m.error_code, m.partition_index, m.leader_id, m.leader_epoch = r.fixed(_fixed_hiii)
        m.replica_nodes = r.compact_int32_array()
        m.isr_nodes = r.compact_int32_array()
        m.offline_replicas = r.compact_int32_array()
        r.skip_tags()
    else:
        m.error_code, m.partition_index, m.leader_id = r.fixed(_fixed_hii)
        m.leader_epoch = r.int32() if v >= 7 else -1
        m.replica_nodes = r.int32_array()
        m.isr_nodes = r.int32_array()
        m.offline_replicas = r.int32_array() if v >= 5 else []
    return m


def _write_MetadataResponsePartition(w: Writer, m: MetadataResponsePartition, v: int) -> None:
    if v >= 9:
        w.buf += _fixed_hiii.pack(m.error_code, m.partition_index, m.leader_id, m.leader_epoch)
        w.compact_int32_array(m.replica_nodes)
        w.compact_int32_array(m.isr_nodes)
        w.compact_int32_array(m.offline_replicas)
        w.uvarint(0)
    else:
        w.buf += _fixed_hii.pack(m.error_code, m.partition_index, m.leader_id)
        if v >= 7:
            w.int32(m.leader_epoch)
        w.int32_array(m.replica_nodes)
        w.int32_array(m.isr_nodes)
        if v >= 5:
            w.int32_array(m.offline_replicas)


class MetadataResponseTopic(Structure):
    """One element of topics in MetadataResponse."""

    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations: int = topic_authorized_operations


def _read_MetadataResponseTopic(r: Reader, v: int) -> MetadataResponseTopic:
    m = MetadataResponseTopic.__new__(MetadataResponseTopic)
    if v >= 9:
        m.error_code = r.int16()
        m.name = r.compact_nullable_string() if v >= 12 else r.compact_string()
        m.topic_id = r.uuid() if v >= 10 else ZERO_UUID
        m.is_internal = r.boolean()
        m.partitions = [_read_MetadataResponsePartition(r, v) for _ in r.each(r.compact_count(18))]
        m.topic_authorized_operations = r.int32()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.name = r.string()
        m.is_internal = r.boolean() if v >= 1 else False
        m.partitions = [_read_MetadataResponsePartition(r, v) for _ in r.each(r.count(18))]
        m.topic_authorized_operations = r.int32() if v == 8 else -2147483648
        m.topic_id = ZERO_UUID
    return m


def _write_MetadataResponseTopic(w: Writer, m: MetadataResponseTopic, v: int) -> None:
    if v >= 9:
        w.int16(m.error_code)
        if v >= 12:
            w.compact_nullable_string(m.name)
        else:
            w.compact_string(w.required(m.name, "name"))
        if v >= 10:
            w.uuid(m.topic_id)
        w.boolean(m.is_internal)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_MetadataResponsePartition(w, partition, v)
        w.int32(m.topic_authorized_operations)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.string(w.required(m.name, "name"))
        if v >= 1:
            w.boolean(m.is_internal)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_MetadataResponsePartition(w, partition, v)
        if v == 8:
            w.int32(m.topic_authorized_operations)


class MetadataResponse(Message):
    """MetadataResponse, a response: versions 0 to 13, flexible from 9."""

    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "error_code",
        "cluster_authorized_operations",
    )
    API_KEY: ClassVar[int] = 3
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = 9

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = EMPTY,
        error_code: int = 0,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is EMPTY else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.cluster_authorized_operations: int = cluster_authorized_operations

    def write(self, w: Writer, version: int) -> None:
        _write_MetadataResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> MetadataResponse:
        return _read_MetadataResponse(r, version)


def _read_MetadataResponse(r: Reader, v: int) -> MetadataResponse:
    m = MetadataResponse.__new__(MetadataResponse)
    if v >= 9:
        m.throttle_time_ms = r.int32()
        m.brokers = [_read_MetadataResponseBroker(r, v) for _ in r.each(r.compact_count(11))]
        m.cluster_id = r.compact_nullable_string()
        m.controller_id = r.int32()
        m.topics = [_read_MetadataResponseTopic(r, v) for _ in r.each(r.compact_count(10))]
        m.error_code = r.int16() if v == 13 else 0
        m.cluster_authorized_operations = r.int32() if v <= 10 else -2147483648
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 3 else 0
        m.brokers = [_read_MetadataResponseBroker(r, v) for _ in r.each(r.count(10))]
        m.cluster_id = r.nullable_string() if v >= 2 else None
        m.controller_id = r.int32() if v >= 1 else -1
        m.topics = [_read_MetadataResponseTopic(r, v) for _ in r.each(r.count(8))]
        m.cluster_authorized_operations = r.int32() if v == 8 else -2147483648
        m.error_code = 0
    return m


def _write_MetadataResponse(w: Writer, m: MetadataResponse, v: int) -> None:
    if v >= 9:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.brokers))
        for broker in w.each(m.brokers):
            _write_MetadataResponseBroker(w, broker, v)
        w.compact_nullable_string(m.cluster_id)
        w.int32(m.controller_id)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_MetadataResponseTopic(w, topic, v)
        if v == 13:
            w.int16(m.error_code)
        if v <= 10:
            w.int32(m.cluster_authorized_operations)
        w.uvarint(0)
    else:
        if v >= 3:
            w.int32(m.throttle_time_ms)
        w.count(len(m.brokers))
        for broker in w.each(m.brokers):
            _write_MetadataResponseBroker(w, broker, v)
        if v >= 2:
            w.nullable_string(m.cluster_id)
        if v >= 1:
            w.int32(m.controller_id)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_MetadataResponseTopic(w, topic, v)
        if v == 8:
            w.int32(m.cluster_authorized_operations)
