"""DescribeConfigs (API 32). Generated from schema/describe_configs.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer


class DescribeConfigsResource(Structure):
    """One element of resources in DescribeConfigsRequest."""

    __slots__ = ("resource_type", "resource_name", "configuration_keys")

    def __init__(
        self, *, resource_type: int = 0, resource_name: str = "", configuration_keys: list[str] | None = EMPTY
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: list[str] | None = [] if configuration_keys is EMPTY else configuration_keys


def _read_DescribeConfigsResource(r: Reader, v: int) -> DescribeConfigsResource:
    m = DescribeConfigsResource.__new__(DescribeConfigsResource)
    if v >= 4:
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        m.configuration_keys = (
            None if (n := r.compact_nullable_count(1)) < 0 else [r.compact_string() for _ in r.each(n)]
        )
        r.skip_tags()
    else:
        m.resource_type = r.int8()
        m.resource_name = r.string()
        m.configuration_keys = None if (n := r.nullable_count(2)) < 0 else [r.string() for _ in r.each(n)]
    return m


def _write_DescribeConfigsResource(w: Writer, m: DescribeConfigsResource, v: int) -> None:
    if v >= 4:
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        if m.configuration_keys is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.configuration_keys))
            for configuration_key in w.each(m.configuration_keys):
                w.compact_string(configuration_key)
        w.uvarint(0)
    else:
        w.int8(m.resource_type)
        w.string(m.resource_name)
        if m.configuration_keys is None:
            w.count(-1)
        else:
            w.count(len(m.configuration_keys))
            for configuration_key in w.each(m.configuration_keys):
                w.string(configuration_key)


class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    """DescribeConfigsRequest, a request: versions 1 to 4, flexible from 4."""

    __slots__ = ("resources", "include_synonyms", "include_documentation")
    API_KEY: ClassVar[int] = 32
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is EMPTY else resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeConfigsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeConfigsRequest:
        return _read_DescribeConfigsRequest(r, version)


def _read_DescribeConfigsRequest(r: Reader, v: int) -> DescribeConfigsRequest:
    m = DescribeConfigsRequest.__new__(DescribeConfigsRequest)
    if v >= 4:
        m.resources = [_read_DescribeConfigsResource(r, v) for _ in r.each(r.compact_count(4))]
        m.include_synonyms = r.boolean()
        m.include_documentation = r.boolean()
        r.skip_tags()
    else:
        m.resources = [_read_DescribeConfigsResource(r, v) for _ in r.each(r.count(7))]
        m.include_synonyms = r.boolean()
        m.include_documentation = r.boolean() if v == 3 else False
    return m


def _write_DescribeConfigsRequest(w: Writer, m: DescribeConfigsRequest, v: int) -> None:
    if v >= 4:
        w.compact_count(len(m.resources))
        for resource in w.each(m.resources):
            _write_DescribeConfigsResource(w, resource, v)
        w.boolean(m.include_synonyms)
        w.boolean(m.include_documentation)
        w.uvarint(0)
    else:
        w.count(len(m.resources))
        for resource in w.each(m.resources):
            _write_DescribeConfigsResource(w, resource, v)
        w.boolean(m.include_synonyms)
        if v == 3:
            w.boolean(m.include_documentation)


class DescribeConfigsSynonym(Structure):
    """One element of results.configs.synonyms in DescribeConfigsResponse."""

    __slots__ = ("name", "value", "source")

    def __init__(self, *, name: str = "", value: str | None = "", source: int = 0) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source


def _read_DescribeConfigsSynonym(r: Reader, v: int) -> DescribeConfigsSynonym:
    m = DescribeConfigsSynonym.__new__(DescribeConfigsSynonym)
    if v >= 4:
        m.name = r.compact_string()
        m.value = r.compact_nullable_string()
        m.source = r.int8()
        r.skip_tags()
    else:
        m.name = r.string()
        m.value = r.nullable_string()
        m.source = r.int8()
    return m


def _write_DescribeConfigsSynonym(w: Writer, m: DescribeConfigsSynonym, v: int) -> None:
    if v >= 4:
        w.compact_string(m.name)
        w.compact_nullable_string(m.value)
        w.int8(m.source)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.nullable_string(m.value)
        w.int8(m.source)


class DescribeConfigsResourceResult(Structure):
    """One element of results.configs in DescribeConfigsResponse."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is EMPTY else synonyms
        self.config_type: int = config_type
        self.documentation: str | None = documentation


