"""ShareGroupHeartbeat (API 76). Generated from schema/share_group_heartbeat.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")


class ShareGroupHeartbeatRequest(Request["ShareGroupHeartbeatResponse"]):
    """ShareGroupHeartbeatRequest, a request: version 1, flexible from 0."""

    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")
    API_KEY: ClassVar[int] = 76
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.rack_id: str | None = rack_id
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupHeartbeatRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupHeartbeatRequest:
        return _read_ShareGroupHeartbeatRequest(r, version)


def _read_ShareGroupHeartbeatRequest(r: Reader, v: int) -> ShareGroupHeartbeatRequest:
    m = ShareGroupHeartbeatRequest.__new__(ShareGroupHeartbeatRequest)
    m.group_id = r.compact_string()
    m.member_id = r.compact_string()
    m.member_epoch = r.int32()
    m.rack_id = r.compact_nullable_string()
    m.subscribed_topic_names = (
        None if (n := r.compact_nullable_count(1)) < 0 else [r.compact_string() for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_ShareGroupHeartbeatRequest(w: Writer, m: ShareGroupHeartbeatRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_string(m.member_id)
    w.int32(m.member_epoch)
    w.compact_nullable_string(m.rack_id)
    if m.subscribed_topic_names is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.subscribed_topic_names))
        for subscribed_topic_name in w.each(m.subscribed_topic_names):
            w.compact_string(subscribed_topic_name)
    w.uvarint(0)


class ShareGroupTopicPartitions(Structure):
    """One element of assignment.topic_partitions in ShareGroupHeartbeatResponse."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ShareGroupTopicPartitions(r: Reader, v: int) -> ShareGroupTopicPartitions:
    m = ShareGroupTopicPartitions.__new__(ShareGroupTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ShareGroupTopicPartitions(w: Writer, m: ShareGroupTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ShareGroupAssignment(Structure):
    """The value of assignment in ShareGroupHeartbeatResponse."""

    __slots__ = ("topic_partitions",)

    def __init__(self, *, topic_partitions: list[ShareGroupTopicPartitions] = EMPTY) -> None:
        self.topic_partitions: list[ShareGroupTopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions


def _read_ShareGroupAssignment(r: Reader, v: int) -> ShareGroupAssignment:
    m = ShareGroupAssignment.__new__(ShareGroupAssignment)
    m.topic_partitions = [_read_ShareGroupTopicPartitions(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareGroupAssignment(w: Writer, m: ShareGroupAssignment, v: int) -> None:
    w.compact_count(len(m.topic_partitions))
    for topic_partition in w.each(m.topic_partitions):
        _write_ShareGroupTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class ShareGroupHeartbeatResponse(Message):
    """ShareGroupHeartbeatResponse, a response: version 1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    API_KEY: ClassVar[int] = 76
    MIN_VERSION: ClassVar[int] = 1
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
        assignment: ShareGroupAssignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: ShareGroupAssignment | None = assignment

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupHeartbeatResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupHeartbeatResponse:
        return _read_ShareGroupHeartbeatResponse(r, version)


def _read_ShareGroupHeartbeatResponse(r: Reader, v: int) -> ShareGroupHeartbeatResponse:
    m = ShareGroupHeartbeatResponse.__new__(ShareGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.member_id = r.compact_nullable_string()
    m.member_epoch, m.heartbeat_interval_ms = r.fixed(_fixed_ii)
    m.assignment = _read_ShareGroupAssignment(r, v) if r.int8() >= 0 else None
    r.skip_tags()
    return m


def _write_ShareGroupHeartbeatResponse(w: Writer, m: ShareGroupHeartbeatResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_nullable_string(m.member_id)
    w.buf += _fixed_ii.pack(m.member_epoch, m.heartbeat_interval_ms)
    if m.assignment is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_ShareGroupAssignment(w, m.assignment, v)
    w.uvarint(0)
