"""ShareGroupDescribe (API 77). Generated from schema/share_group_describe.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Request, Structure, Writer

_fixed_ii = Struct(">ii")


class ShareGroupDescribeRequest(Request["ShareGroupDescribeResponse"]):
    """ShareGroupDescribeRequest, a request: version 1, flexible from 0."""

    __slots__ = ("group_ids", "include_authorized_operations")
    API_KEY: ClassVar[int] = 77
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, group_ids: list[str] = EMPTY, include_authorized_operations: bool = False) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupDescribeRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupDescribeRequest:
        return _read_ShareGroupDescribeRequest(r, version)


def _read_ShareGroupDescribeRequest(r: Reader, v: int) -> ShareGroupDescribeRequest:
    m = ShareGroupDescribeRequest.__new__(ShareGroupDescribeRequest)
    m.group_ids = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.include_authorized_operations = r.boolean()
    r.skip_tags()
    return m


def _write_ShareGroupDescribeRequest(w: Writer, m: ShareGroupDescribeRequest, v: int) -> None:
    w.compact_count(len(m.group_ids))
    for group_id in w.each(m.group_ids):
        w.compact_string(group_id)
    w.boolean(m.include_authorized_operations)
    w.uvarint(0)


class DescribedShareTopicPartitions(Structure):
    """One element of groups.members.assignment.topic_partitions in ShareGroupDescribeResponse."""

    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_DescribedShareTopicPartitions(r: Reader, v: int) -> DescribedShareTopicPartitions:
    m = DescribedShareTopicPartitions.__new__(DescribedShareTopicPartitions)
    m.topic_id = r.uuid()
    m.topic_name = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_DescribedShareTopicPartitions(w: Writer, m: DescribedShareTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_string(m.topic_name)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class DescribedShareAssignment(Structure):
    """The value of groups.members.assignment in ShareGroupDescribeResponse."""

    __slots__ = ("topic_partitions",)

    def __init__(self, *, topic_partitions: list[DescribedShareTopicPartitions] = EMPTY) -> None:
        self.topic_partitions: list[DescribedShareTopicPartitions] = (
            [] if topic_partitions is EMPTY else topic_partitions
        )


def _read_DescribedShareAssignment(r: Reader, v: int) -> DescribedShareAssignment:
    m = DescribedShareAssignment.__new__(DescribedShareAssignment)
    m.topic_partitions = [_read_DescribedShareTopicPartitions(r, v) for _ in r.each(r.compact_count(19))]
    r.skip_tags()
    return m


def _write_DescribedShareAssignment(w: Writer, m: DescribedShareAssignment, v: int) -> None:
    w.compact_count(len(m.topic_partitions))
    for topic_partition in w.each(m.topic_partitions):
        _write_DescribedShareTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class DescribedShareGroupMember(Structure):
    """One element of groups.members in ShareGroupDescribeResponse."""

    __slots__ = (
        "member_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        assignment: DescribedShareAssignment | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.assignment: DescribedShareAssignment = DescribedShareAssignment() if assignment is None else assignment


def _read_DescribedShareGroupMember(r: Reader, v: int) -> DescribedShareGroupMember:
    m = DescribedShareGroupMember.__new__(DescribedShareGroupMember)
    m.member_id = r.compact_string()
    m.rack_id = r.compact_nullable_string()
    m.member_epoch = r.int32()
    m.client_id = r.compact_string()
    m.client_host = r.compact_string()
    m.subscribed_topic_names = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.assignment = _read_DescribedShareAssignment(r, v)
    r.skip_tags()
    return m


def _write_DescribedShareGroupMember(w: Writer, m: DescribedShareGroupMember, v: int) -> None:
    w.compact_string(m.member_id)
    w.compact_nullable_string(m.rack_id)
    w.int32(m.member_epoch)
    w.compact_string(m.client_id)
    w.compact_string(m.client_host)
    w.compact_count(len(m.subscribed_topic_names))
    for subscribed_topic_name in w.each(m.subscribed_topic_names):
        w.compact_string(subscribed_topic_name)
    _write_DescribedShareAssignment(w, m.assignment, v)
    w.uvarint(0)


class DescribedShareGroup(Structure):
    """One element of groups in ShareGroupDescribeResponse."""

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
        members: list[DescribedShareGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[DescribedShareGroupMember] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations


def _read_DescribedShareGroup(r: Reader, v: int) -> DescribedShareGroup:
    m = DescribedShareGroup.__new__(DescribedShareGroup)
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    m.group_id = r.compact_string()
    m.group_state = r.compact_string()
    m.group_epoch, m.assignment_epoch = r.fixed(_fixed_ii)
    m.assignor_name = r.compact_string()
    m.members = [_read_DescribedShareGroupMember(r, v) for _ in r.each(r.compact_count(12))]
    m.authorized_operations = r.int32()
    r.skip_tags()
    return m


def _write_DescribedShareGroup(w: Writer, m: DescribedShareGroup, v: int) -> None:
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_string(m.group_id)
    w.compact_string(m.group_state)
    w.buf += _fixed_ii.pack(m.group_epoch, m.assignment_epoch)
    w.compact_string(m.assignor_name)
    w.compact_count(len(m.members))
    for member in w.each(m.members):
        _write_DescribedShareGroupMember(w, member, v)
    w.int32(m.authorized_operations)
    w.uvarint(0)


class ShareGroupDescribeResponse(Message):
    """ShareGroupDescribeResponse, a response: version 1, flexible from 0."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY: ClassVar[int] = 77
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, groups: list[DescribedShareGroup] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedShareGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupDescribeResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupDescribeResponse:
        return _read_ShareGroupDescribeResponse(r, version)


def _read_ShareGroupDescribeResponse(r: Reader, v: int) -> ShareGroupDescribeResponse:
    m = ShareGroupDescribeResponse.__new__(ShareGroupDescribeResponse)
    m.throttle_time_ms = r.int32()
    m.groups = [_read_DescribedShareGroup(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_ShareGroupDescribeResponse(w: Writer, m: ShareGroupDescribeResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.groups))
    for group in w.each(m.groups):
        _write_DescribedShareGroup(w, group, v)
    w.uvarint(0)
