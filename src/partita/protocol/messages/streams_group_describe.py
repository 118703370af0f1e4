"""StreamsGroupDescribe (API 89). Generated from schema/streams_group_describe.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_ii = Struct(">ii")
_fixed_iq = Struct(">iq")


class StreamsGroupDescribeRequest(Request["StreamsGroupDescribeResponse"]):
    """StreamsGroupDescribeRequest, a request: versions 0 to 1, flexible from 0."""

    __slots__ = ("group_ids", "include_authorized_operations", "include_topology_description")
    API_KEY: ClassVar[int] = 89
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations
        self.include_topology_description: bool = include_topology_description

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupDescribeRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupDescribeRequest:
        return _read_StreamsGroupDescribeRequest(r, version)


def _read_StreamsGroupDescribeRequest(r: Reader, v: int) -> StreamsGroupDescribeRequest:
    m = StreamsGroupDescribeRequest.__new__(StreamsGroupDescribeRequest)
    m.group_ids = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.include_authorized_operations = r.boolean()
    m.include_topology_description = r.boolean() if v == 1 else False
    r.skip_tags()
    return m


def _write_StreamsGroupDescribeRequest(w: Writer, m: StreamsGroupDescribeRequest, v: int) -> None:
    w.compact_count(len(m.group_ids))
    for group_id in w.each(m.group_ids):
        w.compact_string(group_id)
    w.boolean(m.include_authorized_operations)
    if v == 1:
        w.boolean(m.include_topology_description)
    w.uvarint(0)


class StreamsKeyValue(Structure):
    """One element of groups.topology.subtopologies.state_changelog_topics.topic_configs in StreamsGroupDescribeResponse."""

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
    """One element of groups.topology.subtopologies.state_changelog_topics in StreamsGroupDescribeResponse."""

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


class StreamsSubtopology(Structure):
    """One element of groups.topology.subtopologies in StreamsGroupDescribeResponse."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        state_changelog_topics: list[StreamsTopicInfo] = EMPTY,
        repartition_source_topics: list[StreamsTopicInfo] = EMPTY,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.state_changelog_topics: list[StreamsTopicInfo] = (
            [] if state_changelog_topics is EMPTY else state_changelog_topics
        )
        self.repartition_source_topics: list[StreamsTopicInfo] = (
            [] if repartition_source_topics is EMPTY else repartition_source_topics
        )


def _read_StreamsSubtopology(r: Reader, v: int) -> StreamsSubtopology:
    m = StreamsSubtopology.__new__(StreamsSubtopology)
    m.subtopology_id = r.compact_string()
    m.source_topics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.repartition_sink_topics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.state_changelog_topics = [_read_StreamsTopicInfo(r, v) for _ in r.each(r.compact_count(9))]
    m.repartition_source_topics = [_read_StreamsTopicInfo(r, v) for _ in r.each(r.compact_count(9))]
    r.skip_tags()
    return m


