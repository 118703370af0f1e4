"""Consumer group log. Generated from schema/consumer_group_log.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Buffer, Message, Reader, Structure, Writer

_fixed_iib = Struct(">iib")
_fixed_qq = Struct(">qq")


class ConsumerGroupMetadataKey(Message):
    """ConsumerGroupMetadataKey, a record_key: version 3."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupMetadataKey:
        return _read_ConsumerGroupMetadataKey(r, version)


def _read_ConsumerGroupMetadataKey(r: Reader, v: int) -> ConsumerGroupMetadataKey:
    m = ConsumerGroupMetadataKey.__new__(ConsumerGroupMetadataKey)
    m.group_id = r.string()
    return m


def _write_ConsumerGroupMetadataKey(w: Writer, m: ConsumerGroupMetadataKey, v: int) -> None:
    w.string(m.group_id)


class ConsumerGroupMetadataValue(Message):
    """ConsumerGroupMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("epoch", "metadata_hash")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupMetadataValue:
        return _read_ConsumerGroupMetadataValue(r, version)


def _read_ConsumerGroupMetadataValue(r: Reader, v: int) -> ConsumerGroupMetadataValue:
    m = ConsumerGroupMetadataValue.__new__(ConsumerGroupMetadataValue)
    m.epoch = r.int32()
    m.metadata_hash = 0
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.metadata_hash = r.int64()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_ConsumerGroupMetadataValue(w: Writer, m: ConsumerGroupMetadataValue, v: int) -> None:
    w.int32(m.epoch)
    tags: list[tuple[int, Writer]] = []
    if m.metadata_hash != 0:
        t = Writer()
        t.int64(m.metadata_hash)
        tags.append((0, t))
    w.tags(tags)


class ConsumerGroupPartitionMetadataKey(Message):
    """ConsumerGroupPartitionMetadataKey, a record_key: version 4."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 4
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupPartitionMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupPartitionMetadataKey:
        return _read_ConsumerGroupPartitionMetadataKey(r, version)


def _read_ConsumerGroupPartitionMetadataKey(r: Reader, v: int) -> ConsumerGroupPartitionMetadataKey:
    m = ConsumerGroupPartitionMetadataKey.__new__(ConsumerGroupPartitionMetadataKey)
    m.group_id = r.string()
    return m


def _write_ConsumerGroupPartitionMetadataKey(w: Writer, m: ConsumerGroupPartitionMetadataKey, v: int) -> None:
    w.string(m.group_id)


class ConsumerGroupPartitionRacks(Structure):
    """One element of topics.partition_metadata in ConsumerGroupPartitionMetadataValue."""

    __slots__ = ("partition", "racks")

    def __init__(self, *, partition: int = 0, racks: list[str] = EMPTY) -> None:
        self.partition: int = partition
        self.racks: list[str] = [] if racks is EMPTY else racks


def _read_ConsumerGroupPartitionRacks(r: Reader, v: int) -> ConsumerGroupPartitionRacks:
    m = ConsumerGroupPartitionRacks.__new__(ConsumerGroupPartitionRacks)
    m.partition = r.int32()
    m.racks = [r.compact_string() for _ in r.each(r.compact_count(1))]
    r.skip_tags()
    return m


def _write_ConsumerGroupPartitionRacks(w: Writer, m: ConsumerGroupPartitionRacks, v: int) -> None:
    w.int32(m.partition)
    w.compact_count(len(m.racks))
    for rack in w.each(m.racks):
        w.compact_string(rack)
    w.uvarint(0)


class ConsumerGroupTopicMetadata(Structure):
    """One element of topics in ConsumerGroupPartitionMetadataValue."""

    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[ConsumerGroupPartitionRacks] = EMPTY,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.num_partitions: int = num_partitions
        self.partition_metadata: list[ConsumerGroupPartitionRacks] = (
            [] if partition_metadata is EMPTY else partition_metadata
        )


def _read_ConsumerGroupTopicMetadata(r: Reader, v: int) -> ConsumerGroupTopicMetadata:
    m = ConsumerGroupTopicMetadata.__new__(ConsumerGroupTopicMetadata)
    m.topic_id = r.uuid()
    m.topic_name = r.compact_string()
    m.num_partitions = r.int32()
    m.partition_metadata = [_read_ConsumerGroupPartitionRacks(r, v) for _ in r.each(r.compact_count(6))]
    r.skip_tags()
    return m


