"""CreateTopics (API 19). Generated from schema/create_topics.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class CreatableReplicaAssignment(Structure):
    """One element of topics.assignments in CreateTopicsRequest."""

    __slots__ = ("partition_index", "broker_ids")

    def __init__(self, *, partition_index: int = 0, broker_ids: list[int] = EMPTY) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids


def _read_CreatableReplicaAssignment(r: Reader, v: int) -> CreatableReplicaAssignment:
    m = CreatableReplicaAssignment.__new__(CreatableReplicaAssignment)
    if v >= 5:
        m.partition_index = r.int32()
        m.broker_ids = r.compact_int32_array()
        r.skip_tags()
    else:
        m.partition_index = r.int32()
        m.broker_ids = r.int32_array()
    return m


def _write_CreatableReplicaAssignment(w: Writer, m: CreatableReplicaAssignment, v: int) -> None:
    if v >= 5:
        w.int32(m.partition_index)
        w.compact_int32_array(m.broker_ids)
        w.uvarint(0)
    else:
        w.int32(m.partition_index)
        w.int32_array(m.broker_ids)


class CreatableTopicConfig(Structure):
    """One element of topics.configs in CreateTopicsRequest."""

    __slots__ = ("name", "value")

    def __init__(self, *, name: str = "", value: str | None = "") -> None:
        self.name: str = name
        self.value: str | None = value


def _read_CreatableTopicConfig(r: Reader, v: int) -> CreatableTopicConfig:
    m = CreatableTopicConfig.__new__(CreatableTopicConfig)
    if v >= 5:
        m.name = r.compact_string()
        m.value = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.name = r.string()
        m.value = r.nullable_string()
    return m


def _write_CreatableTopicConfig(w: Writer, m: CreatableTopicConfig, v: int) -> None:
    if v >= 5:
        w.compact_string(m.name)
        w.compact_nullable_string(m.value)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.nullable_string(m.value)


class CreatableTopic(Structure):
    """One element of topics in CreateTopicsRequest."""

    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY,
        configs: list[CreatableTopicConfig] = EMPTY,
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is EMPTY else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is EMPTY else configs


def _read_CreatableTopic(r: Reader, v: int) -> CreatableTopic:
    m = CreatableTopic.__new__(CreatableTopic)
    if v >= 5:
        m.name = r.compact_string()
        m.num_partitions, m.replication_factor = r.fixed(_fixed_ih)
        m.assignments = [_read_CreatableReplicaAssignment(r, v) for _ in r.each(r.compact_count(6))]
        m.configs = [_read_CreatableTopicConfig(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.num_partitions, m.replication_factor = r.fixed(_fixed_ih)
        m.assignments = [_read_CreatableReplicaAssignment(r, v) for _ in r.each(r.count(8))]
        m.configs = [_read_CreatableTopicConfig(r, v) for _ in r.each(r.count(4))]
    return m


def _write_CreatableTopic(w: Writer, m: CreatableTopic, v: int) -> None:
    if v >= 5:
        w.compact_string(m.name)
        w.buf += _fixed_ih.pack(m.num_partitions, m.replication_factor)
        w.compact_count(len(m.assignments))
        for assignment in w.each(m.assignments):
            _write_CreatableReplicaAssignment(w, assignment, v)
        w.compact_count(len(m.configs))
        for config in w.each(m.configs):
            _write_CreatableTopicConfig(w, config, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.buf += _fixed_ih.pack(m.num_partitions, m.replication_factor)
        w.count(len(m.assignments))
        for assignment in w.each(m.assignments):
            _write_CreatableReplicaAssignment(w, assignment, v)
        w.count(len(m.configs))
        for config in w.each(m.configs):
            _write_CreatableTopicConfig(w, config, v)


class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    """CreateTopicsRequest, a request: versions 2 to 7, flexible from 5."""

    __slots__ = ("topics", "timeout_ms", "validate_only")
    API_KEY: ClassVar[int] = 19
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int | None] = 5

    def __init__(
        self, *, topics: list[CreatableTopic] = EMPTY, timeout_ms: int = 60000, validate_only: bool = False
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only

    def write(self, w: Writer, version: int) -> None:
        _write_CreateTopicsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreateTopicsRequest:
        return _read_CreateTopicsRequest(r, version)


def _read_CreateTopicsRequest(r: Reader, v: int) -> CreateTopicsRequest:
    m = CreateTopicsRequest.__new__(CreateTopicsRequest)
    if v >= 5:
        m.topics = [_read_CreatableTopic(r, v) for _ in r.each(r.compact_count(10))]
        m.timeout_ms = r.int32()
        m.validate_only = r.boolean()
        r.skip_tags()
    else:
        m.topics = [_read_CreatableTopic(r, v) for _ in r.each(r.count(16))]
        m.timeout_ms = r.int32()
        m.validate_only = r.boolean()
    return m


def _write_CreateTopicsRequest(w: Writer, m: CreateTopicsRequest, v: int) -> None:
    if v >= 5:
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_CreatableTopic(w, topic, v)
        w.int32(m.timeout_ms)
        w.boolean(m.validate_only)
        w.uvarint(0)
    else:
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_CreatableTopic(w, topic, v)
        w.int32(m.timeout_ms)
        w.boolean(m.validate_only)


class CreatableTopicConfigs(Structure):
    """One element of topics.configs in CreateTopicsResponse."""

    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive


def _read_CreatableTopicConfigs(r: Reader, v: int) -> CreatableTopicConfigs:
    m = CreatableTopicConfigs.__new__(CreatableTopicConfigs)
    m.name = r.compact_string()
    m.value = r.compact_nullable_string()
    m.read_only = r.boolean()
    m.config_source = r.int8()
    m.is_sensitive = r.boolean()
    r.skip_tags()
    return m


def _write_CreatableTopicConfigs(w: Writer, m: CreatableTopicConfigs, v: int) -> None:
    w.compact_string(m.name)
    w.compact_nullable_string(m.value)
    w.boolean(m.read_only)
    w.int8(m.config_source)
    w.boolean(m.is_sensitive)
    w.uvarint(0)


class CreatableTopicResult(Structure):
    """One element of topics in CreateTopicsResponse."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "num_partitions",
        "replication_factor",
        "configs",
        "topic_config_error_code",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = EMPTY,
        topic_config_error_code: int = 0,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if configs is EMPTY else configs
        self.topic_config_error_code: int = topic_config_error_code


