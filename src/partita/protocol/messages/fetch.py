"""Fetch (API 1). Generated from schema/fetch.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Buffer, Message, Reader, Request, Structure, Writer

_fixed_ihi = Struct(">ihi")
_fixed_ihqq = Struct(">ihqq")
_fixed_ihqqq = Struct(">ihqqq")
_fixed_ii = Struct(">ii")
_fixed_iiibii = Struct(">iiibii")
_fixed_iiiib = Struct(">iiiib")
_fixed_iiqiqi = Struct(">iiqiqi")
_fixed_iq = Struct(">iq")
_fixed_qi = Struct(">qi")
_fixed_qq = Struct(">qq")


class FetchPartition(Structure):
    """One element of topics.partitions in FetchRequest."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: bytes = replica_directory_id
        self.high_watermark: int = high_watermark


def _read_FetchPartition(r: Reader, v: int) -> FetchPartition:
    m = FetchPartition.__new__(FetchPartition)
    if v >= 12:
        (
            m.partition,
            m.current_leader_epoch,
            m.fetch_offset,
            m.last_fetched_epoch,
            m.log_start_offset,
            m.partition_max_bytes,
        ) = r.fixed(_fixed_iiqiqi)
        m.replica_directory_id = ZERO_UUID
        m.high_watermark = 9223372036854775807
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0 and v >= 17:
                m.replica_directory_id = r.uuid()
            elif tag == 1 and v == 18:
                m.high_watermark = r.int64()
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.partition = r.int32()
        m.current_leader_epoch = r.int32() if v >= 9 else -1
        m.fetch_offset = r.int64()
        m.log_start_offset = r.int64() if v >= 5 else -1
        m.partition_max_bytes = r.int32()
        m.last_fetched_epoch = -1
        m.replica_directory_id = ZERO_UUID
        m.high_watermark = 9223372036854775807
    return m


def _write_FetchPartition(w: Writer, m: FetchPartition, v: int) -> None:
    if v >= 12:
        w.buf += _fixed_iiqiqi.pack(
            m.partition,
            m.current_leader_epoch,
            m.fetch_offset,
            m.last_fetched_epoch,
            m.log_start_offset,
            m.partition_max_bytes,
        )
        tags: list[tuple[int, Writer]] = []
        if m.replica_directory_id != ZERO_UUID and v >= 17:
            t = Writer()
            t.uuid(m.replica_directory_id)
            tags.append((0, t))
        if m.high_watermark != 9223372036854775807 and v == 18:
            t = Writer()
            t.int64(m.high_watermark)
            tags.append((1, t))
        w.tags(tags)
    else:
        w.int32(m.partition)
        if v >= 9:
            w.int32(m.current_leader_epoch)
        w.int64(m.fetch_offset)
        if v >= 5:
            w.int64(m.log_start_offset)
        w.int32(m.partition_max_bytes)


