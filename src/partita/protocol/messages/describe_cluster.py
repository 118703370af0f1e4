"""DescribeCluster (API 60). Generated from schema/describe_cluster.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class DescribeClusterRequest(Request["DescribeClusterResponse"]):
    """DescribeClusterRequest, a request: versions 0 to 2, flexible from 0."""

    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")
    API_KEY: ClassVar[int] = 60
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeClusterRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeClusterRequest:
        return _read_DescribeClusterRequest(r, version)


def _read_DescribeClusterRequest(r: Reader, v: int) -> DescribeClusterRequest:
    m = DescribeClusterRequest.__new__(DescribeClusterRequest)
    m.include_cluster_authorized_operations = r.boolean()
    m.endpoint_type = r.int8() if v >= 1 else 1
    m.include_fenced_brokers = r.boolean() if v == 2 else False
    r.skip_tags()
    return m


def _write_DescribeClusterRequest(w: Writer, m: DescribeClusterRequest, v: int) -> None:
    w.boolean(m.include_cluster_authorized_operations)
    if v >= 1:
        w.int8(m.endpoint_type)
    if v == 2:
        w.boolean(m.include_fenced_brokers)
    w.uvarint(0)


class DescribeClusterBroker(Structure):
    """One element of brokers in DescribeClusterResponse."""

    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")

    def __init__(
        self, *, broker_id: int = 0, host: str = "", port: int = 0, rack: str | None = None, is_fenced: bool = False
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced


def _read_DescribeClusterBroker(r: Reader, v: int) -> DescribeClusterBroker:
    m = DescribeClusterBroker.__new__(DescribeClusterBroker)
    m.broker_id = r.int32()
    m.host = r.compact_string()
    m.port = r.int32()
    m.rack = r.compact_nullable_string()
    m.is_fenced = r.boolean() if v == 2 else False
    r.skip_tags()
    return m


def _write_DescribeClusterBroker(w: Writer, m: DescribeClusterBroker, v: int) -> None:
    w.int32(m.broker_id)
    w.compact_string(m.host)
    w.int32(m.port)
    w.compact_nullable_string(m.rack)
    if v == 2:
        w.boolean(m.is_fenced)
    w.uvarint(0)


class DescribeClusterResponse(Message):
    """DescribeClusterResponse, a response: versions 0 to 2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )
    API_KEY: ClassVar[int] = 60
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeClusterResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeClusterResponse:
        return _read_DescribeClusterResponse(r, version)


def _read_DescribeClusterResponse(r: Reader, v: int) -> DescribeClusterResponse:
    m = DescribeClusterResponse.__new__(DescribeClusterResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.error_message = r.compact_nullable_string()
    m.endpoint_type = r.int8() if v >= 1 else 1
    m.cluster_id = r.compact_string()
    m.controller_id = r.int32()
    m.brokers = [_read_DescribeClusterBroker(r, v) for _ in r.each(r.compact_count(11))]
    m.cluster_authorized_operations = r.int32()
    r.skip_tags()
    return m


def _write_DescribeClusterResponse(w: Writer, m: DescribeClusterResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_nullable_string(m.error_message)
    if v >= 1:
        w.int8(m.endpoint_type)
    w.compact_string(m.cluster_id)
    w.int32(m.controller_id)
    w.compact_count(len(m.brokers))
    for broker in w.each(m.brokers):
        _write_DescribeClusterBroker(w, broker, v)
    w.int32(m.cluster_authorized_operations)
    w.uvarint(0)
