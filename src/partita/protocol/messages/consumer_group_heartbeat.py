"""ConsumerGroupHeartbeat (API 68). Generated from schema/consumer_group_heartbeat.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")


class ConsumerGroupHeartbeatRequestTopicPartitions(Structure):
    """One element of topic_partitions in ConsumerGroupHeartbeatRequest."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ConsumerGroupHeartbeatRequestTopicPartitions(
    r: Reader, v: int
) -> ConsumerGroupHeartbeatRequestTopicPartitions:
    m = ConsumerGroupHeartbeatRequestTopicPartitions.__new__(ConsumerGroupHeartbeatRequestTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ConsumerGroupHeartbeatRequestTopicPartitions(
    w: Writer, m: ConsumerGroupHeartbeatRequestTopicPartitions, v: int
) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"]):
    """ConsumerGroupHeartbeatRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )
    API_KEY: ClassVar[int] = 68
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.server_assignor: str | None = server_assignor
        self.topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = topic_partitions

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupHeartbeatRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupHeartbeatRequest:
        return _read_ConsumerGroupHeartbeatRequest(r, version)


def _read_ConsumerGroupHeartbeatRequest(r: Reader, v: int) -> ConsumerGroupHeartbeatRequest:
    m = ConsumerGroupHeartbeatRequest.__new__(ConsumerGroupHeartbeatRequest)
    m.group_id = r.compact_string()
    m.member_id = r.compact_string()
    m.member_epoch = r.int32()
    m.instance_id = r.compact_nullable_string()
    m.rack_id = r.compact_nullable_string()
    m.rebalance_timeout_ms = r.int32()
    m.subscribed_topic_names = (
        None if (n := r.compact_nullable_count(1)) < 0 else [r.compact_string() for _ in r.each(n)]
    )
    m.subscribed_topic_regex = r.compact_nullable_string() if v == 1 else None
    m.server_assignor = r.compact_nullable_string()
    m.topic_partitions = (
        None
        if (n := r.compact_nullable_count(18)) < 0
        else [_read_ConsumerGroupHeartbeatRequestTopicPartitions(r, v) for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_ConsumerGroupHeartbeatRequest(w: Writer, m: ConsumerGroupHeartbeatRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_string(m.member_id)
    w.int32(m.member_epoch)
    w.compact_nullable_string(m.instance_id)
    w.compact_nullable_string(m.rack_id)
    w.int32(m.rebalance_timeout_ms)
    if m.subscribed_topic_names is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.subscribed_topic_names))
        for subscribed_topic_name in w.each(m.subscribed_topic_names):
            w.compact_string(subscribed_topic_name)
    if v == 1:
        w.compact_nullable_string(m.subscribed_topic_regex)
    w.compact_nullable_string(m.server_assignor)
    if m.topic_partitions is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.topic_partitions))
        for topic_partition in w.each(m.topic_partitions):
            _write_ConsumerGroupHeartbeatRequestTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class ConsumerGroupHeartbeatTopicPartitions(Structure):
    """One element of assignment.topic_partitions in ConsumerGroupHeartbeatResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ConsumerGroupHeartbeatTopicPartitions(r: Reader, v: int) -> ConsumerGroupHeartbeatTopicPartitions:
    m = ConsumerGroupHeartbeatTopicPartitions.__new__(ConsumerGroupHeartbeatTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ConsumerGroupHeartbeatTopicPartitions(w: Writer, m: ConsumerGroupHeartbeatTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ConsumerGroupHeartbeatAssignment(Structure):
    """The value of assignment in ConsumerGroupHeartbeatResponse."""

    __slots__ = ("topic_partitions",)

    def __init__(self, *, topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = EMPTY) -> None:
        self.topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = (
            [] if topic_partitions is EMPTY else topic_partitions
        )


def _read_ConsumerGroupHeartbeatAssignment(r: Reader, v: int) -> ConsumerGroupHeartbeatAssignment:
    m = ConsumerGroupHeartbeatAssignment.__new__(ConsumerGroupHeartbeatAssignment)
    m.topic_partitions = [_read_ConsumerGroupHeartbeatTopicPartitions(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ConsumerGroupHeartbeatAssignment(w: Writer, m: ConsumerGroupHeartbeatAssignment, v: int) -> None:
    w.compact_count(len(m.topic_partitions))
    for topic_partition in w.each(m.topic_partitions):
        _write_ConsumerGroupHeartbeatTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class ConsumerGroupHeartbeatResponse(Message):
    """ConsumerGroupHeartbeatResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    API_KEY: ClassVar[int] = 68
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ConsumerGroupHeartbeatAssignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: ConsumerGroupHeartbeatAssignment | None = assignment

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupHeartbeatResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupHeartbeatResponse:
        return _read_ConsumerGroupHeartbeatResponse(r, version)


def _read_ConsumerGroupHeartbeatResponse(r: Reader, v: int) -> ConsumerGroupHeartbeatResponse:
    m = ConsumerGroupHeartbeatResponse.__new__(ConsumerGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.member_id = r.compact_nullable_string()
    m.member_epoch, m.heartbeat_interval_ms = r.fixed(_fixed_ii)
    m.assignment = _read_ConsumerGroupHeartbeatAssignment(r, v) if r.int8() >= 0 else None
    r.skip_tags()
    return m


def _write_ConsumerGroupHeartbeatResponse(w: Writer, m: ConsumerGroupHeartbeatResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_nullable_string(m.member_id)
    w.buf += _fixed_ii.pack(m.member_epoch, m.heartbeat_interval_ms)
    if m.assignment is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_ConsumerGroupHeartbeatAssignment(w, m.assignment, v)
    w.uvarint(0)
