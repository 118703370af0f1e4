"""OffsetForLeaderEpoch (API 23). Generated from schema/offset_for_leader_epoch.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_hiiq = Struct(">hiiq")
_fixed_iii = Struct(">iii")


class OffsetForLeaderPartition(Structure):
    """One element of topics.partitions in OffsetForLeaderEpochRequest."""

    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")

    def __init__(self, *, partition: int = 0, current_leader_epoch: int = -1, leader_epoch: int = 0) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch


def _read_OffsetForLeaderPartition(r: Reader, v: int) -> OffsetForLeaderPartition:
    m = OffsetForLeaderPartition.__new__(OffsetForLeaderPartition)
    if v >= 4:
        m.partition, m.current_leader_epoch, m.leader_epoch = r.fixed(_fixed_iii)
        r.skip_tags()
    else:
        m.partition, m.current_leader_epoch, m.leader_epoch = r.fixed(_fixed_iii)
    return m


def _write_OffsetForLeaderPartition(w: Writer, m: OffsetForLeaderPartition, v: int) -> None:
    if v >= 4:
        w.buf += _fixed_iii.pack(m.partition, m.current_leader_epoch, m.leader_epoch)
        w.uvarint(0)
    else:
        w.buf += _fixed_iii.pack(m.partition, m.current_leader_epoch, m.leader_epoch)


class OffsetForLeaderTopic(Structure):
    """One element of topics in OffsetForLeaderEpochRequest."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[OffsetForLeaderPartition] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is EMPTY else partitions


def _read_OffsetForLeaderTopic(r: Reader, v: int) -> OffsetForLeaderTopic:
    m = OffsetForLeaderTopic.__new__(OffsetForLeaderTopic)
    if v >= 4:
        m.topic = r.compact_string()
        m.partitions = [_read_OffsetForLeaderPartition(r, v) for _ in r.each(r.compact_count(13))]
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = [_read_OffsetForLeaderPartition(r, v) for _ in r.each(r.count(12))]
    return m


def _write_OffsetForLeaderTopic(w: Writer, m: OffsetForLeaderTopic, v: int) -> None:
    if v >= 4:
        w.compact_string(m.topic)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetForLeaderPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetForLeaderPartition(w, partition, v)


class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"]):
    """OffsetForLeaderEpochRequest, a request: versions 2 to 4, flexible from 4."""

    __slots__ = ("replica_id", "topics")
    API_KEY: ClassVar[int] = 23
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(self, *, replica_id: int = -2, topics: list[OffsetForLeaderTopic] = EMPTY) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetForLeaderEpochRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetForLeaderEpochRequest:
        return _read_OffsetForLeaderEpochRequest(r, version)


def _read_OffsetForLeaderEpochRequest(r: Reader, v: int) -> OffsetForLeaderEpochRequest:
    m = OffsetForLeaderEpochRequest.__new__(OffsetForLeaderEpochRequest)
    if v >= 4:
        m.replica_id = r.int32()
        m.topics = [_read_OffsetForLeaderTopic(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.replica_id = r.int32() if v == 3 else -2
        m.topics = [_read_OffsetForLeaderTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetForLeaderEpochRequest(w: Writer, m: OffsetForLeaderEpochRequest, v: int) -> None:
    if v >= 4:
        w.int32(m.replica_id)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetForLeaderTopic(w, topic, v)
        w.uvarint(0)
    else:
        if v == 3:
            w.int32(m.replica_id)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetForLeaderTopic(w, topic, v)


class EpochEndOffset(Structure):
    """One element of topics.partitions in OffsetForLeaderEpochResponse."""

    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")

    def __init__(
        self, *, error_code: int = 0, partition: int = 0, leader_epoch: int = -1, end_offset: int = -1
    ) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset


def _read_EpochEndOffset(r: Reader, v: int) -> EpochEndOffset:
    m = EpochEndOffset.__new__(EpochEndOffset)
    if v >= 4:
        m.error_code, m.partition, m.leader_epoch, m.end_offset = r.fixed(_fixed_hiiq)
        r.skip_tags()
    else:
        m.error_code, m.partition, m.leader_epoch, m.end_offset = r.fixed(_fixed_hiiq)
    return m


def _write_EpochEndOffset(w: Writer, m: EpochEndOffset, v: int) -> None:
    if v >= 4:
        w.buf += _fixed_hiiq.pack(m.error_code, m.partition, m.leader_epoch, m.end_offset)
        w.uvarint(0)
    else:
        w.buf += _fixed_hiiq.pack(m.error_code, m.partition, m.leader_epoch, m.end_offset)


class OffsetForLeaderTopicResult(Structure):
    """One element of topics in OffsetForLeaderEpochResponse."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[EpochEndOffset] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is EMPTY else partitions


def _read_OffsetForLeaderTopicResult(r: Reader, v: int) -> OffsetForLeaderTopicResult:
    m = OffsetForLeaderTopicResult.__new__(OffsetForLeaderTopicResult)
    if v >= 4:
        m.topic = r.compact_string()
        m.partitions = [_read_EpochEndOffset(r, v) for _ in r.each(r.compact_count(19))]
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = [_read_EpochEndOffset(r, v) for _ in r.each(r.count(18))]
    return m


def _write_OffsetForLeaderTopicResult(w: Writer, m: OffsetForLeaderTopicResult, v: int) -> None:
    if v >= 4:
        w.compact_string(m.topic)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_EpochEndOffset(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_EpochEndOffset(w, partition, v)


class OffsetForLeaderEpochResponse(Message):
    """OffsetForLeaderEpochResponse, a response: versions 2 to 4, flexible from 4."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 23
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[OffsetForLeaderTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetForLeaderEpochResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetForLeaderEpochResponse:
        return _read_OffsetForLeaderEpochResponse(r, version)


def _read_OffsetForLeaderEpochResponse(r: Reader, v: int) -> OffsetForLeaderEpochResponse:
    m = OffsetForLeaderEpochResponse.__new__(OffsetForLeaderEpochResponse)
    if v >= 4:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_OffsetForLeaderTopicResult(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_OffsetForLeaderTopicResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_OffsetForLeaderEpochResponse(w: Writer, m: OffsetForLeaderEpochResponse, v: int) -> None:
    if v >= 4:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetForLeaderTopicResult(w, topic, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetForLeaderTopicResult(w, topic, v)