def _read_CreatableTopicResult(r: Reader, v: int) -> CreatableTopicResult:
    m = CreatableTopicResult.__new__(CreatableTopicResult)
    if v >= 5:
        m.name = r.compact_string()
        m.topic_id = r.uuid() if v == 7 else ZERO_UUID
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.num_partitions, m.replication_factor = r.fixed(_fixed_ih)
        m.configs = (
            None if (n := r.compact_nullable_count(6)) < 0 else [_read_CreatableTopicConfigs(r, v) for _ in r.each(n)]
        )
        m.topic_config_error_code = 0
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0:
                m.topic_config_error_code = r.int16()
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.name = r.string()
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.topic_id = ZERO_UUID
        m.num_partitions = -1
        m.replication_factor = -1
        m.configs = []
        m.topic_config_error_code = 0
    return m


def _write_CreatableTopicResult(w: Writer, m: CreatableTopicResult, v: int) -> None:
    if v >= 5:
        w.compact_string(m.name)
        if v == 7:
            w.uuid(m.topic_id)
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.buf += _fixed_ih.pack(m.num_partitions, m.replication_factor)
        if m.configs is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.configs))
            for config in w.each(m.configs):
                _write_CreatableTopicConfigs(w, config, v)
        tags: list[tuple[int, Writer]] = []
        if m.topic_config_error_code != 0:
            t = Writer()
            t.int16(m.topic_config_error_code)
            tags.append((0, t))
        w.tags(tags)
    else:
        w.string(m.name)
        w.int16(m.error_code)
        w.nullable_string(m.error_message)


class CreateTopicsResponse(Message):
    """CreateTopicsResponse, a response: versions 2 to 7, flexible from 5."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar[int] = 19
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int | None] = 5

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[CreatableTopicResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_CreateTopicsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> CreateTopicsResponse:
        return _read_CreateTopicsResponse(r, version)


def _read_CreateTopicsResponse(r: Reader, v: int) -> CreateTopicsResponse:
    m = CreateTopicsResponse.__new__(CreateTopicsResponse)
    if v >= 5:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_CreatableTopicResult(r, v) for _ in r.each(r.compact_count(12))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.topics = [_read_CreatableTopicResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_CreateTopicsResponse(w: Writer, m: CreateTopicsResponse, v: int) -> None:
    if v >= 5:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.topics))
        for topic in w.each(m.topics):
            _write_CreatableTopicResult(w, topic, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.topics))
        for topic in w.each(m.topics):
            _write_CreatableTopicResult(w, topic, v)
