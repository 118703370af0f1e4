"""ApiVersions (API 18). Generated from schema/api_versions.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_hh = Struct(">hh")
_fixed_hhh = Struct(">hhh")


class ApiVersionsRequest(Request["ApiVersionsResponse"]):
    """ApiVersionsRequest, a request: versions 0 to 5, flexible from 3."""

    __slots__ = ("client_software_name", "client_software_version", "cluster_id", "node_id")
    API_KEY: ClassVar[int] = 18
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version
        self.cluster_id: str | None = cluster_id
        self.node_id: int = node_id

    def write(self, w: Writer, version: int) -> None:
        _write_ApiVersionsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ApiVersionsRequest:
        return _read_ApiVersionsRequest(r, version)


def _read_ApiVersionsRequest(r: Reader, v: int) -> ApiVersionsRequest:
    m = ApiVersionsRequest.__new__(ApiVersionsRequest)
    if v >= 3:
        m.client_software_name = r.compact_string()
        m.client_software_version = r.compact_string()
        m.cluster_id = r.compact_nullable_string() if v == 5 else None
        m.node_id = r.int32() if v == 5 else -1
        r.skip_tags()
    else:
        m.client_software_name = ""
        m.client_software_version = ""
        m.cluster_id = None
        m.node_id = -1
    return m


def _write_ApiVersionsRequest(w: Writer, m: ApiVersionsRequest, v: int) -> None:
    if v >= 3:
        w.compact_string(m.client_software_name)
        w.compact_string(m.client_software_version)
        if v == 5:
            w.compact_nullable_string(m.cluster_id)
            w.int32(m.node_id)
        w.uvarint(0)
    else:
        pass


class ApiVersion(Structure):
    """One element of api_keys in ApiVersionsResponse."""

    __slots__ = ("api_key", "min_version", "max_version")

    def __init__(self, *, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version


def _read_ApiVersion(r: Reader, v: int) -> ApiVersion:
    m = ApiVersion.__new__(ApiVersion)
    if v >= 3:
        m.api_key, m.min_version, m.max_version = r.fixed(_fixed_hhh)
        r.skip_tags()
    else:
        m.api_key, m.min_version, m.max_version = r.fixed(_fixed_hhh)
    return m


def _write_ApiVersion(w: Writer, m: ApiVersion, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_hhh.pack(m.api_key, m.min_version, m.max_version)
        w.uvarint(0)
    else:
        w.buf += _fixed_hhh.pack(m.api_key, m.min_version, m.max_version)


class SupportedFeatureKey(Structure):
    """One element of supported_features in ApiVersionsResponse."""

    __slots__ = ("name", "min_version", "max_version")

    def __init__(self, *, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version


def _read_SupportedFeatureKey(r: Reader, v: int) -> SupportedFeatureKey:
    m = SupportedFeatureKey.__new__(SupportedFeatureKey)
    m.name = r.compact_string()
    m.min_version, m.max_version = r.fixed(_fixed_hh)
    r.skip_tags()
    return m


def _write_SupportedFeatureKey(w: Writer, m: SupportedFeatureKey, v: int) -> None:
    w.compact_string(m.name)
    w.buf += _fixed_hh.pack(m.min_version, m.max_version)
    w.uvarint(0)


class FinalizedFeatureKey(Structure):
    """One element of finalized_features in ApiVersionsResponse."""

    __slots__ = ("name", "max_version_level", "min_version_level")

    def __init__(self, *, name: str = "", max_version_level: int = 0, min_version_level: int = 0) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level


def _read_FinalizedFeatureKey(r: Reader, v: int) -> FinalizedFeatureKey:
    m = FinalizedFeatureKey.__new__(FinalizedFeatureKey)
    m.name = r.compact_string()
    m.max_version_level, m.min_version_level = r.fixed(_fixed_hh)
    r.skip_tags()
    return m


def _write_FinalizedFeatureKey(w: Writer, m: FinalizedFeatureKey, v: int) -> None:
    w.compact_string(m.name)
    w.buf += _fixed_hh.pack(m.max_version_level, m.min_version_level)
    w.uvarint(0)


class ApiVersionsResponse(Message):
    """ApiVersionsResponse, a response: versions 0 to 5, flexible from 3."""

    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    API_KEY: ClassVar[int] = 18
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = EMPTY,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = EMPTY,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready: bool = zk_migration_ready

    def write(self, w: Writer, version: int) -> None:
        _write_ApiVersionsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ApiVersionsResponse:
        return _read_ApiVersionsResponse(r, version)


def _read_ApiVersionsResponse(r: Reader, v: int) -> ApiVersionsResponse:
    m = ApiVersionsResponse.__new__(ApiVersionsResponse)
    if v >= 3:
        m.error_code = r.int16()
        m.api_keys = [_read_ApiVersion(r, v) for _ in r.each(r.compact_count(7))]
        m.throttle_time_ms = r.int32()
        m.supported_features = []
        m.finalized_features_epoch = -1
        m.finalized_features = []
        m.zk_migration_ready = False
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0:
                m.supported_features = [_read_SupportedFeatureKey(r, v) for _ in r.each(r.compact_count(6))]
            elif tag == 1:
                m.finalized_features_epoch = r.int64()
            elif tag == 2:
                m.finalized_features = [_read_FinalizedFeatureKey(r, v) for _ in r.each(r.compact_count(6))]
            elif tag == 3:
                m.zk_migration_ready = r.boolean()
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.error_code = r.int16()
        m.api_keys = [_read_ApiVersion(r, v) for _ in r.each(r.count(6))]
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.supported_features = []
        m.finalized_features_epoch = -1
        m.finalized_features = []
        m.zk_migration_ready = False
    return m


def _write_ApiVersionsResponse(w: Writer, m: ApiVersionsResponse, v: int) -> None:
    if v >= 3:
        w.int16(m.error_code)
        w.compact_count(len(m.api_keys))
        for api_key in w.each(m.api_keys):
            _write_ApiVersion(w, api_key, v)
        w.int32(m.throttle_time_ms)
        tags: list[tuple[int, Writer]] = []
        if m.supported_features:
            t = Writer()
            t.compact_count(len(m.supported_features))
            for supported_feature in t.each(m.supported_features):
                _write_SupportedFeatureKey(t, supported_feature, v)
            tags.append((0, t))
        if m.finalized_features_epoch != -1:
            t = Writer()
            t.int64(m.finalized_features_epoch)
            tags.append((1, t))
        if m.finalized_features:
            t = Writer()
            t.compact_count(len(m.finalized_features))
            for finalized_feature in t.each(m.finalized_features):
                _write_FinalizedFeatureKey(t, finalized_feature, v)
            tags.append((2, t))
        if m.zk_migration_ready:
            t = Writer()
            t.boolean(m.zk_migration_ready)
            tags.append((3, t))
        w.tags(tags)
    else:
        w.int16(m.error_code)
        w.count(len(m.api_keys))
        for api_key in w.each(m.api_keys):
            _write_ApiVersion(w, api_key, v)
        if v >= 1:
            w.int32(m.throttle_time_ms)
