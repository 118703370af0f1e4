"""OffsetFetch (API 9). Generated from schema/offset_fetch.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_iq = Struct(">iq")
_fixed_iqi = Struct(">iqi")


class OffsetFetchRequestTopics(Structure):
    """One element of groups.topics in OffsetFetchRequest."""

    __slots__ = ("topic_id", "name", "partition_indexes")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


def _read_OffsetFetchRequestTopics(r: Reader, v: int) -> OffsetFetchRequestTopics:
    m = OffsetFetchRequestTopics.__new__(OffsetFetchRequestTopics)
    m.topic_id = r.uuid() if v == 10 else ZERO_UUID
    m.name = r.compact_string() if v <= 9 else ""
    m.partition_indexes = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_OffsetFetchRequestTopics(w: Writer, m: OffsetFetchRequestTopics, v: int) -> None:
    if v == 10:
        w.uuid(m.topic_id)
    if v <= 9:
        w.compact_string(m.name)
    w.compact_int32_array(m.partition_indexes)
    w.uvarint(0)


class OffsetFetchRequestGroup(Structure):
    """One element of groups in OffsetFetchRequest."""

    __slots__ = ("group_id", "member_id", "member_epoch", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if topics is EMPTY else topics


def _read_OffsetFetchRequestGroup(r: Reader, v: int) -> OffsetFetchRequestGroup:
    m = OffsetFetchRequestGroup.__new__(OffsetFetchRequestGroup)
    m.group_id = r.compact_string()
    m.member_id = r.compact_nullable_string() if v >= 9 else None
    m.member_epoch = r.int32() if v >= 9 else -1
    m.topics = (
        None if (n := r.compact_nullable_count(2)) < 0 else [_read_OffsetFetchRequestTopics(r, v) for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_OffsetFetchRequestGroup(w: Writer, m: OffsetFetchRequestGroup, v: int) -> None:
    w.compact_string(m.group_id)
    if v >= 9:
        w.compact_nullable_string(m.member_id)
        w.int32(m.member_epoch)
    if m.topics is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetFetchRequestTopics(w, topic, v)
    w.uvarint(0)


class OffsetFetchRequestTopic(Structure):
    """One element of topics in OffsetFetchRequest."""

    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


def _read_OffsetFetchRequestTopic(r: Reader, v: int) -> OffsetFetchRequestTopic:
    m = OffsetFetchRequestTopic.__new__(OffsetFetchRequestTopic)
    if v >= 6:
        m.name = r.compact_string()
        m.partition_indexes = r.compact_int32_array()
        r.skip_tags()
    else:
        m.name = r.string()
        m.partition_indexes = r.int32_array()
    return m


def _write_OffsetFetchRequestTopic(w: Writer, m: OffsetFetchRequestTopic, v: int) -> None:
    if v >= 6:
        w.compact_string(m.name)
        w.compact_int32_array(m.partition_indexes)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.int32_array(m.partition_indexes)


class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    """OffsetFetchRequest, a request: versions 1 to 10, flexible from 6."""

    __slots__ = ("groups", "group_id", "topics", "require_stable")
    API_KEY: ClassVar[int] = 9
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 6

    def __init__(
        self,
        *,
        groups: list[OffsetFetchRequestGroup] = EMPTY,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,
        require_stable: bool = False,
    ) -> None:
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is EMPTY else groups
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if topics is EMPTY else topics
        self.require_stable: bool = require_stable

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetFetchRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetFetchRequest:
        return _read_OffsetFetchRequest(r, version)


def _read_OffsetFetchRequest(r: Reader, v: int) -> OffsetFetchRequest:
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    if v >= 6:
        m.groups = [_read_OffsetFetchRequestGroup(r, v) for _ in r.each(r.compact_count(3))] if v >= 8 else []
        m.group_id = r.compact_string() if v <= 7 else ""
        m.topics = (
            (
                None
                if (n := r.compact_nullable_count(3)) < 0
                else [_read_OffsetFetchRequestTopic(r, v) for _ in r.each(n)]
            )
            if v <= 7
            else []
        )
        m.require_stable = r.boolean() if v >= 7 else False
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.topics = (
            (None if (n := r.nullable_count(6)) < 0 else [_read_OffsetFetchRequestTopic(r, v) for _ in r.each(n)])
            if v >= 2
            else [_read_OffsetFetchRequestTopic(r, v) for _ in r.each(r.count(6))]
        )
        m.groups = []
        m.require_stable = False
    return m


def _write_OffsetFetchRequest(w: Writer, m: OffsetFetchRequest, v: int) -> None:
    if v >= 6:
        if v >= 8:
            w.compact_count(len(m.groups))
            for group in w.each(m.groups):
                _write_OffsetFetchRequestGroup(w, group, v)
        if v <= 7:
            w.compact_string(m.group_id)
            if m.topics is None:
                w.compact_count(-1)
            else:
                w.compact_count(len(m.topics))
                for topic in w.each(m.topics):
                    _write_OffsetFetchRequestTopic(w, topic, v)
        if v >= 7:
            w.boolean(m.require_stable)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        if v >= 2:
            if m.topics is None:
                w.count(-1)
            else:
                w.count(len(m.topics))
                for topic in w.each(m.topics):
                    _write_OffsetFetchRequestTopic(w, topic, v)
        else:
            items = w.required(m.topics, "topics")
            w.count(len(items))
            for topic in w.each(items):
                _write_OffsetFetchRequestTopic(w, topic, v)


class OffsetFetchResponsePartitions(Structure):
    """One element of groups.topics.partitions in OffsetFetchResponse."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


