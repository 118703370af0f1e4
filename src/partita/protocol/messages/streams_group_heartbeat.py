"""StreamsGroupHeartbeat (API 88). Generated from schema/streams_group_heartbeat.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_iq = Struct(">iq")


class StreamsKeyValue(Structure):
    """One element of topology.subtopologies.state_changelog_topics.topic_configs in StreamsGroupHeartbeatRequest."""

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


class StreamsTopicInfo(Structure):
    """One element of topology.subtopologies.state_changelog_topics in StreamsGroupHeartbeatRequest."""

    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[StreamsKeyValue] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: list[StreamsKeyValue] = [] if topic_configs is EMPTY else topic_configs


def _read_StreamsTopicInfo(r: Reader, v: int) -> StreamsTopicInfo:
    m = StreamsTopicInfo.__new__(StreamsTopicInfo)
    m.name = r.compact_string()
    m.partitions, m.replication_factor = r.fixed(_fixed_ih)
    m.topic_configs = [_read_StreamsKeyValue(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsTopicInfo(w: Writer, m: StreamsTopicInfo, v: int) -> None:
    w.compact_string(m.name)
    w.buf += _fixed_ih.pack(m.partitions, m.replication_factor)
    w.compact_count(len(m.topic_configs))
    for topic_config in w.each(m.topic_configs):
        _write_StreamsKeyValue(w, topic_config, v)
    w.uvarint(0)


class StreamsCopartitionGroup(Structure):
    """One element of topology.subtopologies.copartition_groups in StreamsGroupHeartbeatRequest."""

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
    """One element of topology.subtopologies in StreamsGroupHeartbeatRequest."""

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


class StreamsTopology(Structure):
    """The value of topology in StreamsGroupHeartbeatRequest."""

    __slots__ = ("epoch", "subtopologies")

    def __init__(self, *, epoch: int = 0, subtopologies: list[StreamsSubtopology] = EMPTY) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[StreamsSubtopology] = [] if subtopologies is EMPTY else subtopologies


def _read_StreamsTopology(r: Reader, v: int) -> StreamsTopology:
    m = StreamsTopology.__new__(StreamsTopology)
    m.epoch = r.int32()
    m.subtopologies = [_read_StreamsSubtopology(r, v) for _ in r.each(r.compact_count(8))]
    r.skip_tags()
    return m


def _write_StreamsTopology(w: Writer, m: StreamsTopology, v: int) -> None:
    w.int32(m.epoch)
    w.compact_count(len(m.subtopologies))
    for subtopologie in w.each(m.subtopologies):
        _write_StreamsSubtopology(w, subtopologie, v)
    w.uvarint(0)


class StreamsTaskIds(Structure):
    """One element of active_tasks in StreamsGroupHeartbeatRequest."""

    __slots__ = ("subtopology_id", "partitions")

    def __init__(self, *, subtopology_id: str = "", partitions: list[int] = EMPTY) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_StreamsTaskIds(r: Reader, v: int) -> StreamsTaskIds:
    m = StreamsTaskIds.__new__(StreamsTaskIds)
    m.subtopology_id = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_StreamsTaskIds(w: Writer, m: StreamsTaskIds, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class StreamsEndpoint(Structure):
    """The value of user_endpoint in StreamsGroupHeartbeatRequest."""

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


class StreamsTaskOffset(Structure):
    """One element of task_offsets in StreamsGroupHeartbeatRequest."""

    __slots__ = ("subtopology_id", "partition", "offset")

    def __init__(self, *, subtopology_id: str = "", partition: int = 0, offset: int = 0) -> None:
        self.subtopology_id: str = subtopology_id
        self.partition: int = partition
        self.offset: int = offset


def _read_StreamsTaskOffset(r: Reader, v: int) -> StreamsTaskOffset:
    m = StreamsTaskOffset.__new__(StreamsTaskOffset)
    m.subtopology_id = r.compact_string()
    m.partition, m.offset = r.fixed(_fixed_iq)
    r.skip_tags()
    return m


def _write_StreamsTaskOffset(w: Writer, m: StreamsTaskOffset, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.buf += _fixed_iq.pack(m.partition, m.offset)
    w.uvarint(0)


class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"]):
    """StreamsGroupHeartbeatRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )
    API_KEY: ClassVar[int] = 88
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: StreamsTopology | None = None,
        active_tasks: list[StreamsTaskIds] | None = None,
        standby_tasks: list[StreamsTaskIds] | None = None,
        warmup_tasks: list[StreamsTaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsEndpoint | None = None,
        client_tags: list[StreamsKeyValue] | None = None,
        task_offsets: list[StreamsTaskOffset] | None = None,
        task_end_offsets: list[StreamsTaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology: StreamsTopology | None = topology
        self.active_tasks: list[StreamsTaskIds] | None = active_tasks
        self.standby_tasks: list[StreamsTaskIds] | None = standby_tasks
        self.warmup_tasks: list[StreamsTaskIds] | None = warmup_tasks
        self.process_id: str | None = process_id
        self.user_endpoint: StreamsEndpoint | None = user_endpoint
        self.client_tags: list[StreamsKeyValue] | None = client_tags
        self.task_offsets: list[StreamsTaskOffset] | None = task_offsets
        self.task_end_offsets: list[StreamsTaskOffset] | None = task_end_offsets
        self.shutdown_application: bool = shutdown_application

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupHeartbeatRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupHeartbeatRequest:
        return _read_StreamsGroupHeartbeatRequest(r, version)


def _read_StreamsGroupHeartbeatRequest(r: Reader, v: int) -> StreamsGroupHeartbeatRequest:
    m = StreamsGroupHeartbeatRequest.__new__(StreamsGroupHeartbeatRequest)
    m.group_id = r.compact_string()
    m.member_id = r.compact_string()
    m.member_epoch, m.endpoint_information_epoch = r.fixed(_fixed_ii)
    m.instance_id = r.compact_nullable_string()
    m.rack_id = r.compact_nullable_string()
    m.rebalance_timeout_ms = r.int32()
    m.topology = _read_StreamsTopology(r, v) if r.int8() >= 0 else None
    m.active_tasks = None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsTaskIds(r, v) for _ in r.each(n)]
    m.standby_tasks = (
        None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsTaskIds(r, v) for _ in r.each(n)]
    )
    m.warmup_tasks = None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsTaskIds(r, v) for _ in r.each(n)]
    m.process_id = r.compact_nullable_string()
    m.user_endpoint = _read_StreamsEndpoint(r, v) if r.int8() >= 0 else None
    m.client_tags = None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsKeyValue(r, v) for _ in r.each(n)]
    m.task_offsets = (
        None if (n := r.compact_nullable_count(14)) < 0 else [_read_StreamsTaskOffset(r, v) for _ in r.each(n)]
    )
    m.task_end_offsets = (
        None if (n := r.compact_nullable_count(14)) < 0 else [_read_StreamsTaskOffset(r, v) for _ in r.each(n)]
    )
    m.shutdown_application = r.boolean()
    r.skip_tags()
    return m


