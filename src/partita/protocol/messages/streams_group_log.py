"""Streams group log. Generated from schema/streams_group_log.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_iib = Struct(">iib")
_fixed_iq = Struct(">iq")


class StreamsGroupMetadataKey(Message):
    """StreamsGroupMetadataKey, a record_key: version 17."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 17
    MAX_VERSION: ClassVar[int] = 17
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupMetadataKey:
        return _read_StreamsGroupMetadataKey(r, version)


def _read_StreamsGroupMetadataKey(r: Reader, v: int) -> StreamsGroupMetadataKey:
    m = StreamsGroupMetadataKey.__new__(StreamsGroupMetadataKey)
    m.group_id = r.string()
    return m


def _write_StreamsGroupMetadataKey(w: Writer, m: StreamsGroupMetadataKey, v: int) -> None:
    w.string(m.group_id)


class StreamsLastAssignmentConfig(Structure):
    """One element of last_assignment_configs in StreamsGroupMetadataValue."""

    __slots__ = ("key", "value")

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key: str = key
        self.value: str = value


def _read_StreamsLastAssignmentConfig(r: Reader, v: int) -> StreamsLastAssignmentConfig:
    m = StreamsLastAssignmentConfig.__new__(StreamsLastAssignmentConfig)
    m.key = r.compact_string()
    m.value = r.compact_string()
    r.skip_tags()
    return m


def _write_StreamsLastAssignmentConfig(w: Writer, m: StreamsLastAssignmentConfig, v: int) -> None:
    w.compact_string(m.key)
    w.compact_string(m.value)
    w.uvarint(0)


class StreamsGroupMetadataValue(Message):
    """StreamsGroupMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = (
        "epoch",
        "metadata_hash",
        "validated_topology_epoch",
        "last_assignment_configs",
        "stored_description_topology_epoch",
        "failed_description_topology_epoch",
    )
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[StreamsLastAssignmentConfig] | None = EMPTY,
        stored_description_topology_epoch: int = -1,
        failed_description_topology_epoch: int = -1,
    ) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash
        self.validated_topology_epoch: int = validated_topology_epoch
        self.last_assignment_configs: list[StreamsLastAssignmentConfig] | None = (
            [] if last_assignment_configs is EMPTY else last_assignment_configs
        )
        self.stored_description_topology_epoch: int = stored_description_topology_epoch
        self.failed_description_topology_epoch: int = failed_description_topology_epoch

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupMetadataValue:
        return _read_StreamsGroupMetadataValue(r, version)


def _read_StreamsGroupMetadataValue(r: Reader, v: int) -> StreamsGroupMetadataValue:
    m = StreamsGroupMetadataValue.__new__(StreamsGroupMetadataValue)
    m.epoch, m.metadata_hash = r.fixed(_fixed_iq)
    m.validated_topology_epoch = -1
    m.last_assignment_configs = []
    m.stored_description_topology_epoch = -1
    m.failed_description_topology_epoch = -1
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.validated_topology_epoch = r.int32()
        elif tag == 1:
            m.last_assignment_configs = (
                None
                if (n := r.compact_nullable_count(3)) < 0
                else [_read_StreamsLastAssignmentConfig(r, v) for _ in r.each(n)]
            )
        elif tag == 2:
            m.stored_description_topology_epoch = r.int32()
        elif tag == 3:
            m.failed_description_topology_epoch = r.int32()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_StreamsGroupMetadataValue(w: Writer, m: StreamsGroupMetadataValue, v: int) -> None:
    w.buf += _fixed_iq.pack(m.epoch, m.metadata_hash)
    tags: list[tuple[int, Writer]] = []
    if m.validated_topology_epoch != -1:
        t = Writer()
        t.int32(m.validated_topology_epoch)
        tags.append((0, t))
    if m.last_assignment_configs is None or m.last_assignment_configs:
        t = Writer()
        if m.last_assignment_configs is None:
            t.compact_count(-1)
        else:
            t.compact_count(len(m.last_assignment_configs))
            for last_assignment_config in t.each(m.last_assignment_configs):
                _write_StreamsLastAssignmentConfig(t, last_assignment_config, v)
        tags.append((1, t))
    if m.stored_description_topology_epoch != -1:
        t = Writer()
        t.int32(m.stored_description_topology_epoch)
        tags.append((2, t))
    if m.failed_description_topology_epoch != -1:
        t = Writer()
        t.int32(m.failed_description_topology_epoch)
        tags.append((3, t))
    w.tags(tags)


class StreamsGroupMemberMetadataKey(Message):
    """StreamsGroupMemberMetadataKey, a record_key: version 19."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 19
    MAX_VERSION: ClassVar[int] = 19
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupMemberMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupMemberMetadataKey:
        return _read_StreamsGroupMemberMetadataKey(r, version)


