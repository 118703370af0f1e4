"""DescribeQuorum (API 55). Generated from schema/describe_quorum.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_iiq = Struct(">iiq")


class DescribeQuorumPartition(Structure):
    """One element of topics.partitions in DescribeQuorumRequest."""

    __slots__ = ("partition_index",)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index: int = partition_index


def _read_DescribeQuorumPartition(r: Reader, v: int) -> DescribeQuorumPartition:
    m = DescribeQuorumPartition.__new__(DescribeQuorumPartition)
    m.partition_index = r.int32()
    r.skip_tags()
    return m


def _write_DescribeQuorumPartition(w: Writer, m: DescribeQuorumPartition, v: int) -> None:
    w.int32(m.partition_index)
    w.uvarint(0)


class DescribeQuorumTopic(Structure):
    """One element of topics in DescribeQuorumRequest."""

    __slots__ = ("topic_name", "partitions")

    def __init__(self, *, topic_name: str = "", partitions: list[DescribeQuorumPartition] = EMPTY) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[DescribeQuorumPartition] = [] if partitions is EMPTY else partitions


def _read_DescribeQuorumTopic(r: Reader, v: int) -> DescribeQuorumTopic:
    m = DescribeQuorumTopic.__new__(DescribeQuorumTopic)
    m.topic_name = r.compact_string()
    m.partitions = [_read_DescribeQuorumPartition(r, v) for _ in r.each(r.compact_count(5))]
    r.skip_tags()
    return m


def _write_DescribeQuorumTopic(w: Writer, m: DescribeQuorumTopic, v: int) -> None:
    w.compact_string(m.topic_name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DescribeQuorumPartition(w, partition, v)
    w.uvarint(0)


class DescribeQuorumRequest(Request["DescribeQuorumResponse"]):
    """DescribeQuorumRequest, a request: versions 0 to 2, flexible from 0."""

    __slots__ = ("topics",)
    API_KEY: ClassVar[int] = 55
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, topics: list[DescribeQuorumTopic] = EMPTY) -> None:
        self.topics: list[DescribeQuorumTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeQuorumRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeQuorumRequest:
        return _read_DescribeQuorumRequest(r, version)


def _read_DescribeQuorumRequest(r: Reader, v: int) -> DescribeQuorumRequest:
    m = DescribeQuorumRequest.__new__(DescribeQuorumRequest)
    m.topics = [_read_DescribeQuorumTopic(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_DescribeQuorumRequest(w: Writer, m: DescribeQuorumRequest, v: int) -> None:
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribeQuorumTopic(w, topic, v)
    w.uvarint(0)


class QuorumVoterState(Structure):
    """One element of topics.partitions.current_voters in DescribeQuorumResponse."""

    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp


def _read_QuorumVoterState(r: Reader, v: int) -> QuorumVoterState:
    m = QuorumVoterState.__new__(QuorumVoterState)
    m.replica_id = r.int32()
    m.replica_directory_id = r.uuid() if v == 2 else ZERO_UUID
    m.log_end_offset = r.int64()
    m.last_fetch_timestamp = r.int64() if v >= 1 else -1
    m.last_caught_up_timestamp = r.int64() if v >= 1 else -1
    r.skip_tags()
    return m


def _write_QuorumVoterState(w: Writer, m: QuorumVoterState, v: int) -> None:
    w.int32(m.replica_id)
    if v == 2:
        w.uuid(m.replica_directory_id)
    w.int64(m.log_end_offset)
    if v >= 1:
        w.int64(m.last_fetch_timestamp)
        w.int64(m.last_caught_up_timestamp)
    w.uvarint(0)


class QuorumObserverState(Structure):
    """One element of topics.partitions.observers in DescribeQuorumResponse."""

    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp


def _read_QuorumObserverState(r: Reader, v: int) -> QuorumObserverState:
    m = QuorumObserverState.__new__(QuorumObserverState)
    m.replica_id = r.int32()
    m.replica_directory_id = r.uuid() if v == 2 else ZERO_UUID
    m.log_end_offset = r.int64()
    m.last_fetch_timestamp = r.int64() if v >= 1 else -1
    m.last_caught_up_timestamp = r.int64() if v >= 1 else -1
    r.skip_tags()
    return m


def _write_QuorumObserverState(w: Writer, m: QuorumObserverState, v: int) -> None:
    w.int32(m.replica_id)
    if v == 2:
        w.uuid(m.replica_directory_id)
    w.int64(m.log_end_offset)
    if v >= 1:
        w.int64(m.last_fetch_timestamp)
        w.int64(m.last_caught_up_timestamp)
    w.uvarint(0)


class DescribeQuorumPartitionResult(Structure):
    """One element of topics.partitions in DescribeQuorumResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[QuorumVoterState] = EMPTY,
        observers: list[QuorumObserverState] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: list[QuorumVoterState] = [] if current_voters is EMPTY else current_voters
        self.observers: list[QuorumObserverState] = [] if observers is EMPTY else observers