def _write_StreamsGroupHeartbeatRequest(w: Writer, m: StreamsGroupHeartbeatRequest, v: int) -> None:
    w.compact_string(m.group_id)
    w.compact_string(m.member_id)
    w.buf += _fixed_ii.pack(m.member_epoch, m.endpoint_information_epoch)
    w.compact_nullable_string(m.instance_id)
    w.compact_nullable_string(m.rack_id)
    w.int32(m.rebalance_timeout_ms)
    if m.topology is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_StreamsTopology(w, m.topology, v)
    if m.active_tasks is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.active_tasks))
        for active_task in w.each(m.active_tasks):
            _write_StreamsTaskIds(w, active_task, v)
    if m.standby_tasks is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.standby_tasks))
        for standby_task in w.each(m.standby_tasks):
            _write_StreamsTaskIds(w, standby_task, v)
    if m.warmup_tasks is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.warmup_tasks))
        for warmup_task in w.each(m.warmup_tasks):
            _write_StreamsTaskIds(w, warmup_task, v)
    w.compact_nullable_string(m.process_id)
    if m.user_endpoint is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_StreamsEndpoint(w, m.user_endpoint, v)
    if m.client_tags is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.client_tags))
        for client_tag in w.each(m.client_tags):
            _write_StreamsKeyValue(w, client_tag, v)
    if m.task_offsets is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.task_offsets))
        for task_offset in w.each(m.task_offsets):
            _write_StreamsTaskOffset(w, task_offset, v)
    if m.task_end_offsets is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.task_end_offsets))
        for task_end_offset in w.each(m.task_end_offsets):
            _write_StreamsTaskOffset(w, task_end_offset, v)
    w.boolean(m.shutdown_application)
    w.uvarint(0)