def _write_StreamsSubtopology(w: Writer, m: StreamsSubtopology, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.compact_count(len(m.source_topics))
    for source_topic in w.each(m.source_topics):
        w.compact_string(source_topic)
    w.compact_count(len(m.repartition_sink_topics))
    for repartition_sink_topic in w.each(m.repartition_sink_topics):
        w.compact_string(repartition_sink_topic)
    w.compact_count(len(m.state_changelog_topics))
    for state_changelog_topic in w.each(m.state_changelog_topics):
        _write_StreamsTopicInfo(w, state_changelog_topic, v)
    w.compact_count(len(m.repartition_source_topics))
    for repartition_source_topic in w.each(m.repartition_source_topics):
        _write_StreamsTopicInfo(w, repartition_source_topic, v)
    w.uvarint(0)


class StreamsTopology(Structure):
    """The value of groups.topology in StreamsGroupDescribeResponse."""

    __slots__ = ("epoch", "subtopologies")

    def __init__(self, *, epoch: int = 0, subtopologies: list[StreamsSubtopology] | None = None) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[StreamsSubtopology] | None = subtopologies


def _read_StreamsTopology(r: Reader, v: int) -> StreamsTopology:
    m = StreamsTopology.__new__(StreamsTopology)
    m.epoch = r.int32()
    m.subtopologies = (
        None if (n := r.compact_nullable_count(6)) < 0 else [_read_StreamsSubtopology(r, v) for _ in r.each(n)]
    )
    r.skip_tags()
    return m


def _write_StreamsTopology(w: Writer, m: StreamsTopology, v: int) -> None:
    w.int32(m.epoch)
    if m.subtopologies is None:
        w.compact_count(-1)
    else:
        w.compact_count(len(m.subtopologies))
        for subtopologie in w.each(m.subtopologies):
            _write_StreamsSubtopology(w, subtopologie, v)
    w.uvarint(0)


class StreamsEndpoint(Structure):
    """The value of groups.members.user_endpoint in StreamsGroupDescribeResponse."""

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
    """One element of groups.members.task_offsets in StreamsGroupDescribeResponse."""

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


class StreamsTaskIds(Structure):
    """One element of groups.members.assignment.active_tasks in StreamsGroupDescribeResponse."""

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


class StreamsAssignment(Structure):
    """The value of groups.members.assignment in StreamsGroupDescribeResponse."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")

    def __init__(
        self,
        *,
        active_tasks: list[StreamsTaskIds] = EMPTY,
        standby_tasks: list[StreamsTaskIds] = EMPTY,
        warmup_tasks: list[StreamsTaskIds] = EMPTY,
    ) -> None:
        self.active_tasks: list[StreamsTaskIds] = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[StreamsTaskIds] = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[StreamsTaskIds] = [] if warmup_tasks is EMPTY else warmup_tasks


def _read_StreamsAssignment(r: Reader, v: int) -> StreamsAssignment:
    m = StreamsAssignment.__new__(StreamsAssignment)
    m.active_tasks = [_read_StreamsTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.standby_tasks = [_read_StreamsTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    m.warmup_tasks = [_read_StreamsTaskIds(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_StreamsAssignment(w: Writer, m: StreamsAssignment, v: int) -> None:
    w.compact_count(len(m.active_tasks))
    for active_task in w.each(m.active_tasks):
        _write_StreamsTaskIds(w, active_task, v)
    w.compact_count(len(m.standby_tasks))
    for standby_task in w.each(m.standby_tasks):
        _write_StreamsTaskIds(w, standby_task, v)
    w.compact_count(len(m.warmup_tasks))
    for warmup_task in w.each(m.warmup_tasks):
        _write_StreamsTaskIds(w, warmup_task, v)
    w.uvarint(0)


class StreamsMember(Structure):
    """One element of groups.members in StreamsGroupDescribeResponse."""

    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: StreamsEndpoint | None = None,
        client_tags: list[StreamsKeyValue] = EMPTY,
        task_offsets: list[StreamsTaskOffset] = EMPTY,
        task_end_offsets: list[StreamsTaskOffset] = EMPTY,
        assignment: StreamsAssignment | None = None,
        target_assignment: StreamsAssignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: StreamsEndpoint | None = user_endpoint
        self.client_tags: list[StreamsKeyValue] = [] if client_tags is EMPTY else client_tags
        self.task_offsets: list[StreamsTaskOffset] = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets: list[StreamsTaskOffset] = [] if task_end_offsets is EMPTY else task_end_offsets
        self.assignment: StreamsAssignment = StreamsAssignment() if assignment is None else assignment
        self.target_assignment: StreamsAssignment = (
            StreamsAssignment() if target_assignment is None else target_assignment
        )
        self.is_classic: bool = is_classic


def _read_StreamsMember(r: Reader, v: int) -> StreamsMember:
    m = StreamsMember.__new__(StreamsMember)
    m.member_id = r.compact_string()
    m.member_epoch = r.int32()
    m.instance_id = r.compact_nullable_string()
    m.rack_id = r.compact_nullable_string()
    m.client_id = r.compact_string()
    m.client_host = r.compact_string()
    m.topology_epoch = r.int32()
    m.process_id = r.compact_string()
    m.user_endpoint = _read_StreamsEndpoint(r, v) if r.int8() >= 0 else None
    m.client_tags = [_read_StreamsKeyValue(r, v) for _ in r.each(r.compact_count(3))]
    m.task_offsets = [_read_StreamsTaskOffset(r, v) for _ in r.each(r.compact_count(14))]
    m.task_end_offsets = [_read_StreamsTaskOffset(r, v) for _ in r.each(r.compact_count(14))]
    m.assignment = _read_StreamsAssignment(r, v)
    m.target_assignment = _read_StreamsAssignment(r, v)
    m.is_classic = r.boolean()
    r.skip_tags()
    return m


def _write_StreamsMember(w: Writer, m: StreamsMember, v: int) -> None:
    w.compact_string(m.member_id)
    w.int32(m.member_epoch)
    w.compact_nullable_string(m.instance_id)
    w.compact_nullable_string(m.rack_id)
    w.compact_string(m.client_id)
    w.compact_string(m.client_host)
    w.int32(m.topology_epoch)
    w.compact_string(m.process_id)
    if m.user_endpoint is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_StreamsEndpoint(w, m.user_endpoint, v)
    w.compact_count(len(m.client_tags))
    for client_tag in w.each(m.client_tags):
        _write_StreamsKeyValue(w, client_tag, v)
    w.compact_count(len(m.task_offsets))
    for task_offset in w.each(m.task_offsets):
        _write_StreamsTaskOffset(w, task_offset, v)
    w.compact_count(len(m.task_end_offsets))
    for task_end_offset in w.each(m.task_end_offsets):
        _write_StreamsTaskOffset(w, task_end_offset, v)
    _write_StreamsAssignment(w, m.assignment, v)
    _write_StreamsAssignment(w, m.target_assignment, v)
    w.boolean(m.is_classic)
    w.uvarint(0)


class StreamsTopologyDescriptionNode(Structure):
    """One element of groups.topology_description.subtopologies.nodes in StreamsGroupDescribeResponse."""

    __slots__ = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")

    def __init__(
        self,
        *,
        name: str = "",
        node_type: int = 0,
        source_topics: list[str] = EMPTY,
        sink_topic: str | None = None,
        stores: list[str] = EMPTY,
        successors: list[str] = EMPTY,
    ) -> None:
        self.name: str = name
        self.node_type: int = node_type
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.sink_topic: str | None = sink_topic
        self.stores: list[str] = [] if stores is EMPTY else stores
        self.successors: list[str] = [] if successors is EMPTY else successors


def _read_StreamsTopologyDescriptionNode(r: Reader, v: int) -> StreamsTopologyDescriptionNode:
    m = StreamsTopologyDescriptionNode.__new__(StreamsTopologyDescriptionNode)
    m.name = r.compact_string()
    m.node_type = r.int8()
    m.source_topics = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.sink_topic = r.compact_nullable_string()
    m.stores = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.successors = [r.compact_string() for _ in r.each(r.compact_count(1))]
    r.skip_tags()
    return m


def _write_StreamsTopologyDescriptionNode(w: Writer, m: StreamsTopologyDescriptionNode, v: int) -> None:
    w.compact_string(m.name)
    w.int8(m.node_type)
    w.compact_count(len(m.source_topics))
    for source_topic in w.each(m.source_topics):
        w.compact_string(source_topic)
    w.compact_nullable_string(m.sink_topic)
    w.compact_count(len(m.stores))
    for store in w.each(m.stores):
        w.compact_string(store)
    w.compact_count(len(m.successors))
    for successor in w.each(m.successors):
        w.compact_string(successor)
    w.uvarint(0)


class StreamsTopologyDescriptionSubtopology(Structure):
    """One element of groups.topology_description.subtopologies in StreamsGroupDescribeResponse."""

    __slots__ = ("subtopology_id", "nodes")

    def __init__(self, *, subtopology_id: str = "", nodes: list[StreamsTopologyDescriptionNode] = EMPTY) -> None:
        self.subtopology_id: str = subtopology_id
        self.nodes: list[StreamsTopologyDescriptionNode] = [] if nodes is EMPTY else nodes


def _read_StreamsTopologyDescriptionSubtopology(r: Reader, v: int) -> StreamsTopologyDescriptionSubtopology:
    m = StreamsTopologyDescriptionSubtopology.__new__(StreamsTopologyDescriptionSubtopology)
    m.subtopology_id = r.compact_string()
    m.nodes = [_read_StreamsTopologyDescriptionNode(r, v) for _ in r.each(r.compact_count(7))]
    r.skip_tags()
    return m


def _write_StreamsTopologyDescriptionSubtopology(w: Writer, m: StreamsTopologyDescriptionSubtopology, v: int) -> None:
    w.compact_string(m.subtopology_id)
    w.compact_count(len(m.nodes))
    for node in w.each(m.nodes):
        _write_StreamsTopologyDescriptionNode(w, node, v)
    w.uvarint(0)


class StreamsTopologyDescriptionGlobalStore(Structure):
    """One element of groups.topology_description.global_stores in StreamsGroupDescribeResponse."""

    __slots__ = ("source", "processor")

    def __init__(
        self,
        *,
        source: StreamsTopologyDescriptionNode | None = None,
        processor: StreamsTopologyDescriptionNode | None = None,
    ) -> None:
        self.source: StreamsTopologyDescriptionNode = StreamsTopologyDescriptionNode() if source is None else source
        self.processor: StreamsTopologyDescriptionNode = (
            StreamsTopologyDescriptionNode() if processor is None else processor
        )


def _read_StreamsTopologyDescriptionGlobalStore(r: Reader, v: int) -> StreamsTopologyDescriptionGlobalStore:
    m = StreamsTopologyDescriptionGlobalStore.__new__(StreamsTopologyDescriptionGlobalStore)
    m.source = _read_StreamsTopologyDescriptionNode(r, v)
    m.processor = _read_StreamsTopologyDescriptionNode(r, v)
    r.skip_tags()
    return m


def _write_StreamsTopologyDescriptionGlobalStore(w: Writer, m: StreamsTopologyDescriptionGlobalStore, v: int) -> None:
    _write_StreamsTopologyDescriptionNode(w, m.source, v)
    _write_StreamsTopologyDescriptionNode(w, m.processor, v)
    w.uvarint(0)


class StreamsTopologyDescription(Structure):
    """The value of groups.topology_description in StreamsGroupDescribeResponse."""

    __slots__ = ("subtopologies", "global_stores")

    def __init__(
        self,
        *,
        subtopologies: list[StreamsTopologyDescriptionSubtopology] = EMPTY,
        global_stores: list[StreamsTopologyDescriptionGlobalStore] = EMPTY,
    ) -> None:
        self.subtopologies: list[StreamsTopologyDescriptionSubtopology] = (
            [] if subtopologies is EMPTY else subtopologies
        )
        self.global_stores: list[StreamsTopologyDescriptionGlobalStore] = (
            [] if global_stores is EMPTY else global_stores
        )


def _read_StreamsTopologyDescription(r: Reader, v: int) -> StreamsTopologyDescription:
    m = StreamsTopologyDescription.__new__(StreamsTopologyDescription)
    m.subtopologies = [_read_StreamsTopologyDescriptionSubtopology(r, v) for _ in r.each(r.compact_count(3))]
    m.global_stores = [_read_StreamsTopologyDescriptionGlobalStore(r, v) for _ in r.each(r.compact_count(15))]
    r.skip_tags()
    return m


def _write_StreamsTopologyDescription(w: Writer, m: StreamsTopologyDescription, v: int) -> None:
    w.compact_count(len(m.subtopologies))
    for subtopologie in w.each(m.subtopologies):
        _write_StreamsTopologyDescriptionSubtopology(w, subtopologie, v)
    w.compact_count(len(m.global_stores))
    for global_store in w.each(m.global_stores):
        _write_StreamsTopologyDescriptionGlobalStore(w, global_store, v)
    w.uvarint(0)


class StreamsDescribedGroup(Structure):
    """One element of groups in StreamsGroupDescribeResponse."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
        "topology_description",
        "topology_description_status",
        "assignor_name",
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
        topology: StreamsTopology | None = None,
        members: list[StreamsMember] = EMPTY,
        authorized_operations: int = -2147483648,
        topology_description: StreamsTopologyDescription | None = None,
        topology_description_status: int = 0,
        assignor_name: str | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.topology: StreamsTopology | None = topology
        self.members: list[StreamsMember] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations
        self.topology_description: StreamsTopologyDescription | None = topology_description
        self.topology_description_status: int = topology_description_status
        self.assignor_name: str | None = assignor_name


def _read_StreamsDescribedGroup(r: Reader, v: int) -> StreamsDescribedGroup:
    m = StreamsDescribedGroup.__new__(StreamsDescribedGroup)
    m.error_code = r.int16()
    m.error_message = r.compact_nullable_string()
    m.group_id = r.compact_string()
    m.group_state = r.compact_string()
    m.group_epoch, m.assignment_epoch = r.fixed(_fixed_ii)
    m.topology = _read_StreamsTopology(r, v) if r.int8() >= 0 else None
    m.members = [_read_StreamsMember(r, v) for _ in r.each(r.compact_count(28))]
    m.authorized_operations = r.int32()
    m.topology_description = (_read_StreamsTopologyDescription(r, v) if r.int8() >= 0 else None) if v == 1 else None
    m.topology_description_status = r.int8() if v == 1 else 0
    m.assignor_name = r.compact_nullable_string() if v == 1 else None
    r.skip_tags()
    return m


def _write_StreamsDescribedGroup(w: Writer, m: StreamsDescribedGroup, v: int) -> None:
    w.int16(m.error_code)
    w.compact_nullable_string(m.error_message)
    w.compact_string(m.group_id)
    w.compact_string(m.group_state)
    w.buf += _fixed_ii.pack(m.group_epoch, m.assignment_epoch)
    if m.topology is None:
        w.int8(-1)
    else:
        w.int8(1)
        _write_StreamsTopology(w, m.topology, v)
    w.compact_count(len(m.members))
    for member in w.each(m.members):
        _write_StreamsMember(w, member, v)
    w.int32(m.authorized_operations)
    if v == 1:
        if m.topology_description is None:
            w.int8(-1)
        else:
            w.int8(1)
            _write_StreamsTopologyDescription(w, m.topology_description, v)
        w.int8(m.topology_description_status)
        w.compact_nullable_string(m.assignor_name)
    w.uvarint(0)


class StreamsGroupDescribeResponse(Message):
    """StreamsGroupDescribeResponse, a response: versions 0 to 1, flexible from 0."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY: ClassVar[int] = 89
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, groups: list[StreamsDescribedGroup] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[StreamsDescribedGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupDescribeResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupDescribeResponse:
        return _read_StreamsGroupDescribeResponse(r, version)


def _read_StreamsGroupDescribeResponse(r: Reader, v: int) -> StreamsGroupDescribeResponse:
    m = StreamsGroupDescribeResponse.__new__(StreamsGroupDescribeResponse)
    m.throttle_time_ms = r.int32()
    m.groups = [_read_StreamsDescribedGroup(r, v) for _ in r.each(r.compact_count(20))]
    r.skip_tags()
    return m


def _write_StreamsGroupDescribeResponse(w: Writer, m: StreamsGroupDescribeResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.groups))
    for group in w.each(m.groups):
        _write_StreamsDescribedGroup(w, group, v)
    w.uvarint(0)
