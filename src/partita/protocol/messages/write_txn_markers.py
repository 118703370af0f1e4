"""WriteTxnMarkers (API 27). Generated from schema/write_txn_markers.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_qh = Struct(">qh")


class WritableTxnMarkerTopic(Structure):
    """One element of markers.topics in WriteTxnMarkersRequest."""

    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


def _read_WritableTxnMarkerTopic(r: Reader, v: int) -> WritableTxnMarkerTopic:
    m = WritableTxnMarkerTopic.__new__(WritableTxnMarkerTopic)
    m.name = r.compact_string()
    m.partition_indexes = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_WritableTxnMarkerTopic(w: Writer, m: WritableTxnMarkerTopic, v: int) -> None:
    w.compact_string(m.name)
    w.compact_int32_array(m.partition_indexes)
    w.uvarint(0)


class WritableTxnMarker(Structure):
    """One element of markers in WriteTxnMarkersRequest."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_result: bool = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is EMPTY else topics
        self.coordinator_epoch: int = coordinator_epoch
        self.transaction_version: int = transaction_version


def _read_WritableTxnMarker(r: Reader, v: int) -> WritableTxnMarker:
    m = WritableTxnMarker.__new__(WritableTxnMarker)
    m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
    m.transaction_result = r.boolean()
    m.topics = [_read_WritableTxnMarkerTopic(r, v) for _ in r.each(r.compact_count(3))]
    m.coordinator_epoch = r.int32()
    m.transaction_version = r.int8() if v == 2 else 0
    r.skip_tags()
    return m


def _write_WritableTxnMarker(w: Writer, m: WritableTxnMarker, v: int) -> None:
    w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
    w.boolean(m.transaction_result)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_WritableTxnMarkerTopic(w, topic, v)
    w.int32(m.coordinator_epoch)
    if v == 2:
        w.int8(m.transaction_version)
    w.uvarint(0)


class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"]):
    """WriteTxnMarkersRequest, a request: versions 1 to 2, flexible from 1."""

    __slots__ = ("markers",)
    API_KEY: ClassVar[int] = 27
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, markers: list[WritableTxnMarker] = EMPTY) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is EMPTY else markers

    def write(self, w: Writer, version: int) -> None:
        _write_WriteTxnMarkersRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> WriteTxnMarkersRequest:
        return _read_WriteTxnMarkersRequest(r, version)


def _read_WriteTxnMarkersRequest(r: Reader, v: int) -> WriteTxnMarkersRequest:
    m = WriteTxnMarkersRequest.__new__(WriteTxnMarkersRequest)
    m.markers = [_read_WritableTxnMarker(r, v) for _ in r.each(r.compact_count(17))]
    r.skip_tags()
    return m


def _write_WriteTxnMarkersRequest(w: Writer, m: WriteTxnMarkersRequest, v: int) -> None:
    w.compact_count(len(m.markers))
    for marker in w.each(m.markers):
        _write_WritableTxnMarker(w, marker, v)
    w.uvarint(0)


class WritableTxnMarkerPartitionResult(Structure):
    """One element of markers.topics.partitions in WriteTxnMarkersResponse."""

    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


def _read_WritableTxnMarkerPartitionResult(r: Reader, v: int) -> WritableTxnMarkerPartitionResult:
    m = WritableTxnMarkerPartitionResult.__new__(WritableTxnMarkerPartitionResult)
    m.partition_index, m.error_code = r.fixed(_fixed_ih)
    r.skip_tags()
    return m


def _write_WritableTxnMarkerPartitionResult(w: Writer, m: WritableTxnMarkerPartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.error_code)
    w.uvarint(0)


class WritableTxnMarkerTopicResult(Structure):
    """One element of markers.topics in WriteTxnMarkersResponse."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[WritableTxnMarkerPartitionResult] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is EMPTY else partitions


def _read_WritableTxnMarkerTopicResult(r: Reader, v: int) -> WritableTxnMarkerTopicResult:
    m = WritableTxnMarkerTopicResult.__new__(WritableTxnMarkerTopicResult)
    m.name = r.compact_string()
    m.partitions = [_read_WritableTxnMarkerPartitionResult(r, v) for _ in r.each(r.compact_count(7))]
    r.skip_tags()
    return m


def _write_WritableTxnMarkerTopicResult(w: Writer, m: WritableTxnMarkerTopicResult, v: int) -> None:
    w.compact_string(m.name)
    w.compact_count(len(m.partitions))
    for partition in w.each(m.partitions):
        _write_WritableTxnMarkerPartitionResult(w, partition, v)
    w.uvarint(0)


class WritableTxnMarkerResult(Structure):
    """One element of markers in WriteTxnMarkersResponse."""

    __slots__ = ("producer_id", "topics")

    def __init__(self, *, producer_id: int = 0, topics: list[WritableTxnMarkerTopicResult] = EMPTY) -> None:
        self.producer_id: int = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is EMPTY else topics


def _read_WritableTxnMarkerResult(r: Reader, v: int) -> WritableTxnMarkerResult:
    m = WritableTxnMarkerResult.__new__(WritableTxnMarkerResult)
    m.producer_id = r.int64()
    m.topics = [_read_WritableTxnMarkerTopicResult(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_WritableTxnMarkerResult(w: Writer, m: WritableTxnMarkerResult, v: int) -> None:
    w.int64(m.producer_id)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_WritableTxnMarkerTopicResult(w, topic, v)
    w.uvarint(0)


class WriteTxnMarkersResponse(Message):
    """WriteTxnMarkersResponse, a response: versions 1 to 2, flexible from 1."""

    __slots__ = ("markers",)
    API_KEY: ClassVar[int] = 27
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, markers: list[WritableTxnMarkerResult] = EMPTY) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is EMPTY else markers

    def write(self, w: Writer, version: int) -> None:
        _write_WriteTxnMarkersResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> WriteTxnMarkersResponse:
        return _read_WriteTxnMarkersResponse(r, version)


def _read_WriteTxnMarkersResponse(r: Reader, v: int) -> WriteTxnMarkersResponse:
    m = WriteTxnMarkersResponse.__new__(WriteTxnMarkersResponse)
    m.markers = [_read_WritableTxnMarkerResult(r, v) for _ in r.each(r.compact_count(10))]
    r.skip_tags()
    return m


def _write_WriteTxnMarkersResponse(w: Writer, m: WriteTxnMarkersResponse, v: int) -> None:
    w.compact_count(len(m.markers))
    for marker in w.each(m.markers):
        _write_WritableTxnMarkerResult(w, marker, v)
    w.uvarint(0)