def _read_DescribeConfigsResourceResult(r: Reader, v: int) -> DescribeConfigsResourceResult:
    m = DescribeConfigsResourceResult.__new__(DescribeConfigsResourceResult)
    if v >= 4:
        m.name = r.compact_string()
        m.value = r.compact_nullable_string()
        m.read_only = r.boolean()
        m.config_source = r.int8()
        m.is_sensitive = r.boolean()
        m.synonyms = [_read_DescribeConfigsSynonym(r, v) for _ in r.each(r.compact_count(4))]
        m.config_type = r.int8()
        m.documentation = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.name = r.string()
        m.value = r.nullable_string()
        m.read_only = r.boolean()
        m.config_source = r.int8()
        m.is_sensitive = r.boolean()
        m.synonyms = [_read_DescribeConfigsSynonym(r, v) for _ in r.each(r.count(5))]
        m.config_type = r.int8() if v == 3 else 0
        m.documentation = r.nullable_string() if v == 3 else ""
    return m


def _write_DescribeConfigsResourceResult(w: Writer, m: DescribeConfigsResourceResult, v: int) -> None:
    if v >= 4:
        w.compact_string(m.name)
        w.compact_nullable_string(m.value)
        w.boolean(m.read_only)
        w.int8(m.config_source)
        w.boolean(m.is_sensitive)
        w.compact_count(len(m.synonyms))
        for synonym in w.each(m.synonyms):
            _write_DescribeConfigsSynonym(w, synonym, v)
        w.int8(m.config_type)
        w.compact_nullable_string(m.documentation)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.nullable_string(m.value)
        w.boolean(m.read_only)
        w.int8(m.config_source)
        w.boolean(m.is_sensitive)
        w.count(len(m.synonyms))
        for synonym in w.each(m.synonyms):
            _write_DescribeConfigsSynonym(w, synonym, v)
        if v == 3:
            w.int8(m.config_type)
            w.nullable_string(m.documentation)


class DescribeConfigsResult(Structure):
    """One element of results in DescribeConfigsResponse."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is EMPTY else configs


def _read_DescribeConfigsResult(r: Reader, v: int) -> DescribeConfigsResult:
    m = DescribeConfigsResult.__new__(DescribeConfigsResult)
    if v >= 4:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        m.configs = [_read_DescribeConfigsResourceResult(r, v) for _ in r.each(r.compact_count(9))]
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.resource_type = r.int8()
        m.resource_name = r.string()
        m.configs = [_read_DescribeConfigsResourceResult(r, v) for _ in r.each(r.count(11))]
    return m


def _write_DescribeConfigsResult(w: Writer, m: DescribeConfigsResult, v: int) -> None:
    if v >= 4:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        w.compact_count(len(m.configs))
        for config in w.each(m.configs):
            _write_DescribeConfigsResourceResult(w, config, v)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)
        w.int8(m.resource_type)
        w.string(m.resource_name)
        w.count(len(m.configs))
        for config in w.each(m.configs):
            _write_DescribeConfigsResourceResult(w, config, v)


class DescribeConfigsResponse(Message):
    """DescribeConfigsResponse, a response: versions 1 to 4, flexible from 4."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY: ClassVar[int] = 32
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 4

    def __init__(self, *, throttle_time_ms: int = 0, results: list[DescribeConfigsResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeConfigsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeConfigsResponse:
        return _read_DescribeConfigsResponse(r, version)


def _read_DescribeConfigsResponse(r: Reader, v: int) -> DescribeConfigsResponse:
    m = DescribeConfigsResponse.__new__(DescribeConfigsResponse)
    if v >= 4:
        m.throttle_time_ms = r.int32()
        m.results = [_read_DescribeConfigsResult(r, v) for _ in r.each(r.compact_count(7))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results = [_read_DescribeConfigsResult(r, v) for _ in r.each(r.count(11))]
    return m


def _write_DescribeConfigsResponse(w: Writer, m: DescribeConfigsResponse, v: int) -> None:
    if v >= 4:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_DescribeConfigsResult(w, result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results))
        for result in w.each(m.results):
            _write_DescribeConfigsResult(w, result, v)