class StreamsStatus(Structure):
    """One element of status in StreamsGroupHeartbeatResponse."""

    __slots__ = ("status_code", "status_detail")

    def __init__(self, *, status_code: int = 0, status_detail: str = "") -> None:
        self.status_code: int = status_code
        self.status_detail: str = status_detail


def _read_StreamsStatus(r: Reader, v: int) -> StreamsStatus:
    m = StreamsStatus.__new__(StreamsStatus)
    m.status_code = r.int8()
    m.status_detail = r.compact_string()
    r.skip_tags()
    return m


def _write_StreamsStatus(w: Writer, m: StreamsStatus, v: int) -> None:
    w.int8(m.status_code)
    w.compact_string(m.status_detail)
    w.uvarint(0)


class StreamsTopicPartition(Structure):
    """One element of partitions_by_user_endpoint.active_partitions in StreamsGroupHeartbeatResponse."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_StreamsTopicPartition(r: Reader, v: int) -> StreamsTopicPartition:
    m = StreamsTopicPartition.__new__(StreamsTopicPartition)
    m.topic = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_StreamsTopicPartition(w: Writer, m: StreamsTopicPartition, v: int) -> None:
    w.compact_string(m.topic)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class StreamsEndpointToPartitions(Structure):
    """One element of partitions_by_user_endpoint in StreamsGroupHeartbeatResponse."""

    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")

    def __init__(
        self,
        *,
        user_endpoint: StreamsEndpoint | None = None,
        active_partitions: list[StreamsTopicPartition] = EMPTY,
        standby_partitions: list[StreamsTopicPartition] = EMPTY,
    ) -> None:
        self.user_endpoint: StreamsEndpoint = StreamsEndpoint() if user_endpoint is None else user_endpoint
        self.active_partitions: list[StreamsTopicPartition] = [] if active_partitions is EMPTY else active_partitions
        self.standby_partitions: list[StreamsTopicPartition] = [] if standby_partitions is EMPTY else standby_partitions


def _read_StreamsEndpointToPartitions(r: Reader, v: int) -> StreamsEndpointToPartitions:
    m = StreamsEndpointToPartitions.__new__(StreamsEndpointToPartitions)
    m.user_endpoint = _read_StreamsEndpoint(r, v)
    m.active_partitions = [_read_StreamsTopicPartition(r, v) for _ in r.each(r.compact_count(3))]
    m.standby_partitions = [_read_StreamsTopicPartition(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsEndpointToPartitions(w: Writer, m: StreamsEndpointToPartitions, v: int) -> None:
    _write_StreamsEndpoint(w, m.user_endpoint, v)
    w.compact_count(len(m.active_partitions))
    for active_partition in w.each(m.active_partitions):
        _write_StreamsTopicPartition(w, active_partition, v)
    w.compact_count(len(m.standby_partitions))
    for standby_partition in w.each(m.standby_partitions):
        _write_StreamsTopicPartition(w, standby_partition, v)
    w.uvarint(0)


class StreamsGroupHeartbeatResponse(Message):
    """StreamsGroupHeartbeatResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag_legacy",
        "task_offset_interval_ms",
        "acceptable_recovery_lag",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "topology_description_required",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )
    API_KEY: ClassVar[int] = 88
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: list[StreamsStatus] | None = EMPTY,
        active_tasks: list[StreamsTaskIds] | None = None,
        standby_tasks: list[StreamsTaskIds] | None = None,
        warmup_tasks: list[StreamsTaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[StreamsEndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.acceptable_recovery_lag_legacy: int = acceptable_recovery_lag_legacy
        self.task_offset_interval_ms: int = task_offset_interval_ms
        self.acceptable_recovery_lag: int = acceptable_recovery_lag
        self.status: list[StreamsStatus] | None = [] if status is EMPTY else status
        self.active_tasks: list[StreamsTaskIds] | None = active_tasks
        self.standby_tasks: list[StreamsTaskIds] | None = standby_tasks
        self.warmup_tasks: list[StreamsTaskIds] | None = warmup_tasks
        self.topology_description_required: bool = topology_description_required
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.partitions_by_user_endpoint: list[StreamsEndpointToPartitions] | None = partitions_by_user_endpoint

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupHeartbeatResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupHeartbeatResponse:
        return _read_StreamsGroupHeartbeatResponse(r, version)


def _read_StreamsGroupHeartbeatResponse(r: Reader, v: int) -> StreamsGroupHeartbeatResponse:
    m = StreamsGroupHeartbeatResponse.__new__(StreamsGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.member_id = r.compact_string()
    m.member_epoch, m.heartbeat_interval_ms = r.fixed(_fixed_ii)
    m.acceptable_recovery_lag_legacy = r.int32() if v == 0 else 0
    m.task_offset_interval_ms = r.int32()
    m.acceptable_recovery_lag = r.int64() if v == 1 else -1
    m.status = None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsStatus(r, v) for _ in r.each(n)]
    m.active_tasks = None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsTaskIds(r, v) for _ in r.each(n)]
    m.standby_tasks = (
        None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsTaskIds(r, v) for _ in r.each(n)]
    )
    m.warmup_tasks = None if (n := r.compact_nullable_count(3)) < 0 else [_read_StreamsTaskIds(r, v) for _ in r.each(n)]
    m.topology_description_required = r.boolean() if v == 1 else False
    m.endpoint_information_epoch = r.int32()
    m.partitions_by_user_endpoint = (
        None if (n := r.compact_nullable_count(7)) < 0 else [_read_StreamsEndpointToPartitions(r, v) for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_StreamsGroupHeartbeatResponse(w: Writer, m: StreamsGroupHeartbeatResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_string(m.member_id)
    w.buf += _fixed_ii.pack(m.member_epoch, m.heartbeat_interval_ms)
    if v == 0:
        w.int32(m.acceptable_recovery_lag_legacy)
    w.int32(m.task_offset_interval_ms)
    if v == 1:
        w.int64(m.acceptable_recovery_lag)
    if m.status is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.status))
        for statu in w.each(m.status):
            _write_StreamsStatus(w, statu, v)
    if m.active_tasks is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.active_tasks))
        for active_task in w.each(m.active_tasks):
            _write_StreamsTaskIds(w, active_task, v)
    if m.standby_tasks is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.standby_tasks))
        for standby_task in w.each(m.standby_tasks):
            _write_StreamsTaskIds(w, standby_task, v)
    if m.warmup_tasks is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.warmup_tasks))
        for warmup_task in w.each(m.warmup_tasks):
            _write_StreamsTaskIds(w, warmup_task, v)
    if v == 1:
        w.boolean(m.topology_description_required)
    w.int32(m.endpoint_information_epoch)
    if m.partitions_by_user_endpoint is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.partitions_by_user_endpoint))
        for partitions_by_user_endpoint_item in w.each(m.partitions_by_user_endpoint):
            _write_StreamsEndpointToPartitions(w, partitions_by_user_endpoint_item, v)
    w.uvarint(0)