class FetchTopic(Structure):
    """One element of topics in FetchRequest."""

    __slots__ = ("topic_id", "topic", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, topic: str = "", partitions: list[FetchPartition] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic: str = topic
        self.partitions: list[FetchPartition] = [] if partitions is EMPTY else partitions


def _read_FetchTopic(r: Reader, v: int) -> FetchTopic:
    m = FetchTopic.__new__(FetchTopic)
    if v >= 12:
        m.topic_id = r.uuid() if v >= 13 else ZERO_UUID
        m.topic = r.compact_string() if v == 12 else ""
        m.partitions = [_read_FetchPartition(r, v) for _ in r.each(r.compact_count(33))]
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = [_read_FetchPartition(r, v) for _ in r.each(r.count(16))]
        m.topic_id = ZERO_UUID
    return m


def _write_FetchTopic(w: Writer, m: FetchTopic, v: int) -> None:
    if v >= 12:
        if v >= 13:
            w.uuid(m.topic_id)
        if v == 12:
            w.compact_string(m.topic)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_FetchPartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_FetchPartition(w, partition, v)


class ForgottenTopic(Structure):
    """One element of forgotten_topics_data in FetchRequest."""

    __slots__ = ("topic_id", "topic", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ForgottenTopic(r: Reader, v: int) -> ForgottenTopic:
    m = ForgottenTopic.__new__(ForgottenTopic)
    if v >= 12:
        m.topic_id = r.uuid() if v >= 13 else ZERO_UUID
        m.topic = r.compact_string() if v == 12 else ""
        m.partitions = r.compact_int32_array()
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = r.int32_array()
        m.topic_id = ZERO_UUID
    return m


def _write_ForgottenTopic(w: Writer, m: ForgottenTopic, v: int) -> None:
    if v >= 12:
        if v >= 13:
            w.uuid(m.topic_id)
        if v == 12:
            w.compact_string(m.topic)
        w.compact_int32_array(m.partitions)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.int32_array(m.partitions)


class ReplicaState(Structure):
    """The value of replica_state in FetchRequest."""

    __slots__ = ("replica_id", "replica_epoch")

    def __init__(self, *, replica_id: int = -1, replica_epoch: int = -1) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch


def _read_ReplicaState(r: Reader, v: int) -> ReplicaState:
    m = ReplicaState.__new__(ReplicaState)
    m.replica_id, m.replica_epoch = r.fixed(_fixed_iq)
    r.skip_tags()
    return m


def _write_ReplicaState(w: Writer, m: ReplicaState, v: int) -> None:
    w.buf += _fixed_iq.pack(m.replica_id, m.replica_epoch)
    w.uvarint(0)


class FetchRequest(Request["FetchResponse"]):
    """FetchRequest, a request: versions 4 to 18, flexible from 12."""

    __slots__ = (
        "replica_id",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
        "cluster_id",
        "replica_state",
    )
    API_KEY: ClassVar[int] = 1
    MIN_VERSION: ClassVar[int] = 4
    MAX_VERSION: ClassVar[int] = 18
    FLEXIBLE_FROM: ClassVar[int | None] = 12

    def __init__(
        self,
        *,
        replica_id: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
        rack_id: str = "",
        cluster_id: str | None = None,
        replica_state: ReplicaState | None = None,
    ) -> None:
        self.replica_id: int = replica_id
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        )
        self.rack_id: str = rack_id
        self.cluster_id: str | None = cluster_id
        self.replica_state: ReplicaState = ReplicaState() if replica_state is None else replica_state

    def write(self, w: Writer, version: int) -> None:
        _write_FetchRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> FetchRequest:
        return _read_FetchRequest(r, version)


def _read_FetchRequest(r: Reader, v: int) -> FetchRequest:
    m = FetchRequest.__new__(FetchRequest)
    if v >= 12:
        m.replica_id = r.int32() if v <= 14 else -1
        m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch = r.fixed(
            _fixed_iiibii
        )
        m.topics = [_read_FetchTopic(r, v) for _ in r.each(r.compact_count(2))]
        m.forgotten_topics_data = [_read_ForgottenTopic(r, v) for _ in r.each(r.compact_count(2))]
        m.rack_id = r.compact_string()
        m.cluster_id = None
        m.replica_state = ReplicaState()
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0:
                m.cluster_id = r.compact_nullable_string()
            elif tag == 1 and v >= 15:
                m.replica_state = _read_ReplicaState(r, v)
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level = r.fixed(_fixed_iiiib)
        m.session_id = r.int32() if v >= 7 else 0
        m.session_epoch = r.int32() if v >= 7 else -1
        m.topics = [_read_FetchTopic(r, v) for _ in r.each(r.count(6))]
        m.forgotten_topics_data = [_read_ForgottenTopic(r, v) for _ in r.each(r.count(6))] if v >= 7 else []
        m.rack_id = r.string() if v == 11 else ""
        m.cluster_id = None
        m.replica_state = ReplicaState()
    return m


def _write_FetchRequest(w: Writer, m: FetchRequest, v: int) -> None:
    if v >= 12:
        if v <= 14:
            w.int32(m.replica_id)
        w.buf += _fixed_iiibii.pack(
            m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch
        )
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_FetchTopic(w, topic, v)
        w.compact_count(len(m.forgotten_topics_data))
        for forgotten_topics_data_item in w.each(m.forgotten_topics_data):
            _write_ForgottenTopic(w, forgotten_topics_data_item, v)
        w.compact_string(m.rack_id)
        tags: list[tuple[int, Writer]] = []
        if m.cluster_id is not None:
            t = Writer()
            t.compact_nullable_string(m.cluster_id)
            tags.append((0, t))
        if m.replica_state != ReplicaState() and v >= 15:
            t = Writer()
            _write_ReplicaState(t, m.replica_state, v)
            tags.append((1, t))
        w.tags(tags)
    else:
        w.buf += _fixed_iiiib.pack(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level)
        if v >= 7:
            w.int32(m.session_id)
            w.int32(m.session_epoch)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_FetchTopic(w, topic, v)
        if v >= 7:
            w.count(len(m.forgotten_topics_data))
            for forgotten_topics_data_item in w.each(m.forgotten_topics_data):
                _write_ForgottenTopic(w, forgotten_topics_data_item, v)
        if v == 11:
            w.string(m.rack_id)


class AbortedTransaction(Structure):
    """One element of responses.partitions.aborted_transactions in FetchResponse."""

    __slots__ = ("producer_id", "first_offset")

    def __init__(self, *, producer_id: int = 0, first_offset: int = 0) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset


def _read_AbortedTransaction(r: Reader, v: int) -> AbortedTransaction:
    m = AbortedTransaction.__new__(AbortedTransaction)
    if v >= 12:
        m.producer_id, m.first_offset = r.fixed(_fixed_qq)
        r.skip_tags()
    else:
        m.producer_id, m.first_offset = r.fixed(_fixed_qq)
    return m


def _write_AbortedTransaction(w: Writer, m: AbortedTransaction, v: int) -> None:
    if v >= 12:
        w.buf += _fixed_qq.pack(m.producer_id, m.first_offset)
        w.uvarint(0)
    else:
        w.buf += _fixed_qq.pack(m.producer_id, m.first_offset)


class EpochEndOffset(Structure):
    """The value of responses.partitions.diverging_epoch in FetchResponse."""

    __slots__ = ("epoch", "end_offset")

    def __init__(self, *, epoch: int = -1, end_offset: int = -1) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset


def _read_EpochEndOffset(r: Reader, v: int) -> EpochEndOffset:
    m = EpochEndOffset.__new__(EpochEndOffset)
    m.epoch, m.end_offset = r.fixed(_fixed_iq)
    r.skip_tags()
    return m


def _write_EpochEndOffset(w: Writer, m: EpochEndOffset, v: int) -> None:
    w.buf += _fixed_iq.pack(m.epoch, m.end_offset)
    w.uvarint(0)


class LeaderIdAndEpoch(Structure):
    """The value of responses.partitions.current_leader in FetchResponse."""

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


class SnapshotId(Structure):
    """The value of responses.partitions.snapshot_id in FetchResponse."""

    __slots__ = ("end_offset", "epoch")

    def __init__(self, *, end_offset: int = -1, epoch: int = -1) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


def _read_SnapshotId(r: Reader, v: int) -> SnapshotId:
    m = SnapshotId.__new__(SnapshotId)
    m.end_offset, m.epoch = r.fixed(_fixed_qi)
    r.skip_tags()
    return m


def _write_SnapshotId(w: Writer, m: SnapshotId, v: int) -> None:
    w.buf += _fixed_qi.pack(m.end_offset, m.epoch)
    w.uvarint(0)


class PartitionData(Structure):
    """One element of responses.partitions in FetchResponse."""

    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,
        preferred_read_replica: int = -1,
        records: Buffer | None = None,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.aborted_transactions: list[AbortedTransaction] | None = (
            [] if aborted_transactions is EMPTY else aborted_transactions
        )
        self.preferred_read_replica: int = preferred_read_replica
        self.records: Buffer | None = records
        self.diverging_epoch: EpochEndOffset = EpochEndOffset() if diverging_epoch is None else diverging_epoch
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id


def _read_PartitionData(r: Reader, v: int) -> PartitionData:
    m = PartitionData.__new__(PartitionData)
    if v >= 12:
        m.partition_index, m.error_code, m.high_watermark, m.last_stable_offset, m.log_start_offset = r.fixed(
            _fixed_ihqqq
        )
        m.aborted_transactions = (
            None if (n := r.compact_nullable_count(17)) < 0 else [_read_AbortedTransaction(r, v) for _ in r.each(n)]
        )
        m.preferred_read_replica = r.int32()
        m.records = r.compact_nullable_records()
        m.diverging_epoch = EpochEndOffset()
        m.current_leader = LeaderIdAndEpoch()
        m.snapshot_id = SnapshotId()
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0:
                m.diverging_epoch = _read_EpochEndOffset(r, v)
            elif tag == 1:
                m.current_leader = _read_LeaderIdAndEpoch(r, v)
            elif tag == 2:
                m.snapshot_id = _read_SnapshotId(r, v)
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.partition_index, m.error_code, m.high_watermark, m.last_stable_offset = r.fixed(_fixed_ihqq)
        m.log_start_offset = r.int64() if v >= 5 else -1
        m.aborted_transactions = (
            None if (n := r.nullable_count(16)) < 0 else [_read_AbortedTransaction(r, v) for _ in r.each(n)]
        )
        m.preferred_read_replica = r.int32() if v == 11 else -1
        m.records = r.nullable_records()
        m.diverging_epoch = EpochEndOffset()
        m.current_leader = LeaderIdAndEpoch()
        m.snapshot_id = SnapshotId()
    return m


def _write_PartitionData(w: Writer, m: PartitionData, v: int) -> None:
    if v >= 12:
        w.buf += _fixed_ihqqq.pack(
            m.partition_index, m.error_code, m.high_watermark, m.last_stable_offset, m.log_start_offset
        )
        if m.aborted_transactions is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.aborted_transactions))
            for aborted_transaction in w.each(m.aborted_transactions):
                _write_AbortedTransaction(w, aborted_transaction, v)
        w.int32(m.preferred_read_replica)
        w.compact_nullable_records(m.records)
        tags: list[tuple[int, Writer]] = []
        if m.diverging_epoch != EpochEndOffset():
            t = Writer()
            _write_EpochEndOffset(t, m.diverging_epoch, v)
            tags.append((0, t))
        if m.current_leader != LeaderIdAndEpoch():
            t = Writer()
            _write_LeaderIdAndEpoch(t, m.current_leader, v)
            tags.append((1, t))
        if m.snapshot_id != SnapshotId():
            t = Writer()
            _write_SnapshotId(t, m.snapshot_id, v)
            tags.append((2, t))
        w.tags(tags)
    else:
        w.buf += _fixed_ihqq.pack(m.partition_index, m.error_code, m.high_watermark, m.last_stable_offset)
        if v >= 5:
            w.int64(m.log_start_offset)
        if m.aborted_transactions is None:
            w.count(-1)
        else:
            w.count(len(m.aborted_transactions))
            for aborted_transaction in w.each(m.aborted_transactions):
                _write_AbortedTransaction(w, aborted_transaction, v)
        if v == 11:
            w.int32(m.preferred_read_replica)
        w.nullable_records(m.records)


