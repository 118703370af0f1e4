"""TxnOffsetCommit (API 28). Generated from schema/txn_offset_commit.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_iq = Struct(">iq")
_fixed_iqi = Struct(">iqi")
_fixed_qh = Struct(">qh")
_fixed_qhi = Struct(">qhi")


class TxnOffsetCommitRequestPartition(Structure):
    """One element of topics.partitions in TxnOffsetCommitRequest."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


def _read_TxnOffsetCommitRequestPartition(r: Reader, v: int) -> TxnOffsetCommitRequestPartition:
    m = TxnOffsetCommitRequestPartition.__new__(TxnOffsetCommitRequestPartition)
    if v >= 3:
        m.partition_index, m.committed_offset, m.committed_leader_epoch = r.fixed(_fixed_iqi)
        m.committed_metadata = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.partition_index, m.committed_offset = r.fixed(_fixed_iq)
        m.committed_leader_epoch = r.int32() if v == 2 else -1
        m.committed_metadata = r.nullable_string()
    return m


def _write_TxnOffsetCommitRequestPartition(w: Writer, m: TxnOffsetCommitRequestPartition, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_iqi.pack(m.partition_index, m.committed_offset, m.committed_leader_epoch)
        w.compact_nullable_string(m.committed_metadata)
        w.uvarint(0)
    else:
        w.buf += _fixed_iq.pack(m.partition_index, m.committed_offset)
        if v == 2:
            w.int32(m.committed_leader_epoch)
        w.nullable_string(m.committed_metadata)


class TxnOffsetCommitRequestTopic(Structure):
    """One element of topics in TxnOffsetCommitRequest."""

    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self, *, name: str = "", topic_id: bytes = ZERO_UUID, partitions: list[TxnOffsetCommitRequestPartition] = EMPTY
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions


def _read_TxnOffsetCommitRequestTopic(r: Reader, v: int) -> TxnOffsetCommitRequestTopic:
    m = TxnOffsetCommitRequestTopic.__new__(TxnOffsetCommitRequestTopic)
    if v >= 3:
        m.name = r.compact_string() if v <= 5 else ""
        m.topic_id = r.uuid() if v == 6 else ZERO_UUID
        m.partitions = [_read_TxnOffsetCommitRequestPartition(r, v) for _ in r.each(r.compact_count(18))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_TxnOffsetCommitRequestPartition(r, v) for _ in r.each(r.count(14))]
        m.topic_id = ZERO_UUID
    return m


def _write_TxnOffsetCommitRequestTopic(w: Writer, m: TxnOffsetCommitRequestTopic, v: int) -> None:
    if v >= 3:
        if v <= 5:
            w.compact_string(m.name)
        if v == 6:
            w.uuid(m.topic_id)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_TxnOffsetCommitRequestPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_TxnOffsetCommitRequestPartition(w, partition, v)


class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"]):
    """TxnOffsetCommitRequest, a request: versions 0 to 6, flexible from 3."""

    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "topics",
    )
    API_KEY: ClassVar[int] = 28
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.group_id: str = group_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_TxnOffsetCommitRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> TxnOffsetCommitRequest:
        return _read_TxnOffsetCommitRequest(r, version)


def _read_TxnOffsetCommitRequest(r: Reader, v: int) -> TxnOffsetCommitRequest:
    m = TxnOffsetCommitRequest.__new__(TxnOffsetCommitRequest)
    if v >= 3:
        m.transactional_id = r.compact_string()
        m.group_id = r.compact_string()
        m.producer_id, m.producer_epoch, m.generation_id_or_member_epoch = r.fixed(_fixed_qhi)
        m.member_id = r.compact_string()
        m.group_instance_id = r.compact_nullable_string()
        m.topics = [_read_TxnOffsetCommitRequestTopic(r, v) for _ in r.each(r.compact_count(2))]
        r.skip_tags()
    else:
        m.transactional_id = r.string()
        m.group_id = r.string()
        m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
        m.topics = [_read_TxnOffsetCommitRequestTopic(r, v) for _ in r.each(r.count(6))]
        m.generation_id_or_member_epoch = -1
        m.member_id = ""
        m.group_instance_id = None
    return m


