"""Share group log. Generated from schema/share_group_log.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Structure, Writer

_fixed_iib = Struct(">iib")
_fixed_iq = Struct(">iq")


class ShareGroupMemberMetadataKey(Message):
    """ShareGroupMemberMetadataKey, a record_key: version 10."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 10
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupMemberMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupMemberMetadataKey:
        return _read_ShareGroupMemberMetadataKey(r, version)


def _read_ShareGroupMemberMetadataKey(r: Reader, v: int) -> ShareGroupMemberMetadataKey:
    m = ShareGroupMemberMetadataKey.__new__(ShareGroupMemberMetadataKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_ShareGroupMemberMetadataKey(w: Writer, m: ShareGroupMemberMetadataKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class ShareGroupMemberMetadataValue(Message):
    """ShareGroupMemberMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
    ) -> None:
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is EMPTY else subscribed_topic_names

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupMemberMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupMemberMetadataValue:
        return _read_ShareGroupMemberMetadataValue(r, version)


def _read_ShareGroupMemberMetadataValue(r: Reader, v: int) -> ShareGroupMemberMetadataValue:
    m = ShareGroupMemberMetadataValue.__new__(ShareGroupMemberMetadataValue)
    m.rack_id = r.compact_nullable_string()
    m.client_id = r.compact_string()
    m.client_host = r.compact_string()
    m.subscribed_topic_names = [r.compact_string() for _ in r.each(r.compact_count(1))]
    r.skip_tags()
    return m


def _write_ShareGroupMemberMetadataValue(w: Writer, m: ShareGroupMemberMetadataValue, v: int) -> None:
    w.compact_nullable_string(m.rack_id)
    w.compact_string(m.client_id)
    w.compact_string(m.client_host)
    w.compact_count(len(m.subscribed_topic_names))
    for subscribed_topic_name in w.each(m.subscribed_topic_names):
        w.compact_string(subscribed_topic_name)
    w.uvarint(0)


class ShareGroupMetadataKey(Message):
    """ShareGroupMetadataKey, a record_key: version 11."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 11
    MAX_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupMetadataKey:
        return _read_ShareGroupMetadataKey(r, version)


def _read_ShareGroupMetadataKey(r: Reader, v: int) -> ShareGroupMetadataKey:
    m = ShareGroupMetadataKey.__new__(ShareGroupMetadataKey)
    m.group_id = r.string()
    return m


def _write_ShareGroupMetadataKey(w: Writer, m: ShareGroupMetadataKey, v: int) -> None:
    w.string(m.group_id)


class ShareGroupMetadataValue(Message):
    """ShareGroupMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("epoch", "metadata_hash")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupMetadataValue:
        return _read_ShareGroupMetadataValue(r, version)


def _read_ShareGroupMetadataValue(r: Reader, v: int) -> ShareGroupMetadataValue:
    m = ShareGroupMetadataValue.__new__(ShareGroupMetadataValue)
    m.epoch, m.metadata_hash = r.fixed(_fixed_iq)
    r.skip_tags()
    return m


def _write_ShareGroupMetadataValue(w: Writer, m: ShareGroupMetadataValue, v: int) -> None:
    w.buf += _fixed_iq.pack(m.epoch, m.metadata_hash)
    w.uvarint(0)


class ShareGroupTargetAssignmentMetadataKey(Message):
    """ShareGroupTargetAssignmentMetadataKey, a record_key: version 12."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 12
    MAX_VERSION: ClassVar[int] = 12
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupTargetAssignmentMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupTargetAssignmentMetadataKey:
        return _read_ShareGroupTargetAssignmentMetadataKey(r, version)


def _read_ShareGroupTargetAssignmentMetadataKey(r: Reader, v: int) -> ShareGroupTargetAssignmentMetadataKey:
    m = ShareGroupTargetAssignmentMetadataKey.__new__(ShareGroupTargetAssignmentMetadataKey)
    m.group_id = r.string()
    return m


def _write_ShareGroupTargetAssignmentMetadataKey(w: Writer, m: ShareGroupTargetAssignmentMetadataKey, v: int) -> None:
    w.string(m.group_id)


class ShareGroupTargetAssignmentMetadataValue(Message):
    """ShareGroupTargetAssignmentMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupTargetAssignmentMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupTargetAssignmentMetadataValue:
        return _read_ShareGroupTargetAssignmentMetadataValue(r, version)


def _read_ShareGroupTargetAssignmentMetadataValue(r: Reader, v: int) -> ShareGroupTargetAssignmentMetadataValue:
    m = ShareGroupTargetAssignmentMetadataValue.__new__(ShareGroupTargetAssignmentMetadataValue)
    m.assignment_epoch = r.int32()
    m.assignment_timestamp = 0
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.assignment_timestamp = r.int64()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_ShareGroupTargetAssignmentMetadataValue(
    w: Writer, m: ShareGroupTargetAssignmentMetadataValue, v: int
) -> None:
    w.int32(m.assignment_epoch)
    tags: list[tuple[int, Writer]] = []
    if m.assignment_timestamp != 0:
        t = Writer()
        t.int64(m.assignment_timestamp)
        tags.append((0, t))
    w.tags(tags)


class ShareGroupTargetAssignmentMemberKey(Message):
    """ShareGroupTargetAssignmentMemberKey, a record_key: version 13."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 13
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupTargetAssignmentMemberKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupTargetAssignmentMemberKey:
        return _read_ShareGroupTargetAssignmentMemberKey(r, version)


def _read_ShareGroupTargetAssignmentMemberKey(r: Reader, v: int) -> ShareGroupTargetAssignmentMemberKey:
    m = ShareGroupTargetAssignmentMemberKey.__new__(ShareGroupTargetAssignmentMemberKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_ShareGroupTargetAssignmentMemberKey(w: Writer, m: ShareGroupTargetAssignmentMemberKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class ShareGroupTargetTopicPartitions(Structure):
    """One element of topic_partitions in ShareGroupTargetAssignmentMemberValue."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ShareGroupTargetTopicPartitions(r: Reader, v: int) -> ShareGroupTargetTopicPartitions:
    m = ShareGroupTargetTopicPartitions.__new__(ShareGroupTargetTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ShareGroupTargetTopicPartitions(w: Writer, m: ShareGroupTargetTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ShareGroupTargetAssignmentMemberValue(Message):
    """ShareGroupTargetAssignmentMemberValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("topic_partitions",)
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, topic_partitions: list[ShareGroupTargetTopicPartitions] = EMPTY) -> None:
        self.topic_partitions: list[ShareGroupTargetTopicPartitions] = (
            [] if topic_partitions is EMPTY else topic_partitions
        )

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupTargetAssignmentMemberValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupTargetAssignmentMemberValue:
        return _read_ShareGroupTargetAssignmentMemberValue(r, version)


def _read_ShareGroupTargetAssignmentMemberValue(r: Reader, v: int) -> ShareGroupTargetAssignmentMemberValue:
    m = ShareGroupTargetAssignmentMemberValue.__new__(ShareGroupTargetAssignmentMemberValue)
    m.topic_partitions = [_read_ShareGroupTargetTopicPartitions(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareGroupTargetAssignmentMemberValue(w: Writer, m: ShareGroupTargetAssignmentMemberValue, v: int) -> None:
    w.compact_count(len(m.topic_partitions))
    for topic_partition in w.each(m.topic_partitions):
        _write_ShareGroupTargetTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class ShareGroupCurrentMemberAssignmentKey(Message):
    """ShareGroupCurrentMemberAssignmentKey, a record_key: version 14."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 14
    MAX_VERSION: ClassVar[int] = 14
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupCurrentMemberAssignmentKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupCurrentMemberAssignmentKey:
        return _read_ShareGroupCurrentMemberAssignmentKey(r, version)


def _read_ShareGroupCurrentMemberAssignmentKey(r: Reader, v: int) -> ShareGroupCurrentMemberAssignmentKey:
    m = ShareGroupCurrentMemberAssignmentKey.__new__(ShareGroupCurrentMemberAssignmentKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_ShareGroupCurrentMemberAssignmentKey(w: Writer, m: ShareGroupCurrentMemberAssignmentKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class ShareGroupCurrentTopicPartitions(Structure):
    """One element of assigned_partitions in ShareGroupCurrentMemberAssignmentValue."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ShareGroupCurrentTopicPartitions(r: Reader, v: int) -> ShareGroupCurrentTopicPartitions:
    m = ShareGroupCurrentTopicPartitions.__new__(ShareGroupCurrentTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ShareGroupCurrentTopicPartitions(w: Writer, m: ShareGroupCurrentTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ShareGroupCurrentMemberAssignmentValue(Message):
    """ShareGroupCurrentMemberAssignmentValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ShareGroupCurrentTopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.assigned_partitions: list[ShareGroupCurrentTopicPartitions] = (
            [] if assigned_partitions is EMPTY else assigned_partitions
        )

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupCurrentMemberAssignmentValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupCurrentMemberAssignmentValue:
        return _read_ShareGroupCurrentMemberAssignmentValue(r, version)


def _read_ShareGroupCurrentMemberAssignmentValue(r: Reader, v: int) -> ShareGroupCurrentMemberAssignmentValue:
    m = ShareGroupCurrentMemberAssignmentValue.__new__(ShareGroupCurrentMemberAssignmentValue)
    m.member_epoch, m.previous_member_epoch, m.state = r.fixed(_fixed_iib)
    m.assigned_partitions = [_read_ShareGroupCurrentTopicPartitions(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareGroupCurrentMemberAssignmentValue(w: Writer, m: ShareGroupCurrentMemberAssignmentValue, v: int) -> None:
    w.buf += _fixed_iib.pack(m.member_epoch, m.previous_member_epoch, m.state)
    w.compact_count(len(m.assigned_partitions))
    for assigned_partition in w.each(m.assigned_partitions):
        _write_ShareGroupCurrentTopicPartitions(w, assigned_partition, v)
    w.uvarint(0)


class ShareGroupStatePartitionMetadataKey(Message):
    """ShareGroupStatePartitionMetadataKey, a record_key: version 15."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 15
    MAX_VERSION: ClassVar[int] = 15
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupStatePartitionMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupStatePartitionMetadataKey:
        return _read_ShareGroupStatePartitionMetadataKey(r, version)


def _read_ShareGroupStatePartitionMetadataKey(r: Reader, v: int) -> ShareGroupStatePartitionMetadataKey:
    m = ShareGroupStatePartitionMetadataKey.__new__(ShareGroupStatePartitionMetadataKey)
    m.group_id = r.string()
    return m


def _write_ShareGroupStatePartitionMetadataKey(w: Writer, m: ShareGroupStatePartitionMetadataKey, v: int) -> None:
    w.string(m.group_id)


class ShareGroupTopicPartitionsInfo(Structure):
    """One element of initializing_topics in ShareGroupStatePartitionMetadataValue."""

    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ShareGroupTopicPartitionsInfo(r: Reader, v: int) -> ShareGroupTopicPartitionsInfo:
    m = ShareGroupTopicPartitionsInfo.__new__(ShareGroupTopicPartitionsInfo)
    m.topic_id = r.uuid()
    m.topic_name = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ShareGroupTopicPartitionsInfo(w: Writer, m: ShareGroupTopicPartitionsInfo, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_string(m.topic_name)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ShareGroupDeletingTopic(Structure):
    """One element of deleting_topics in ShareGroupStatePartitionMetadataValue."""

    __slots__ = ("topic_id", "topic_name")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, topic_name: str = "") -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name


def _read_ShareGroupDeletingTopic(r: Reader, v: int) -> ShareGroupDeletingTopic:
    m = ShareGroupDeletingTopic.__new__(ShareGroupDeletingTopic)
    m.topic_id = r.uuid()
    m.topic_name = r.compact_string()
    r.skip_tags()
    return m


def _write_ShareGroupDeletingTopic(w: Writer, m: ShareGroupDeletingTopic, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_string(m.topic_name)
    w.uvarint(0)


class ShareGroupStatePartitionMetadataValue(Message):
    """ShareGroupStatePartitionMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        initializing_topics: list[ShareGroupTopicPartitionsInfo] = EMPTY,
        initialized_topics: list[ShareGroupTopicPartitionsInfo] = EMPTY,
        deleting_topics: list[ShareGroupDeletingTopic] = EMPTY,
    ) -> None:
        self.initializing_topics: list[ShareGroupTopicPartitionsInfo] = (
            [] if initializing_topics is EMPTY else initializing_topics
        )
        self.initialized_topics: list[ShareGroupTopicPartitionsInfo] = (
            [] if initialized_topics is EMPTY else initialized_topics
        )
        self.deleting_topics: list[ShareGroupDeletingTopic] = [] if deleting_topics is EMPTY else deleting_topics

    def write(self, w: Writer, version: int) -> None:
        _write_ShareGroupStatePartitionMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareGroupStatePartitionMetadataValue:
        return _read_ShareGroupStatePartitionMetadataValue(r, version)


def _read_ShareGroupStatePartitionMetadataValue(r: Reader, v: int) -> ShareGroupStatePartitionMetadataValue:
    m = ShareGroupStatePartitionMetadataValue.__new__(ShareGroupStatePartitionMetadataValue)
    m.initializing_topics = [_read_ShareGroupTopicPartitionsInfo(r, v) for _ in r.each(r.compact_count(19))]
    m.initialized_topics = [_read_ShareGroupTopicPartitionsInfo(r, v) for _ in r.each(r.compact_count(19))]
    m.deleting_topics = [_read_ShareGroupDeletingTopic(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ShareGroupStatePartitionMetadataValue(w: Writer, m: ShareGroupStatePartitionMetadataValue, v: int) -> None:
    w.compact_count(len(m.initializing_topics))
    for initializing_topic in w.each(m.initializing_topics):
        _write_ShareGroupTopicPartitionsInfo(w, initializing_topic, v)
    w.compact_count(len(m.initialized_topics))
    for initialized_topic in w.each(m.initialized_topics):
        _write_ShareGroupTopicPartitionsInfo(w, initialized_topic, v)
    w.compact_count(len(m.deleting_topics))
    for deleting_topic in w.each(m.deleting_topics):
        _write_ShareGroupDeletingTopic(w, deleting_topic, v)
    w.uvarint(0)