def _write_ConsumerGroupTopicMetadata(w: Writer, m: ConsumerGroupTopicMetadata, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_string(m.topic_name)
    w.int32(m.num_partitions)
    w.compact_count(len(m.partition_metadata))
    for partition_metadata_item in w.each(m.partition_metadata):
        _write_ConsumerGroupPartitionRacks(w, partition_metadata_item, v)
    w.uvarint(0)


class ConsumerGroupPartitionMetadataValue(Message):
    """ConsumerGroupPartitionMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("topics",)
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, topics: list[ConsumerGroupTopicMetadata] = EMPTY) -> None:
        self.topics: list[ConsumerGroupTopicMetadata] = [] if topics is EMPTY else topics

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupPartitionMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupPartitionMetadataValue:
        return _read_ConsumerGroupPartitionMetadataValue(r, version)


def _read_ConsumerGroupPartitionMetadataValue(r: Reader, v: int) -> ConsumerGroupPartitionMetadataValue:
    m = ConsumerGroupPartitionMetadataValue.__new__(ConsumerGroupPartitionMetadataValue)
    m.topics = [_read_ConsumerGroupTopicMetadata(r, v) for _ in r.each(r.compact_count(23))]
    r.skip_tags()
    return m


def _write_ConsumerGroupPartitionMetadataValue(w: Writer, m: ConsumerGroupPartitionMetadataValue, v: int) -> None:
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_ConsumerGroupTopicMetadata(w, topic, v)
    w.uvarint(0)


class ConsumerGroupMemberMetadataKey(Message):
    """ConsumerGroupMemberMetadataKey, a record_key: version 5."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 5
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupMemberMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupMemberMetadataKey:
        return _read_ConsumerGroupMemberMetadataKey(r, version)


def _read_ConsumerGroupMemberMetadataKey(r: Reader, v: int) -> ConsumerGroupMemberMetadataKey:
    m = ConsumerGroupMemberMetadataKey.__new__(ConsumerGroupMemberMetadataKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_ConsumerGroupMemberMetadataKey(w: Writer, m: ConsumerGroupMemberMetadataKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class ConsumerGroupClassicProtocol(Structure):
    """One element of classic_member_metadata.supported_protocols in ConsumerGroupMemberMetadataValue."""

    __slots__ = ("name", "metadata")

    def __init__(self, *, name: str = "", metadata: Buffer = b"") -> None:
        self.name: str = name
        self.metadata: Buffer = metadata


def _read_ConsumerGroupClassicProtocol(r: Reader, v: int) -> ConsumerGroupClassicProtocol:
    m = ConsumerGroupClassicProtocol.__new__(ConsumerGroupClassicProtocol)
    m.name = r.compact_string()
    m.metadata = r.compact_bytes()
    r.skip_tags()
    return m


def _write_ConsumerGroupClassicProtocol(w: Writer, m: ConsumerGroupClassicProtocol, v: int) -> None:
    w.compact_string(m.name)
    w.compact_bytes(m.metadata)
    w.uvarint(0)


class ConsumerGroupClassicMemberMetadata(Structure):
    """The value of classic_member_metadata in ConsumerGroupMemberMetadataValue."""

    __slots__ = ("session_timeout_ms", "supported_protocols")

    def __init__(
        self, *, session_timeout_ms: int = 0, supported_protocols: list[ConsumerGroupClassicProtocol] = EMPTY
    ) -> None:
        self.session_timeout_ms: int = session_timeout_ms
        self.supported_protocols: list[ConsumerGroupClassicProtocol] = (
            [] if supported_protocols is EMPTY else supported_protocols
        )


def _read_ConsumerGroupClassicMemberMetadata(r: Reader, v: int) -> ConsumerGroupClassicMemberMetadata:
    m = ConsumerGroupClassicMemberMetadata.__new__(ConsumerGroupClassicMemberMetadata)
    m.session_timeout_ms = r.int32()
    m.supported_protocols = [_read_ConsumerGroupClassicProtocol(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_ConsumerGroupClassicMemberMetadata(w: Writer, m: ConsumerGroupClassicMemberMetadata, v: int) -> None:
    w.int32(m.session_timeout_ms)
    w.compact_count(len(m.supported_protocols))
    for supported_protocol in w.each(m.supported_protocols):
        _write_ConsumerGroupClassicProtocol(w, supported_protocol, v)
    w.uvarint(0)


class ConsumerGroupMemberMetadataValue(Message):
    """ConsumerGroupMemberMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    )
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ConsumerGroupClassicMemberMetadata | None = None,
    ) -> None:
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.server_assignor: str | None = server_assignor
        self.classic_member_metadata: ConsumerGroupClassicMemberMetadata | None = classic_member_metadata

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupMemberMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupMemberMetadataValue:
        return _read_ConsumerGroupMemberMetadataValue(r, version)


def _read_ConsumerGroupMemberMetadataValue(r: Reader, v: int) -> ConsumerGroupMemberMetadataValue:
    m = ConsumerGroupMemberMetadataValue.__new__(ConsumerGroupMemberMetadataValue)
    m.instance_id = r.compact_nullable_string()
    m.rack_id = r.compact_nullable_string()
    m.client_id = r.compact_string()
    m.client_host = r.compact_string()
    m.subscribed_topic_names = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.subscribed_topic_regex = r.compact_nullable_string()
    m.rebalance_timeout_ms = r.int32()
    m.server_assignor = r.compact_nullable_string()
    m.classic_member_metadata = ConsumerGroupClassicMemberMetadata()
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.classic_member_metadata = _read_ConsumerGroupClassicMemberMetadata(r, v) if r.uvarint() != 0 else None
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_ConsumerGroupMemberMetadataValue(w: Writer, m: ConsumerGroupMemberMetadataValue, v: int) -> None:
    w.compact_nullable_string(m.instance_id)
    w.compact_nullable_string(m.rack_id)
    w.compact_string(m.client_id)
    w.compact_string(m.client_host)
    w.compact_count(len(m.subscribed_topic_names))
    for subscribed_topic_name in w.each(m.subscribed_topic_names):
        w.compact_string(subscribed_topic_name)
    w.compact_nullable_string(m.subscribed_topic_regex)
    w.int32(m.rebalance_timeout_ms)
    w.compact_nullable_string(m.server_assignor)
    tags: list[tuple[int, Writer]] = []
    if m.classic_member_metadata != ConsumerGroupClassicMemberMetadata():
        t = Writer()
        if m.classic_member_metadata is None:
            t.uvarint(0)
        else:
            t.uvarint(1)
            _write_ConsumerGroupClassicMemberMetadata(t, m.classic_member_metadata, v)
        tags.append((0, t))
    w.tags(tags)


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """ConsumerGroupTargetAssignmentMetadataKey, a record_key: version 6."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 6
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupTargetAssignmentMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupTargetAssignmentMetadataKey:
        return _read_ConsumerGroupTargetAssignmentMetadataKey(r, version)


def _read_ConsumerGroupTargetAssignmentMetadataKey(r: Reader, v: int) -> ConsumerGroupTargetAssignmentMetadataKey:
    m = ConsumerGroupTargetAssignmentMetadataKey.__new__(ConsumerGroupTargetAssignmentMetadataKey)
    m.group_id = r.string()
    return m


def _write_ConsumerGroupTargetAssignmentMetadataKey(
    w: Writer, m: ConsumerGroupTargetAssignmentMetadataKey, v: int
) -> None:
    w.string(m.group_id)


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """ConsumerGroupTargetAssignmentMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupTargetAssignmentMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupTargetAssignmentMetadataValue:
        return _read_ConsumerGroupTargetAssignmentMetadataValue(r, version)


def _read_ConsumerGroupTargetAssignmentMetadataValue(r: Reader, v: int) -> ConsumerGroupTargetAssignmentMetadataValue:
    m = ConsumerGroupTargetAssignmentMetadataValue.__new__(ConsumerGroupTargetAssignmentMetadataValue)
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


def _write_ConsumerGroupTargetAssignmentMetadataValue(
    w: Writer, m: ConsumerGroupTargetAssignmentMetadataValue, v: int
) -> None:
    w.int32(m.assignment_epoch)
    tags: list[tuple[int, Writer]] = []
    if m.assignment_timestamp != 0:
        t = Writer()
        t.int64(m.assignment_timestamp)
        tags.append((0, t))
    w.tags(tags)


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """ConsumerGroupTargetAssignmentMemberKey, a record_key: version 7."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 7
    MAX_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupTargetAssignmentMemberKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupTargetAssignmentMemberKey:
        return _read_ConsumerGroupTargetAssignmentMemberKey(r, version)


def _read_ConsumerGroupTargetAssignmentMemberKey(r: Reader, v: int) -> ConsumerGroupTargetAssignmentMemberKey:
    m = ConsumerGroupTargetAssignmentMemberKey.__new__(ConsumerGroupTargetAssignmentMemberKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_ConsumerGroupTargetAssignmentMemberKey(w: Writer, m: ConsumerGroupTargetAssignmentMemberKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class ConsumerGroupTargetTopicPartitions(Structure):
    """One element of topic_partitions in ConsumerGroupTargetAssignmentMemberValue."""

    __slots__ = ("topic_id", "partitions")

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_ConsumerGroupTargetTopicPartitions(r: Reader, v: int) -> ConsumerGroupTargetTopicPartitions:
    m = ConsumerGroupTargetTopicPartitions.__new__(ConsumerGroupTargetTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_ConsumerGroupTargetTopicPartitions(w: Writer, m: ConsumerGroupTargetTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """ConsumerGroupTargetAssignmentMemberValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("topic_partitions",)
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, topic_partitions: list[ConsumerGroupTargetTopicPartitions] = EMPTY) -> None:
        self.topic_partitions: list[ConsumerGroupTargetTopicPartitions] = (
            [] if topic_partitions is EMPTY else topic_partitions
        )

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupTargetAssignmentMemberValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupTargetAssignmentMemberValue:
        return _read_ConsumerGroupTargetAssignmentMemberValue(r, version)


def _read_ConsumerGroupTargetAssignmentMemberValue(r: Reader, v: int) -> ConsumerGroupTargetAssignmentMemberValue:
    m = ConsumerGroupTargetAssignmentMemberValue.__new__(ConsumerGroupTargetAssignmentMemberValue)
    m.topic_partitions = [_read_ConsumerGroupTargetTopicPartitions(r, v) for _ in r.each(r.compact_count(18))]
    r.skip_tags()
    return m


def _write_ConsumerGroupTargetAssignmentMemberValue(
    w: Writer, m: ConsumerGroupTargetAssignmentMemberValue, v: int
) -> None:
    w.compact_count(len(m.topic_partitions))
    for topic_partition in w.each(m.topic_partitions):
        _write_ConsumerGroupTargetTopicPartitions(w, topic_partition, v)
    w.uvarint(0)


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """ConsumerGroupCurrentMemberAssignmentKey, a record_key: version 8."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 8
    MAX_VERSION: ClassVar[int] = 8
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupCurrentMemberAssignmentKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupCurrentMemberAssignmentKey:
        return _read_ConsumerGroupCurrentMemberAssignmentKey(r, version)


def _read_ConsumerGroupCurrentMemberAssignmentKey(r: Reader, v: int) -> ConsumerGroupCurrentMemberAssignmentKey:
    m = ConsumerGroupCurrentMemberAssignmentKey.__new__(ConsumerGroupCurrentMemberAssignmentKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_ConsumerGroupCurrentMemberAssignmentKey(
    w: Writer, m: ConsumerGroupCurrentMemberAssignmentKey, v: int
) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class ConsumerGroupCurrentTopicPartitions(Structure):
    """One element of assigned_partitions in ConsumerGroupCurrentMemberAssignmentValue."""

    __slots__ = ("topic_id", "partitions", "assignment_epochs")

    def __init__(
        self, *, topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY, assignment_epochs: list[int] | None = None
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.assignment_epochs: list[int] | None = assignment_epochs


def _read_ConsumerGroupCurrentTopicPartitions(r: Reader, v: int) -> ConsumerGroupCurrentTopicPartitions:
    m = ConsumerGroupCurrentTopicPartitions.__new__(ConsumerGroupCurrentTopicPartitions)
    m.topic_id = r.uuid()
    m.partitions = r.compact_int32_array()
    m.assignment_epochs = None
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.assignment_epochs = r.compact_nullable_int32_array()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_ConsumerGroupCurrentTopicPartitions(w: Writer, m: ConsumerGroupCurrentTopicPartitions, v: int) -> None:
    w.uuid(m.topic_id)
    w.compact_int32_array(m.partitions)
    tags: list[tuple[int, Writer]] = []
    if m.assignment_epochs is not None:
        t = Writer()
        if m.assignment_epochs is None:
            t.compact_count(-1)
        else:
            t.compact_int32_array(m.assignment_epochs)
        tags.append((0, t))
    w.tags(tags)


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """ConsumerGroupCurrentMemberAssignmentValue, a record_value: version 0, flexible from 0."""

    __slots__ = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "assigned_partitions",
        "partitions_pending_revocation",
    )
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ConsumerGroupCurrentTopicPartitions] = EMPTY,
        partitions_pending_revocation: list[ConsumerGroupCurrentTopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.assigned_partitions: list[ConsumerGroupCurrentTopicPartitions] = (
            [] if assigned_partitions is EMPTY else assigned_partitions
        )
        self.partitions_pending_revocation: list[ConsumerGroupCurrentTopicPartitions] = (
            [] if partitions_pending_revocation is EMPTY else partitions_pending_revocation
        )

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupCurrentMemberAssignmentValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupCurrentMemberAssignmentValue:
        return _read_ConsumerGroupCurrentMemberAssignmentValue(r, version)


def _read_ConsumerGroupCurrentMemberAssignmentValue(r: Reader, v: int) -> ConsumerGroupCurrentMemberAssignmentValue:
    m = ConsumerGroupCurrentMemberAssignmentValue.__new__(ConsumerGroupCurrentMemberAssignmentValue)
    m.member_epoch, m.previous_member_epoch, m.state = r.fixed(_fixed_iib)
    m.assigned_partitions = [_read_ConsumerGroupCurrentTopicPartitions(r, v) for _ in r.each(r.compact_count(18))]
    m.partitions_pending_revocation = [
        _read_ConsumerGroupCurrentTopicPartitions(r, v) for _ in r.each(r.compact_count(18))
    ]
    r.skip_tags()
    return m


def _write_ConsumerGroupCurrentMemberAssignmentValue(
    w: Writer, m: ConsumerGroupCurrentMemberAssignmentValue, v: int
) -> None:
    w.buf += _fixed_iib.pack(m.member_epoch, m.previous_member_epoch, m.state)
    w.compact_count(len(m.assigned_partitions))
    for assigned_partition in w.each(m.assigned_partitions):
        _write_ConsumerGroupCurrentTopicPartitions(w, assigned_partition, v)
    w.compact_count(len(m.partitions_pending_revocation))
    for partitions_pending_revocation_item in w.each(m.partitions_pending_revocation):
        _write_ConsumerGroupCurrentTopicPartitions(w, partitions_pending_revocation_item, v)
    w.uvarint(0)


class ConsumerGroupRegularExpressionKey(Message):
    """ConsumerGroupRegularExpressionKey, a record_key: version 16."""

    __slots__ = ("group_id", "regular_expression")
    MIN_VERSION: ClassVar[int] = 16
    MAX_VERSION: ClassVar[int] = 16
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id: str = group_id
        self.regular_expression: str = regular_expression

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupRegularExpressionKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupRegularExpressionKey:
        return _read_ConsumerGroupRegularExpressionKey(r, version)


def _read_ConsumerGroupRegularExpressionKey(r: Reader, v: int) -> ConsumerGroupRegularExpressionKey:
    m = ConsumerGroupRegularExpressionKey.__new__(ConsumerGroupRegularExpressionKey)
    m.group_id = r.string()
    m.regular_expression = r.string()
    return m


def _write_ConsumerGroupRegularExpressionKey(w: Writer, m: ConsumerGroupRegularExpressionKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.regular_expression)


class ConsumerGroupRegularExpressionValue(Message):
    """ConsumerGroupRegularExpressionValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("topics", "version", "timestamp")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, topics: list[str] = EMPTY, version: int = 0, timestamp: int = 0) -> None:
        self.topics: list[str] = [] if topics is EMPTY else topics
        self.version: int = version
        self.timestamp: int = timestamp

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerGroupRegularExpressionValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerGroupRegularExpressionValue:
        return _read_ConsumerGroupRegularExpressionValue(r, version)


def _read_ConsumerGroupRegularExpressionValue(r: Reader, v: int) -> ConsumerGroupRegularExpressionValue:
    m = ConsumerGroupRegularExpressionValue.__new__(ConsumerGroupRegularExpressionValue)
    m.topics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.version, m.timestamp = r.fixed(_fixed_qq)
    r.skip_tags()
    return m


def _write_ConsumerGroupRegularExpressionValue(w: Writer, m: ConsumerGroupRegularExpressionValue, v: int) -> None:
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        w.compact_string(topic)
    w.buf += _fixed_qq.pack(m.version, m.timestamp)
    w.uvarint(0)