def _write_TxnOffsetCommitRequest(w: Writer, m: TxnOffsetCommitRequest, v: int) -> None:
    if v >= 3:
        w.compact_string(m.transactional_id)
        w.compact_string(m.group_id)
        w.buf += _fixed_qhi.pack(m.producer_id, m.producer_epoch, m.generation_id_or_member_epoch)
        w.compact_string(m.member_id)
        w.compact_nullable_string(m.group_instance_id)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_TxnOffsetCommitRequestTopic(w, topic, v)
        w.uvarint(0)
    else:
        w.string(m.transactional_id)
        w.string(m.group_id)
        w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_TxnOffsetCommitRequestTopic(w, topic, v)


class TxnOffsetCommitResponsePartition(Structure):
    """One element of topics.partitions in TxnOffsetCommitResponse."""

    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


def _read_TxnOffsetCommitResponsePartition(r: Reader, v: int) -> TxnOffsetCommitResponsePartition:
    m = TxnOffsetCommitResponsePartition.__new__(TxnOffsetCommitResponsePartition)
    if v >= 3:
        m.partition_index, m.error_code = r.fixed(_fixed_ih)
        r.skip_tags()
    else:
        m.partition_index, m.error_code = r.fixed(_fixed_ih)
    return m


def _write_TxnOffsetCommitResponsePartition(w: Writer, m: TxnOffsetCommitResponsePartition, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.partition_index, m.error_code)


class TxnOffsetCommitResponseTopic(Structure):
    """One element of topics in TxnOffsetCommitResponse."""

    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self, *, name: str = "", topic_id: bytes = ZERO_UUID, partitions: list[TxnOffsetCommitResponsePartition] = EMPTY
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions


def _read_TxnOffsetCommitResponseTopic(r: Reader, v: int) -> TxnOffsetCommitResponseTopic:
    m = TxnOffsetCommitResponseTopic.__new__(TxnOffsetCommitResponseTopic)
    if v >= 3:
        m.name = r.compact_string() if v <= 5 else ""
        m.topic_id = r.uuid() if v == 6 else ZERO_UUID
        m.partitions = [_read_TxnOffsetCommitResponsePartition(r, v) for _ in r.each(r.compact_count(7))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_TxnOffsetCommitResponsePartition(r, v) for _ in r.each(r.count(6))]
        m.topic_id = ZERO_UUID
    return m


def _write_TxnOffsetCommitResponseTopic(w: Writer, m: TxnOffsetCommitResponseTopic, v: int) -> None:
    if v >= 3:
        if v <= 5:
            w.compact_string(m.name)
        if v == 6:
            w.uuid(m.topic_id)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_TxnOffsetCommitResponsePartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_TxnOffsetCommitResponsePartition(w, partition, v)


class TxnOffsetCommitResponse(Message):
    """TxnOffsetCommitResponse, a response: versions 0 to 6, flexible from 3."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 28
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[TxnOffsetCommitResponseTopic] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_TxnOffsetCommitResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> TxnOffsetCommitResponse:
        return _read_TxnOffsetCommitResponse(r, version)


def _read_TxnOffsetCommitResponse(r: Reader, v: int) -> TxnOffsetCommitResponse:
    m = TxnOffsetCommitResponse.__new__(TxnOffsetCommitResponse)
    if v >= 3:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_TxnOffsetCommitResponseTopic(r, v) for _ in r.each(r.compact_count(2))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_TxnOffsetCommitResponseTopic(r, v) for _ in r.each(r.count(6))]
    return m


def _write_TxnOffsetCommitResponse(w: Writer, m: TxnOffsetCommitResponse, v: int) -> None:
    if v >= 3:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_TxnOffsetCommitResponseTopic(w, topic, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_TxnOffsetCommitResponseTopic(w, topic, v)