def _read_StreamsGroupMemberMetadataKey(r: Reader, v: int) -> StreamsGroupMemberMetadataKey:
    m = StreamsGroupMemberMetadataKey.__new__(StreamsGroupMemberMetadataKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_StreamsGroupMemberMetadataKey(w: Writer, m: StreamsGroupMemberMetadataKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class StreamsEndpoint(Structure):
    """The value of user_endpoint in StreamsGroupMemberMetadataValue."""

    __slots__ = ("host", "port")

    def __init__(self, *, host: str = "", port: int = 0) -> None:
        self.host: str = host
        self.port: int = port


def _read_StreamsEndpoint(r: Reader, v: int) -> StreamsEndpoint:
    m = StreamsEndpoint.__new__(StreamsEndpoint)
    m.host = r.compact_string()
    m.port = r.uint16()
    r.skip_tags()
    return m


def _write_StreamsEndpoint(w: Writer, m: StreamsEndpoint, v: int) -> None:
    w.compact_string(m.host)
    w.uint16(m.port)
    w.uvarint(0)


class StreamsKeyValue(Structure):
    """One element of client_tags in StreamsGroupMemberMetadataValue."""

    __slots__ = ("key", "value")

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key: str = key
        self.value: str = value


def _read_StreamsKeyValue(r: Reader, v: int) -> StreamsKeyValue:
    m = StreamsKeyValue.__new__(StreamsKeyValue)
    m.key = r.compact_string()
    m.value = r.compact_string()
    r.skip_tags()
    return m


def _write_StreamsKeyValue(w: Writer, m: StreamsKeyValue, v: int) -> None:
    w.compact_string(m.key)
    w.compact_string(m.value)
    w.uvarint(0)


class StreamsGroupMemberMetadataValue(Message):
    """StreamsGroupMemberMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
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
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: StreamsEndpoint | None = None,
        client_tags: list[StreamsKeyValue] = EMPTY,
    ) -> None:
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: StreamsEndpoint | None = user_endpoint
        self.client_tags: list[StreamsKeyValue] = [] if client_tags is EMPTY else client_tags

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupMemberMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupMemberMetadataValue:
        return _read_StreamsGroupMemberMetadataValue(r, version)


def _read_StreamsGroupMemberMetadataValue(r: Reader, v: int) -> StreamsGroupMemberMetadataValue:
    m = StreamsGroupMemberMetadataValue.__new__(StreamsGroupMemberMetadataValue)
    m.instance_id = r.compact_nullable_string()
    m.rack_id = r.compact_nullable_string()
    m.client_id = r.compact_string()
    m.client_host = r.compact_string()
    m.rebalance_timeout_ms, m.topology_epoch = r.fixed(_fixed_ii)
    m.process_id = r.compact_string()
    m.user_endpoint = _read_StreamsEndpoint(r, v) if r.int8() >= 0 else None
    m.client_tags = [_read_StreamsKeyValue(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsGroupMemberMetadataValue(w: Writer, m: StreamsGroupMemberMetadataValue, v: int) -> None:
    w.compact_nullable_string(m.instance_id)
    w.compact_nullable_string(m.rack_id)
    w.compact_string(m.client_id)
    w.compact_string(m.client_host)
    w.buf += _fixed_ii.pack(m.rebalance_timeout_ms, m.topology_epoch)
    w.compact_string(m.process_id)
    if m.user_endpoint is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_StreamsEndpoint(w, m.user_endpoint, v)
    w.compact_count(len(m.client_tags))
    for client_tag in w.each(m.client_tags):
        _write_StreamsKeyValue(w, client_tag, v)
    w.uvarint(0)


class StreamsGroupTargetAssignmentMetadataKey(Message):
    """StreamsGroupTargetAssignmentMetadataKey, a record_key: version 20."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 20
    MAX_VERSION: ClassVar[int] = 20
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTargetAssignmentMetadataKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTargetAssignmentMetadataKey:
        return _read_StreamsGroupTargetAssignmentMetadataKey(r, version)


def _read_StreamsGroupTargetAssignmentMetadataKey(r: Reader, v: int) -> StreamsGroupTargetAssignmentMetadataKey:
    m = StreamsGroupTargetAssignmentMetadataKey.__new__(StreamsGroupTargetAssignmentMetadataKey)
    m.group_id = r.string()
    return m


def _write_StreamsGroupTargetAssignmentMetadataKey(
    w: Writer, m: StreamsGroupTargetAssignmentMetadataKey, v: int
) -> None:
    w.string(m.group_id)


class StreamsGroupTargetAssignmentMetadataValue(Message):
    """StreamsGroupTargetAssignmentMetadataValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTargetAssignmentMetadataValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTargetAssignmentMetadataValue:
        return _read_StreamsGroupTargetAssignmentMetadataValue(r, version)


def _read_StreamsGroupTargetAssignmentMetadataValue(r: Reader, v: int) -> StreamsGroupTargetAssignmentMetadataValue:
    m = StreamsGroupTargetAssignmentMetadataValue.__new__(StreamsGroupTargetAssignmentMetadataValue)
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


def _write_StreamsGroupTargetAssignmentMetadataValue(
    w: Writer, m: StreamsGroupTargetAssignmentMetadataValue, v: int
) -> None:
    w.int32(m.assignment_epoch)
    tags: list[tuple[int, Writer]] = []
    if m.assignment_timestamp != 0:
        t = Writer()
        t.int64(m.assignment_timestamp)
        tags.append((0, t))
    w.tags(tags)


class StreamsGroupTargetAssignmentMemberKey(Message):
    """StreamsGroupTargetAssignmentMemberKey, a record_key: version 21."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 21
    MAX_VERSION: ClassVar[int] = 21
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTargetAssignmentMemberKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTargetAssignmentMemberKey:
        return _read_StreamsGroupTargetAssignmentMemberKey(r, version)


def _read_StreamsGroupTargetAssignmentMemberKey(r: Reader, v: int) -> StreamsGroupTargetAssignmentMemberKey:
    m = StreamsGroupTargetAssignmentMemberKey.__new__(StreamsGroupTargetAssignmentMemberKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_StreamsGroupTargetAssignmentMemberKey(w: Writer, m: StreamsGroupTargetAssignmentMemberKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class StreamsTargetTaskIds(Structure):
    """One element of active_tasks in StreamsGroupTargetAssignmentMemberValue."""

    __slots__ = ("subtopology_id", "partitions")

    def __init__(self, *, subtopology_id: str = "", partitions: list[int] = EMPTY) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_StreamsTargetTaskIds(r: Reader, v: int) -> StreamsTargetTaskIds:
    m = StreamsTargetTaskIds.__new__(StreamsTargetTaskIds)
    m.subtopology_id = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_StreamsTargetTaskIds(w: Writer, m: StreamsTargetTaskIds, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class StreamsGroupTargetAssignmentMemberValue(Message):
    """StreamsGroupTargetAssignmentMemberValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        active_tasks: list[StreamsTargetTaskIds] = EMPTY,
        standby_tasks: list[StreamsTargetTaskIds] = EMPTY,
        warmup_tasks: list[StreamsTargetTaskIds] = EMPTY,
    ) -> None:
        self.active_tasks: list[StreamsTargetTaskIds] = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[StreamsTargetTaskIds] = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[StreamsTargetTaskIds] = [] if warmup_tasks is EMPTY else warmup_tasks

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTargetAssignmentMemberValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTargetAssignmentMemberValue:
        return _read_StreamsGroupTargetAssignmentMemberValue(r, version)


def _read_StreamsGroupTargetAssignmentMemberValue(r: Reader, v: int) -> StreamsGroupTargetAssignmentMemberValue:
    m = StreamsGroupTargetAssignmentMemberValue.__new__(StreamsGroupTargetAssignmentMemberValue)
    m.active_tasks = [_read_StreamsTargetTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.standby_tasks = [_read_StreamsTargetTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.warmup_tasks = [_read_StreamsTargetTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsGroupTargetAssignmentMemberValue(
    w: Writer, m: StreamsGroupTargetAssignmentMemberValue, v: int
) -> None:
    w.compact_count(len(m.active_tasks))
    for active_task in w.each(m.active_tasks):
        _write_StreamsTargetTaskIds(w, active_task, v)
    w.compact_count(len(m.standby_tasks))
    for standby_task in w.each(m.standby_tasks):
        _write_StreamsTargetTaskIds(w, standby_task, v)
    w.compact_count(len(m.warmup_tasks))
    for warmup_task in w.each(m.warmup_tasks):
        _write_StreamsTargetTaskIds(w, warmup_task, v)
    w.uvarint(0)


class StreamsGroupCurrentMemberAssignmentKey(Message):
    """StreamsGroupCurrentMemberAssignmentKey, a record_key: version 22."""

    __slots__ = ("group_id", "member_id")
    MIN_VERSION: ClassVar[int] = 22
    MAX_VERSION: ClassVar[int] = 22
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", member_id: str = "") -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupCurrentMemberAssignmentKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupCurrentMemberAssignmentKey:
        return _read_StreamsGroupCurrentMemberAssignmentKey(r, version)


def _read_StreamsGroupCurrentMemberAssignmentKey(r: Reader, v: int) -> StreamsGroupCurrentMemberAssignmentKey:
    m = StreamsGroupCurrentMemberAssignmentKey.__new__(StreamsGroupCurrentMemberAssignmentKey)
    m.group_id = r.string()
    m.member_id = r.string()
    return m


def _write_StreamsGroupCurrentMemberAssignmentKey(w: Writer, m: StreamsGroupCurrentMemberAssignmentKey, v: int) -> None:
    w.string(m.group_id)
    w.string(m.member_id)


class StreamsCurrentTaskIds(Structure):
    """One element of active_tasks in StreamsGroupCurrentMemberAssignmentValue."""

    __slots__ = ("subtopology_id", "partitions", "assignment_epochs")

    def __init__(
        self, *, subtopology_id: str = "", partitions: list[int] = EMPTY, assignment_epochs: list[int] | None = EMPTY
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.assignment_epochs: list[int] | None = [] if assignment_epochs is EMPTY else assignment_epochs


def _read_StreamsCurrentTaskIds(r: Reader, v: int) -> StreamsCurrentTaskIds:
    m = StreamsCurrentTaskIds.__new__(StreamsCurrentTaskIds)
    m.subtopology_id = r.compact_string()
    m.partitions = r.compact_int32_array()
    m.assignment_epochs = []
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.assignment_epochs = r.compact_nullable_int32_array()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_StreamsCurrentTaskIds(w: Writer, m: StreamsCurrentTaskIds, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.compact_int32_array(m.partitions)
    tags: list[tuple[int, Writer]] = []
    if m.assignment_epochs is None or m.assignment_epochs:
        t = Writer()
        if m.assignment_epochs is None:
            t.compact_count(-1)
        else:
            t.compact_int32_array(m.assignment_epochs)
        tags.append((0, t))
    w.tags(tags)


class StreamsGroupCurrentMemberAssignmentValue(Message):
    """StreamsGroupCurrentMemberAssignmentValue, a record_value: version 0, flexible from 0."""

    __slots__ = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "active_tasks_pending_revocation",
        "standby_tasks_pending_revocation",
        "warmup_tasks_pending_revocation",
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
        active_tasks: list[StreamsCurrentTaskIds] = EMPTY,
        standby_tasks: list[StreamsCurrentTaskIds] = EMPTY,
        warmup_tasks: list[StreamsCurrentTaskIds] = EMPTY,
        active_tasks_pending_revocation: list[StreamsCurrentTaskIds] = EMPTY,
        standby_tasks_pending_revocation: list[StreamsCurrentTaskIds] = EMPTY,
        warmup_tasks_pending_revocation: list[StreamsCurrentTaskIds] = EMPTY,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.active_tasks: list[StreamsCurrentTaskIds] = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[StreamsCurrentTaskIds] = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[StreamsCurrentTaskIds] = [] if warmup_tasks is EMPTY else warmup_tasks
        self.active_tasks_pending_revocation: list[StreamsCurrentTaskIds] = (
            [] if active_tasks_pending_revocation is EMPTY else active_tasks_pending_revocation
        )
        self.standby_tasks_pending_revocation: list[StreamsCurrentTaskIds] = (
            [] if standby_tasks_pending_revocation is EMPTY else standby_tasks_pending_revocation
        )
        self.warmup_tasks_pending_revocation: list[StreamsCurrentTaskIds] = (
            [] if warmup_tasks_pending_revocation is EMPTY else warmup_tasks_pending_revocation
        )

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupCurrentMemberAssignmentValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupCurrentMemberAssignmentValue:
        return _read_StreamsGroupCurrentMemberAssignmentValue(r, version)


def _read_StreamsGroupCurrentMemberAssignmentValue(r: Reader, v: int) -> StreamsGroupCurrentMemberAssignmentValue:
    m = StreamsGroupCurrentMemberAssignmentValue.__new__(StreamsGroupCurrentMemberAssignmentValue)
    m.member_epoch, m.previous_member_epoch, m.state = r.fixed(_fixed_iib)
    m.active_tasks = [_read_StreamsCurrentTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.standby_tasks = [_read_StreamsCurrentTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.warmup_tasks = [_read_StreamsCurrentTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.active_tasks_pending_revocation = [_read_StreamsCurrentTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.standby_tasks_pending_revocation = [_read_StreamsCurrentTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.warmup_tasks_pending_revocation = [_read_StreamsCurrentTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsGroupCurrentMemberAssignmentValue(
    w: Writer, m: StreamsGroupCurrentMemberAssignmentValue, v: int
) -> None:
    w.buf += _fixed_iib.pack(m.member_epoch, m.previous_member_epoch, m.state)
    w.compact_count(len(m.active_tasks))
    for active_task in w.each(m.active_tasks):
        _write_StreamsCurrentTaskIds(w, active_task, v)
    w.compact_count(len(m.standby_tasks))
    for standby_task in w.each(m.standby_tasks):
        _write_StreamsCurrentTaskIds(w, standby_task, v)
    w.compact_count(len(m.warmup_tasks))
    for warmup_task in w.each(m.warmup_tasks):
        _write_StreamsCurrentTaskIds(w, warmup_task, v)
    w.compact_count(len(m.active_tasks_pending_revocation))
    for active_tasks_pending_revocation_item in w.each(m.active_tasks_pending_revocation):
        _write_StreamsCurrentTaskIds(w, active_tasks_pending_revocation_item, v)
    w.compact_count(len(m.standby_tasks_pending_revocation))
    for standby_tasks_pending_revocation_item in w.each(m.standby_tasks_pending_revocation):
        _write_StreamsCurrentTaskIds(w, standby_tasks_pending_revocation_item, v)
    w.compact_count(len(m.warmup_tasks_pending_revocation))
    for warmup_tasks_pending_revocation_item in w.each(m.warmup_tasks_pending_revocation):
        _write_StreamsCurrentTaskIds(w, warmup_tasks_pending_revocation_item, v)
    w.uvarint(0)


class StreamsGroupTopologyKey(Message):
    """StreamsGroupTopologyKey, a record_key: version 23."""

    __slots__ = ("group_id",)
    MIN_VERSION: ClassVar[int] = 23
    MAX_VERSION: ClassVar[int] = 23
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTopologyKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTopologyKey:
        return _read_StreamsGroupTopologyKey(r, version)


def _read_StreamsGroupTopologyKey(r: Reader, v: int) -> StreamsGroupTopologyKey:
    m = StreamsGroupTopologyKey.__new__(StreamsGroupTopologyKey)
    m.group_id = r.string()
    return m


def _write_StreamsGroupTopologyKey(w: Writer, m: StreamsGroupTopologyKey, v: int) -> None:
    w.string(m.group_id)


class StreamsTopicConfig(Structure):
    """One element of subtopologies.state_changelog_topics.topic_configs in StreamsGroupTopologyValue."""

    __slots__ = ("key", "value")

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key: str = key
        self.value: str = value


def _read_StreamsTopicConfig(r: Reader, v: int) -> StreamsTopicConfig:
    m = StreamsTopicConfig.__new__(StreamsTopicConfig)
    m.key = r.compact_string()
    m.value = r.compact_string()
    r.skip_tags()
    return m


def _write_StreamsTopicConfig(w: Writer, m: StreamsTopicConfig, v: int) -> None:
    w.compact_string(m.key)
    w.compact_string(m.value)
    w.uvarint(0)


class StreamsTopicInfo(Structure):
    """One element of subtopologies.state_changelog_topics in StreamsGroupTopologyValue."""

    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[StreamsTopicConfig] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: list[StreamsTopicConfig] = [] if topic_configs is EMPTY else topic_configs


def _read_StreamsTopicInfo(r: Reader, v: int) -> StreamsTopicInfo:
    m = StreamsTopicInfo.__new__(StreamsTopicInfo)
    m.name = r.compact_string()
    m.partitions, m.replication_factor = r.fixed(_fixed_ih)
    m.topic_configs = [_read_StreamsTopicConfig(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsTopicInfo(w: Writer, m: StreamsTopicInfo, v: int) -> None:
    w.compact_string(m.name)
    w.buf += _fixed_ih.pack(m.partitions, m.replication_factor)
    w.compact_count(len(m.topic_configs))
    for topic_config in w.each(m.topic_configs):
        _write_StreamsTopicConfig(w, topic_config, v)
    w.uvarint(0)


class StreamsCopartitionGroup(Structure):
    """One element of subtopologies.copartition_groups in StreamsGroupTopologyValue."""

    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")

    def __init__(
        self,
        *,
        source_topics: list[int] = EMPTY,
        source_topic_regex: list[int] = EMPTY,
        repartition_source_topics: list[int] = EMPTY,
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex: list[int] = [] if source_topic_regex is EMPTY else source_topic_regex
        self.repartition_source_topics: list[int] = (
            [] if repartition_source_topics is EMPTY else repartition_source_topics
        )


def _read_StreamsCopartitionGroup(r: Reader, v: int) -> StreamsCopartitionGroup:
    m = StreamsCopartitionGroup.__new__(StreamsCopartitionGroup)
    m.source_topics = [r.int16() for _ in r.each(r.compact_count(2))]
    m.source_topic_regex = [r.int16() for _ in r.each(r.compact_count(2))]
    m.repartition_source_topics = [r.int16() for _ in r.each(r.compact_count(2))]
    r.skip_tags()
    return m


def _write_StreamsCopartitionGroup(w: Writer, m: StreamsCopartitionGroup, v: int) -> None:
    w.compact_count(len(m.source_topics))
    for source_topic in w.each(m.source_topics):
        w.int16(source_topic)
    w.compact_count(len(m.source_topic_regex))
    for source_topic_regex_item in w.each(m.source_topic_regex):
        w.int16(source_topic_regex_item)
    w.compact_count(len(m.repartition_source_topics))
    for repartition_source_topic in w.each(m.repartition_source_topics):
        w.int16(repartition_source_topic)
    w.uvarint(0)


class StreamsSubtopology(Structure):
    """One element of subtopologies in StreamsGroupTopologyValue."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        source_topic_regex: list[str] = EMPTY,
        state_changelog_topics: list[StreamsTopicInfo] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        repartition_source_topics: list[StreamsTopicInfo] = EMPTY,
        copartition_groups: list[StreamsCopartitionGroup] = EMPTY,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex: list[str] = [] if source_topic_regex is EMPTY else source_topic_regex
        self.state_changelog_topics: list[StreamsTopicInfo] = (
            [] if state_changelog_topics is EMPTY else state_changelog_topics
        )
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.repartition_source_topics: list[StreamsTopicInfo] = (
            [] if repartition_source_topics is EMPTY else repartition_source_topics
        )
        self.copartition_groups: list[StreamsCopartitionGroup] = (
            [] if copartition_groups is EMPTY else copartition_groups
        )


def _read_StreamsSubtopology(r: Reader, v: int) -> StreamsSubtopology:
    m = StreamsSubtopology.__new__(StreamsSubtopology)
    m.subtopology_id = r.compact_string()
    m.source_topics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.source_topic_regex = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.state_changelog_topics = [_read_StreamsTopicInfo(r, v) for _ in r.each(r.compact_count(9))]
    m.repartition_sink_topics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.repartition_source_topics = [_read_StreamsTopicInfo(r, v) for _ in r.each(r.compact_count(9))]
    m.copartition_groups = [_read_StreamsCopartitionGroup(r, v) for _ in r.each(r.compact_count(4))]
    r.skip_tags()
    return m


def _write_StreamsSubtopology(w: Writer, m: StreamsSubtopology, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.compact_count(len(m.source_topics))
    for source_topic in w.each(m.source_topics):
        w.compact_string(source_topic)
    w.compact_count(len(m.source_topic_regex))
    for source_topic_regex_item in w.each(m.source_topic_regex):
        w.compact_string(source_topic_regex_item)
    w.compact_count(len(m.state_changelog_topics))
    for state_changelog_topic in w.each(m.state_changelog_topics):
        _write_StreamsTopicInfo(w, state_changelog_topic, v)
    w.compact_count(len(m.repartition_sink_topics))
    for repartition_sink_topic in w.each(m.repartition_sink_topics):
        w.compact_string(repartition_sink_topic)
    w.compact_count(len(m.repartition_source_topics))
    for repartition_source_topic in w.each(m.repartition_source_topics):
        _write_StreamsTopicInfo(w, repartition_source_topic, v)
    w.compact_count(len(m.copartition_groups))
    for copartition_group in w.each(m.copartition_groups):
        _write_StreamsCopartitionGroup(w, copartition_group, v)
    w.uvarint(0)


class StreamsGroupTopologyValue(Message):
    """StreamsGroupTopologyValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("epoch", "subtopologies")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, epoch: int = 0, subtopologies: list[StreamsSubtopology] = EMPTY) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[StreamsSubtopology] = [] if subtopologies is EMPTY else subtopologies

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTopologyValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTopologyValue:
        return _read_StreamsGroupTopologyValue(r, version)


def _read_StreamsGroupTopologyValue(r: Reader, v: int) -> StreamsGroupTopologyValue:
    m = StreamsGroupTopologyValue.__new__(StreamsGroupTopologyValue)
    m.epoch = r.int32()
    m.subtopologies = [_read_StreamsSubtopology(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_StreamsGroupTopologyValue(w: Writer, m: StreamsGroupTopologyValue, v: int) -> None:
    w.int32(m.epoch)
    w.compact_count(len(m.subtopologies))
    for subtopologie in w.each(m.subtopologies):
        _write_StreamsSubtopology(w, subtopologie, v)
    w.uvarint(0)