def _read_OffsetFetchResponsePartitions(r: Reader, v: int) -> OffsetFetchResponsePartitions:
    m = OffsetFetchResponsePartitions.__new__(OffsetFetchResponsePartitions)
    m.partition_index, m.committed_offset, m.committed_leader_epoch = r.fixed(_fixed_iqi)
    m.metadata = r.compact_nullable_string()
    m.error_code = r.int16()
    r.skip_tags()
    return m


def _write_OffsetFetchResponsePartitions(w: Writer, m: OffsetFetchResponsePartitions, v: int) -> None:
    w.buf += _fixed_iqi.pack(m.partition_index, m.committed_offset, m.committed_leader_epoch)
    w.compact_nullable_string(m.metadata)
    w.int16(m.error_code)
    w.uvarint(0)


class OffsetFetchResponseTopics(Structure):
    """One element of groups.topics in OffsetFetchResponse."""

    __slots__ = ("topic_id", "name", "partitions")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, name: str = "", partitions: list[OffsetFetchResponsePartitions] = EMPTY
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is EMPTY else partitions


def _read_OffsetFetchResponseTopics(r: Reader, v: int) -> OffsetFetchResponseTopics:
    m = OffsetFetchResponseTopics.__new__(OffsetFetchResponseTopics)
    m.topic_id = r.uuid() if v == 10 else ZERO_UUID
    m.name = r.compact_string() if v <= 9 else ""
    m.partitions = [_read_OffsetFetchResponsePartitions(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_OffsetFetchResponseTopics(w: Writer, m: OffsetFetchResponseTopics, v: int) -> None:
    if v == 10:
        w.uuid(m.topic_id)
    if v <= 9:
        w.compact_string(m.name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_OffsetFetchResponsePartitions(w, partition, v)
    w.uvarint(0)


class OffsetFetchResponseGroup(Structure):
    """One element of groups in OffsetFetchResponse."""

    __slots__ = ("group_id", "topics", "error_code")

    def __init__(
        self, *, group_id: str = "", topics: list[OffsetFetchResponseTopics] = EMPTY, error_code: int = 0
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is EMPTY else topics
        self.error_code: int = error_code


def _read_OffsetFetchResponseGroup(r: Reader, v: int) -> OffsetFetchResponseGroup:
    m = OffsetFetchResponseGroup.__new__(OffsetFetchResponseGroup)
    m.group_id = r.compact_string()
    m.topics = [_read_OffsetFetchResponseTopics(r, v) for _ in r.each(r.compact_count(2))]
    m.error_code = r.int16()
    r.skip_tags()
    return m


def _write_OffsetFetchResponseGroup(w: Writer, m: OffsetFetchResponseGroup, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_OffsetFetchResponseTopics(w, topic, v)
    w.int16(m.error_code)
    w.uvarint(0)


class OffsetFetchResponsePartition(Structure):
    """One element of topics.partitions in OffsetFetchResponse."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


def _read_OffsetFetchResponsePartition(r: Reader, v: int) -> OffsetFetchResponsePartition:
    m = OffsetFetchResponsePartition.__new__(OffsetFetchResponsePartition)
    if v >= 6:
        m.partition_index, m.committed_offset, m.committed_leader_epoch = r.fixed(_fixed_iqi)
        m.metadata = r.compact_nullable_string()
        m.error_code = r.int16()
        r.skip_tags()
    else:
        m.partition_index, m.committed_offset = r.fixed(_fixed_iq)
        m.committed_leader_epoch = r.int32() if v == 5 else -1
        m.metadata = r.nullable_string()
        m.error_code = r.int16()
    return m


def _write_OffsetFetchResponsePartition(w: Writer, m: OffsetFetchResponsePartition, v: int) -> None:
    if v >= 6:
        w.buf += _fixed_iqi.pack(m.partition_index, m.committed_offset, m.committed_leader_epoch)
        w.compact_nullable_string(m.metadata)
        w.int16(m.error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_iq.pack(m.partition_index, m.committed_offset)
        if v == 5:
            w.int32(m.committed_leader_epoch)
        w.nullable_string(m.metadata)
        w.int16(m.error_code)


class OffsetFetchResponseTopic(Structure):
    """One element of topics in OffsetFetchResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[OffsetFetchResponsePartition] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is EMPTY else partitions


def _read_OffsetFetchResponseTopic(r: Reader, v: int) -> OffsetFetchResponseTopic:
    m = OffsetFetchResponseTopic.__new__(OffsetFetchResponseTopic)
    if v >= 6:
        m.name = r.compact_string()
        m.partitions = [_read_OffsetFetchResponsePartition(r, v) for _ in r.each(r.compact_count(20))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = [_read_OffsetFetchResponsePartition(r, v) for _ in r.each(r.count(16))]
    return m


def _write_OffsetFetchResponseTopic(w: Writer, m: OffsetFetchResponseTopic, v: int) -> None:
    if v >= 6:
        w.compact_string(m.name)
        w.compact_count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetFetchResponsePartition(w, partition, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.partitions))
        for partition in w.each(m.partitions):
            _write_OffsetFetchResponsePartition(w, partition, v)


class OffsetFetchResponse(Message):
    """OffsetFetchResponse, a response: versions 1 to 10, flexible from 6."""

    __slots__ = ("throttle_time_ms", "groups", "topics", "error_code")
    API_KEY: ClassVar[int] = 9
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = 6

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[OffsetFetchResponseGroup] = EMPTY,
        topics: list[OffsetFetchResponseTopic] = EMPTY,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is EMPTY else groups
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code

    def write(self, w: Writer, version: int) -> None:
        _write_OffsetFetchResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> OffsetFetchResponse:
        return _read_OffsetFetchResponse(r, version)


def _read_OffsetFetchResponse(r: Reader, v: int) -> OffsetFetchResponse:
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    if v >= 6:
        m.throttle_time_ms = r.int32()
        m.groups = [_read_OffsetFetchResponseGroup(r, v) for _ in r.each(r.compact_count(5))] if v >= 8 else []
        m.topics = [_read_OffsetFetchResponseTopic(r, v) for _ in r.each(r.compact_count(3))] if v <= 7 else []
        m.error_code = r.int16() if v <= 7 else 0
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 3 else 0
        m.topics = [_read_OffsetFetchResponseTopic(r, v) for _ in r.each(r.count(6))]
        m.error_code = r.int16() if v >= 2 else 0
        m.groups = []
    return m


def _write_OffsetFetchResponse(w: Writer, m: OffsetFetchResponse, v: int) -> None:
    if v >= 6:
        w.int32(m.throttle_time_ms)
        if v >= 8:
            w.compact_count(len(m.groups))
            for group in w.each(m.groups):
                _write_OffsetFetchResponseGroup(w, group, v)
        if v <= 7:
            w.compact_count(len(m.topics))
            for topic in w.each(m.topics):
                _write_OffsetFetchResponseTopic(w, topic, v)
            w.int16(m.error_code)
        w.uvarint(0)
    else:
        if v >= 3:
            w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_OffsetFetchResponseTopic(w, topic, v)
        if v >= 2:
            w.int16(m.error_code)
