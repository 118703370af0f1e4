"""StreamsGroupTopologyDescriptionUpdate (API 93). Generated from schema/streams_group_topology_description_update.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class StreamsTopologyDescriptionNode(Structure):
    """One element of topology_description.subtopologies.nodes in StreamsGroupTopologyDescriptionUpdateRequest."""

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
    """One element of topology_description.subtopologies in StreamsGroupTopologyDescriptionUpdateRequest."""

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
    """One element of topology_description.global_stores in StreamsGroupTopologyDescriptionUpdateRequest."""

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
    """The value of topology_description in StreamsGroupTopologyDescriptionUpdateRequest."""

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


class StreamsGroupTopologyDescriptionUpdateRequest(Request["StreamsGroupTopologyDescriptionUpdateResponse"]):
    """StreamsGroupTopologyDescriptionUpdateRequest, a request: version 0, flexible from 0."""

    __slots__ = ("group_id", "member_id", "topology_epoch", "topology_description")
    API_KEY: ClassVar[int] = 93
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: StreamsTopologyDescription | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.topology_epoch: int = topology_epoch
        self.topology_description: StreamsTopologyDescription = (
            StreamsTopologyDescription() if topology_description is None else topology_description
        )

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTopologyDescriptionUpdateRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTopologyDescriptionUpdateRequest:
        return _read_StreamsGroupTopologyDescriptionUpdateRequest(r, version)


def _read_StreamsGroupTopologyDescriptionUpdateRequest(
    r: Reader, v: int
) -> StreamsGroupTopologyDescriptionUpdateRequest:
    m = StreamsGroupTopologyDescriptionUpdateRequest.__new__(StreamsGroupTopologyDescriptionUpdateRequest)
    m.group_id = r.compact_string()
    m.member_id = r.compact_string()
    m.topology_epoch = r.int32()
    m.topology_description = _read_StreamsTopologyDescription(r, v)
    r.skip_tags()
    return m


def _write_StreamsGroupTopologyDescriptionUpdateRequest(
    w: Writer, m: StreamsGroupTopologyDescriptionUpdateRequest, v: int
) -> None:
    w.compact_string(m.group_id)
    w.compact_string(m.member_id)
    w.int32(m.topology_epoch)
    _write_StreamsTopologyDescription(w, m.topology_description, v)
    w.uvarint(0)


class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    """StreamsGroupTopologyDescriptionUpdateResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    API_KEY: ClassVar[int] = 93
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def write(self, w: Writer, version: int) -> None:
        _write_StreamsGroupTopologyDescriptionUpdateResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> StreamsGroupTopologyDescriptionUpdateResponse:
        return _read_StreamsGroupTopologyDescriptionUpdateResponse(r, version)


def _read_StreamsGroupTopologyDescriptionUpdateResponse(
    r: Reader, v: int
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    m = StreamsGroupTopologyDescriptionUpdateResponse.__new__(StreamsGroupTopologyDescriptionUpdateResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    r.skip_tags()
    return m


def _write_StreamsGroupTopologyDescriptionUpdateResponse(
    w: Writer, m: StreamsGroupTopologyDescriptionUpdateResponse, v: int
) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    w.uvarint(0)
