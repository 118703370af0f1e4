"""ConsumerGroupDescribe (API 69). Generated from schema/consumer_group_describe.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ii = Struct(">ii")


class ConsumerGroupDescribeRequest(Request["ConsumerGroupDescribeResponse"]):
    """ConsumerGroupDescribeRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("group_ids", "include_authorized_operations")
    API_KEY: ClassVar[int] = 69
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_ids: list[str] = EMPTY, include_authorized_operations: bool = False) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupDescribeRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupDescribeRequest:
        return _read_ConsumerGroupDescribeRequest(r, version)


def _read_ConsumerGroupDescribeRequest(r: Reader, v: int) -> ConsumerGroupDescribeRequest:
    m = ConsumerGroupDescribeRequest.__new__(ConsumerGroupDescribeRequest)
    m.group_ids = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.include_authorized_operations = r.boolean()
    r.skip_tags()
    return m


def _write_ConsumerGroupDescribeRequest(w: Writer, m: ConsumerGroupDescribeRequest, v: int) -> None:
    w.compact_count(len(m.group_ids))
    for group_id in w.each(m.group_ids):
        w.compact_string(group_id)
    w.boolean(m.include_authorized_operations)
    w.uvarint(0)


class DescribedTopicPartitions(Structure):
    """One element of groups.members.assignment.topic_partitions in ConsumerGroupDescribeResponse."""

    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_DescribedTopicPartitions(r: Reader, v: int) -> DescribedTopicPartitions:
    m = DescribedTopicPartitions.__new__(DescribedTopicPartitions)
    m.topic_id = r.uuid()
    m.topic_name = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_DescribedTopicPartitions(w: Writer, m: DescribedTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_string(m.topic_name)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class DescribedAssignment(Structure):
    """The value of groups.members.assignment in ConsumerGroupDescribeResponse."""

    __slots__ = ("topic_partitions",)

    def __init__(self, *, topic_partitions: list[DescribedTopicPartitions] = EMPTY) -> None:
        self.topic_partitions: list[DescribedTopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions


def _read_DescribedAssignment(r: Reader, v: int) -> DescribedAssignment:
    m = DescribedAssignment.__new__(DescribedAssignment)
    m.topic_partitions = [_read_DescribedTopicPartitions(r, v) for _ in r.each(r.compact_count(19))]
    r.skip_tags()
    return m


def _write_DescribedAssignment(w: Writer, m: DescribedAssignment, v: int) -> None:
    w.compact_count(len(m.topic_partitions))
    for topic_partition in w.each(m.topic_partitions):
        _write_DescribedTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class DescribedConsumerGroupMember(Structure):
    """One element of groups.members in ConsumerGroupDescribeResponse."""

    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = None,
        assignment: DescribedAssignment | None = None,
        target_assignment: DescribedAssignment | None = None,
        member_type: int = -1,
    ) -> None:
        self.member_id: str = member_id
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.assignment: DescribedAssignment = DescribedAssignment() if assignment is None else assignment
        self.target_assignment: DescribedAssignment = (
            DescribedAssignment() if target_assignment is None else target_assignment
        )
        self.member_type: int = member_type


def _read_DescribedConsumerGroupMember(r: Reader, v: int) -> DescribedConsumerGroupMember:
    m = DescribedConsumerGroupMember.__new__(DescribedConsumerGroupMember)
    m.member_id = r.compact_string()
    m.instance_id = r.compact_nullable_string()
    m.rack_id = r.compact_nullable_string()
    m.member_epoch = r.int32()
    m.client_id = r.compact_string()
    m.client_host = r.compact_string()
    m.subscribed_topic_names = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.subscribed_topic_regex = r.compact_nullable_string()
    m.assignment = _read_DescribedAssignment(r, v)
    m.target_assignment = _read_DescribedAssignment(r, v)
    m.member_type = r.int8() if v == 1 else -1
    r.skip_tags()
    return m


def _write_DescribedConsumerGroupMember(w: Writer, m: DescribedConsumerGroupMember, v: int) -> None:
    w.compact_string(m.member_id)
    w.compact_nullable_string(m.instance_id)
    w.compact_nullable_string(m.rack_id)
    w.int32(m.member_epoch)
    w.compact_string(m.client_id)
    w.compact_string(m.client_host)
    w.compact_count(len(m.subscribed_topic_names))
    for subscribed_topic_name in w.each(m.subscribed_topic_names):
        w.compact_string(subscribed_topic_name)
    w.compact_nullable_string(m.subscribed_topic_regex)
    _write_DescribedAssignment(w, m.assignment, v)
    _write_DescribedAssignment(w, m.target_assignment, v)
    if v == 1:
        w.int8(m.member_type)
    w.uvarint(0)


class DescribedConsumerGroup(Structure):
    """One element of groups in ConsumerGroupDescribeResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[DescribedConsumerGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[DescribedConsumerGroupMember] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations


def _read_DescribedConsumerGroup(r: Reader, v: int) -> DescribedConsumerGroup:
    m = DescribedConsumerGroup.__new__(DescribedConsumerGroup)
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    m.group_id = r.compact_string()
    m.group_state = r.compact_string()
    m.group_epoch, m.assignment_epoch = r.fixed(_fixed_ii)
    m.assignor_name = r.compact_string()
    m.members = [_read_DescribedConsumerGroupMember(r, v) for _ in r.each(r.compact_count(16))]
    m.authorized_operations = r.int32()
    r.skip_tags()
    return m


def _write_DescribedConsumerGroup(w: Writer, m: DescribedConsumerGroup, v: int) -> None:
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_string(m.group_id)
    w.compact_string(m.group_state)
    w.buf += _fixed_ii.pack(m.group_epoch, m.assignment_epoch)
    w.compact_string(m.assignor_name)
    w.compact_count(len(m.members))
    for member in w.each(m.members):
        _write_DescribedConsumerGroupMember(w, member, v)
    w.int32(m.authorized_operations)
    w.uvarint(0)


class ConsumerGroupDescribeResponse(Message):
    """ConsumerGroupDescribeResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY: ClassVar[int] = 69
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, groups: list[DescribedConsumerGroup] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedConsumerGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupDescribeResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupDescribeResponse:
        return _read_ConsumerGroupDescribeResponse(r, version)


def _read_ConsumerGroupDescribeResponse(r: Reader, v: int) -> ConsumerGroupDescribeResponse:
    m = ConsumerGroupDescribeResponse.__new__(ConsumerGroupDescribeResponse)
    m.throttle_time_ms = r.int32()
    m.groups = [_read_DescribedConsumerGroup(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_ConsumerGroupDescribeResponse(w: Writer, m: ConsumerGroupDescribeResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.groups))
    for group in w.each(m.groups):
        _write_DescribedConsumerGroup(w, group, v)
    w.uvarint(0)
