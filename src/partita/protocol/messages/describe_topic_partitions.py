"""DescribeTopicPartitions (API 75). Generated from schema/describe_topic_partitions.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_hiii = Struct(">hiii")


class DescribeTopicPartitionsTopic(Structure):
    """One element of topics in DescribeTopicPartitionsRequest."""

    __slots__ = ("name",)

    def __init__(self, *, name: str = "") -> None:
        self.name: str = name


def _read_DescribeTopicPartitionsTopic(r: Reader, v: int) -> DescribeTopicPartitionsTopic:
    m = DescribeTopicPartitionsTopic.__new__(DescribeTopicPartitionsTopic)
    m.name = r.compact_string()
    r.skip_tags()
    return m


def _write_DescribeTopicPartitionsTopic(w: Writer, m: DescribeTopicPartitionsTopic, v: int) -> None:
    w.compact_string(m.name)
    w.uvarint(0)


class DescribeTopicPartitionsCursor(Structure):
    """The value of cursor in DescribeTopicPartitionsRequest."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


def _read_DescribeTopicPartitionsCursor(r: Reader, v: int) -> DescribeTopicPartitionsCursor:
    m = DescribeTopicPartitionsCursor.__new__(DescribeTopicPartitionsCursor)
    m.topic_name = r.compact_string()
    m.partition_index = r.int32()
    r.skip_tags()
    return m


def _write_DescribeTopicPartitionsCursor(w: Writer, m: DescribeTopicPartitionsCursor, v: int) -> None:
    w.compact_string(m.topic_name)
    w.int32(m.partition_index)
    w.uvarint(0)


class DescribeTopicPartitionsRequest(Request["DescribeTopicPartitionsResponse"]):
    """DescribeTopicPartitionsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("topics", "response_partition_limit", "cursor")
    API_KEY: ClassVar[int] = 75
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsTopic] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsCursor | None = None,
    ) -> None:
        self.topics: list[DescribeTopicPartitionsTopic] = [] if topics is EMPTY else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: DescribeTopicPartitionsCursor | None = cursor

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeTopicPartitionsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeTopicPartitionsRequest:
        return _read_DescribeTopicPartitionsRequest(r, version)


def _read_DescribeTopicPartitionsRequest(r: Reader, v: int) -> DescribeTopicPartitionsRequest:
    m = DescribeTopicPartitionsRequest.__new__(DescribeTopicPartitionsRequest)
    m.topics = [_read_DescribeTopicPartitionsTopic(r, v) for _ in r.each(r.compact_count(2))]
    m.response_partition_limit = r.int32()
    m.cursor = _read_DescribeTopicPartitionsCursor(r, v) if r.int8() >= 0 else None
    r.skip_tags()
    return m


def _write_DescribeTopicPartitionsRequest(w: Writer, m: DescribeTopicPartitionsRequest, v: int) -> None:
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribeTopicPartitionsTopic(w, topic, v)
    w.int32(m.response_partition_limit)
    if m.cursor is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_DescribeTopicPartitionsCursor(w, m.cursor, v)
    w.uvarint(0)


class DescribedPartition(Structure):
    """One element of topics.partitions in DescribeTopicPartitionsResponse."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
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
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas


def _read_DescribedPartition(r: Reader, v: int) -> DescribedPartition:
    m = DescribedPartition.__new__(DescribedPartition)
    m.error_code, m.partition_index, m.leader_id, m.leader_epoch = r.fixed(_fixed_hiii)
    m.replica_nodes = r.compact_int32_array()
    m.isr_nodes = r.compact_int32_array()
    m.eligible_leader_replicas = r.compact_nullable_int32_array()
    m.last_known_elr = r.compact_nullable_int32_array()
    m.offline_replicas = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_DescribedPartition(w: Writer, m: DescribedPartition, v: int) -> None:
    w.buf += _fixed_hiii.pack(m.error_code, m.partition_index, m.leader_id, m.leader_epoch)
    w.compact_int32_array(m.replica_nodes)
    w.compact_int32_array(m.isr_nodes)
    if m.eligible_leader_replicas is None:
        w.compact_count(-1)
    else:
        w.compact_int32_array(m.eligible_leader_replicas)
    if m.last_known_elr is None:
        w.compact_count(-1)
    else:
        w.compact_int32_array(m.last_known_elr)
    w.compact_int32_array(m.offline_replicas)
    w.uvarint(0)


class DescribedTopic(Structure):
    """One element of topics in DescribeTopicPartitionsResponse."""

    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribedPartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[DescribedPartition] = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations: int = topic_authorized_operations


def _read_DescribedTopic(r: Reader, v: int) -> DescribedTopic:
    m = DescribedTopic.__new__(DescribedTopic)
    m.error_code = r.int16()
    m.name = r.compact_nullable_string()
    m.topic_id = r.uuid()
    m.is_internal = r.boolean()
    m.partitions = [_read_DescribedPartition(r, v) for _ in r.each(r.compact_count(20))]
    m.topic_authorized_operations = r.int32()
    r.skip_tags()
    return m


def _write_DescribedTopic(w: Writer, m: DescribedTopic, v: int) -> None:
    w.int16(m.error_code)
    w.compact_nullable_string(m.name)
    w.uuid(m.topic_id)
    w.boolean(m.is_internal)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DescribedPartition(w, partition, v)
    w.int32(m.topic_authorized_operations)
    w.uvarint(0)


class DescribedTopicsCursor(Structure):
    """The value of next_cursor in DescribeTopicPartitionsResponse."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


def _read_DescribedTopicsCursor(r: Reader, v: int) -> DescribedTopicsCursor:
    m = DescribedTopicsCursor.__new__(DescribedTopicsCursor)
    m.topic_name = r.compact_string()
    m.partition_index = r.int32()
    r.skip_tags()
    return m


def _write_DescribedTopicsCursor(w: Writer, m: DescribedTopicsCursor, v: int) -> None:
    w.compact_string(m.topic_name)
    w.int32(m.partition_index)
    w.uvarint(0)


class DescribeTopicPartitionsResponse(Message):
    """DescribeTopicPartitionsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "topics", "next_cursor")
    API_KEY: ClassVar[int] = 75
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribedTopic] = EMPTY,
        next_cursor: DescribedTopicsCursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribedTopic] = [] if topics is EMPTY else topics
        self.next_cursor: DescribedTopicsCursor | None = next_cursor

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeTopicPartitionsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeTopicPartitionsResponse:
        return _read_DescribeTopicPartitionsResponse(r, version)


def _read_DescribeTopicPartitionsResponse(r: Reader, v: int) -> DescribeTopicPartitionsResponse:
    m = DescribeTopicPartitionsResponse.__new__(DescribeTopicPartitionsResponse)
    m.throttle_time_ms = r.int32()
    m.topics = [_read_DescribedTopic(r, v) for _ in r.each(r.compact_count(26))]
    m.next_cursor = _read_DescribedTopicsCursor(r, v) if r.int8() >= 0 else None
    r.skip_tags()
    return m


def _write_DescribeTopicPartitionsResponse(w: Writer, m: DescribeTopicPartitionsResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribedTopic(w, topic, v)
    if m.next_cursor is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_DescribedTopicsCursor(w, m.next_cursor, v)
    w.uvarint(0)