def _read_DescribeQuorumPartitionResult(r: Reader, v: int) -> DescribeQuorumPartitionResult:
    m = DescribeQuorumPartitionResult.__new__(DescribeQuorumPartitionResult)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string() if v == 2 else ""
    m.leader_id, m.leader_epoch, m.high_watermark = r.fixed(_fixed_iiq)
    m.current_voters = [_read_QuorumVoterState(r, v) for _ in r.each(r.compact_count(13))]
    m.observers = [_read_QuorumObserverState(r, v) for _ in r.each(r.compact_count(13))]
    r.skip_tags()
    return m


def _write_DescribeQuorumPartitionResult(w: Writer, m: DescribeQuorumPartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    if v == 2:
        w.compact_nullable_string(m.error_message)
    w.buf += _fixed_iiq.pack(m.leader_id, m.leader_epoch, m.high_watermark)
    w.compact_count(len(m.current_voters))
    for current_voter in w.each(m.current_voters):
        _write_QuorumVoterState(w, current_voter, v)
    w.compact_count(len(m.observers))
    for observer in w.each(m.observers):
        _write_QuorumObserverState(w, observer, v)
    w.uvarint(0)


class DescribeQuorumTopicResult(Structure):
    """One element of topics in DescribeQuorumResponse."""

    __slots__ = ("topic_name", "partitions")

    def __init__(self, *, topic_name: str = "", partitions: list[DescribeQuorumPartitionResult] = EMPTY) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[DescribeQuorumPartitionResult] = [] if partitions is EMPTY else partitions


def _read_DescribeQuorumTopicResult(r: Reader, v: int) -> DescribeQuorumTopicResult:
    m = DescribeQuorumTopicResult.__new__(DescribeQuorumTopicResult)
    m.topic_name = r.compact_string()
    m.partitions = [_read_DescribeQuorumPartitionResult(r, v) for _ in r.each(r.compact_count(25))]
    r.skip_tags()
    return m


def _write_DescribeQuorumTopicResult(w: Writer, m: DescribeQuorumTopicResult, v: int) -> None:
    w.compact_string(m.topic_name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_DescribeQuorumPartitionResult(w, partition, v)
    w.uvarint(0)


class QuorumListener(Structure):
    """One element of nodes.listeners in DescribeQuorumResponse."""

    __slots__ = ("name", "host", "port")

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


def _read_QuorumListener(r: Reader, v: int) -> QuorumListener:
    m = QuorumListener.__new__(QuorumListener)
    m.name = r.compact_string()
    m.host = r.compact_string()
    m.port = r.uint16()
    r.skip_tags()
    return m


def _write_QuorumListener(w: Writer, m: QuorumListener, v: int) -> None:
    w.compact_string(m.name)
    w.compact_string(m.host)
    w.uint16(m.port)
    w.uvarint(0)


class QuorumNode(Structure):
    """One element of nodes in DescribeQuorumResponse."""

    __slots__ = ("node_id", "listeners")

    def __init__(self, *, node_id: int = 0, listeners: list[QuorumListener] = EMPTY) -> None:
        self.node_id: int = node_id
        self.listeners: list[QuorumListener] = [] if listeners is EMPTY else listeners


def _read_QuorumNode(r: Reader, v: int) -> QuorumNode:
    m = QuorumNode.__new__(QuorumNode)
    m.node_id = r.int32()
    m.listeners = [_read_QuorumListener(r, v) for _ in r.each(r.compact_count(5))]
    r.skip_tags()
    return m


def _write_QuorumNode(w: Writer, m: QuorumNode, v: int) -> None:
    w.int32(m.node_id)
    w.compact_count(len(m.listeners))
    for listener in w.each(m.listeners):
        _write_QuorumListener(w, listener, v)
    w.uvarint(0)


class DescribeQuorumResponse(Message):
    """DescribeQuorumResponse, a response: versions 0 to 2, flexible from 0."""

    __slots__ = ("error_code", "error_message", "topics", "nodes")
    API_KEY: ClassVar[int] = 55
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumTopicResult] = EMPTY,
        nodes: list[QuorumNode] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[DescribeQuorumTopicResult] = [] if topics is EMPTY else topics
        self.nodes: list[QuorumNode] = [] if nodes is EMPTY else nodes

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeQuorumResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeQuorumResponse:
        return _read_DescribeQuorumResponse(r, version)


def _read_DescribeQuorumResponse(r: Reader, v: int) -> DescribeQuorumResponse:
    m = DescribeQuorumResponse.__new__(DescribeQuorumResponse)
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string() if v == 2 else ""
    m.topics = [_read_DescribeQuorumTopicResult(r, v) for _ in r.each(r.compact_count(3))]
    m.nodes = [_read_QuorumNode(r, v) for _ in r.each(r.compact_count(6))] if v == 2 else []
    r.skip_tags()
    return m


def _write_DescribeQuorumResponse(w: Writer, m: DescribeQuorumResponse, v: int) -> None:
    w.int16(m.error_code)
    if v == 2:
        w.compact_nullable_string(m.error_message)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribeQuorumTopicResult(w, topic, v)
    if v == 2:
        w.compact_count(len(m.nodes))
        for node in w.each(m.nodes):
            _write_QuorumNode(w, node, v)
    w.uvarint(0)