class FetchableTopicResponse(Structure):
    """One element of responses in FetchResponse."""

    __slots__ = ("topic_id", "topic", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, topic: str = "", partitions: list[PartitionData] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic: str = topic
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions


def _read_FetchableTopicResponse(r: Reader, v: int) -> FetchableTopicResponse:
    m = FetchableTopicResponse.__new__(FetchableTopicResponse)
    if v >= 12:
        m.topic_id = r.uuid() if v >= 13 else ZERO_UUID
        m.topic = r.compact_string() if v == 12 else ""
        m.partitions = [_read_PartitionData(r, v) for _ in r.each(r.compact_count(37))]
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partitions = [_read_PartitionData(r, v) for _ in r.each(r.count(30))]
        m.topic_id = ZERO_UUID
    return m


def _write_FetchableTopicResponse(w: Writer, m: FetchableTopicResponse, v: int) -> None:
    if v >= 12:
        if v >= 13:
            w.uuid(m.topic_id)
        if v == 12:
            w.compact_string(m.topic)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_PartitionData(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_PartitionData(w, partition, v)


class NodeEndpoint(Structure):
    """One element of node_endpoints in FetchResponse."""

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


class FetchResponse(Message):
    """FetchResponse, a response: versions 4 to 18, flexible from 12."""

    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")
    API_KEY: ClassVar[int] = 1
    MIN_VERSION: ClassVar[int] = 4
    MAX_VERSION: ClassVar[int] = 18
    FLEXIBLE_FROM: ClassVar[int | None] = 12

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints

    def write(self, w: Writer, version: int) -> None:
        _write_FetchResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> FetchResponse:
        return _read_FetchResponse(r, version)


def _read_FetchResponse(r: Reader, v: int) -> FetchResponse:
    m = FetchResponse.__new__(FetchResponse)
    if v >= 12:
        m.throttle_time_ms, m.error_code, m.session_id = r.fixed(_fixed_ihi)
        m.responses = [_read_FetchableTopicResponse(r, v) for _ in r.each(r.compact_count(2))]
        m.node_endpoints = []
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0 and v >= 16:
                m.node_endpoints = [_read_NodeEndpoint(r, v) for _ in r.each(r.compact_count(11))]
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.throttle_time_ms = r.int32()
        m.error_code = r.int16() if v >= 7 else 0
        m.session_id = r.int32() if v >= 7 else 0
        m.responses = [_read_FetchableTopicResponse(r, v) for _ in r.each(r.count(6))]
        m.node_endpoints = []
    return m


def _write_FetchResponse(w: Writer, m: FetchResponse, v: int) -> None:
    if v >= 12:
        w.buf += _fixed_ihi.pack(m.throttle_time_ms, m.error_code, m.session_id)
        w.compact_count(len(m.responses))
        for response in w.each(m.responses):
            _write_FetchableTopicResponse(w, response, v)
        tags: list[tuple[int, Writer]] = []
        if m.node_endpoints and v >= 16:
            t = Writer()
            t.compact_count(len(m.node_endpoints))
            for node_endpoint in t.each(m.node_endpoints):
                _write_NodeEndpoint(t, node_endpoint, v)
            tags.append((0, t))
        w.tags(tags)
    else:
        w.int32(m.throttle_time_ms)
        if v >= 7:
            w.int16(m.error_code)
            w.int32(m.session_id)
        w.count(len(m.responses))
        for response in w.each(m.responses):
            _write_FetchableTopicResponse(w, response, v)
