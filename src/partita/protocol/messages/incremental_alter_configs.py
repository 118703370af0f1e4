"""IncrementalAlterConfigs (API 44). Generated from schema/incremental_alter_configs.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer


class AlterableConfig(Structure):
    """One element of resources.configs in IncrementalAlterConfigsRequest."""

    __slots__ = ("name", "config_operation", "value")

    def __init__(self, *, name: str = "", config_operation: int = 0, value: str | None = "") -> None:
        self.name: str = name
        self.config_operation: int = config_operation
        self.value: str | None = value


def _read_AlterableConfig(r: Reader, v: int) -> AlterableConfig:
    m = AlterableConfig.__new__(AlterableConfig)
    if v >= 1:
        m.name = r.compact_string()
        m.config_operation = r.int8()
        m.value = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.name = r.string()
        m.config_operation = r.int8()
        m.value = r.nullable_string()
    return m


def _write_AlterableConfig(w: Writer, m: AlterableConfig, v: int) -> None:
    if v >= 1:
        w.compact_string(m.name)
        w.int8(m.config_operation)
        w.compact_nullable_string(m.value)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.int8(m.config_operation)
        w.nullable_string(m.value)


class AlterConfigsResource(Structure):
    """One element of resources in IncrementalAlterConfigsRequest."""

    __slots__ = ("resource_type", "resource_name", "configs")

    def __init__(
        self, *, resource_type: int = 0, resource_name: str = "", configs: list[AlterableConfig] = EMPTY
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[AlterableConfig] = [] if configs is EMPTY else configs


def _read_AlterConfigsResource(r: Reader, v: int) -> AlterConfigsResource:
    m = AlterConfigsResource.__new__(AlterConfigsResource)
    if v >= 1:
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        m.configs = [_read_AlterableConfig(r, v) for _ in r.each(r.compact_count(4))]
        r.skip_tags()
    else:
        m.resource_type = r.int8()
        m.resource_name = r.string()
        m.configs = [_read_AlterableConfig(r, v) for _ in r.each(r.count(5))]
    return m


def _write_AlterConfigsResource(w: Writer, m: AlterConfigsResource, v: int) -> None:
    if v >= 1:
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        w.compact_count(len(m.configs))
        for config in w.each(m.configs):
            _write_AlterableConfig(w, config, v)
        w.uvarint(0)
    else:
        w.int8(m.resource_type)
        w.string(m.resource_name)
        w.count(len(m.configs))
        for config in w.each(m.configs):
            _write_AlterableConfig(w, config, v)


class IncrementalAlterConfigsRequest(Request["IncrementalAlterConfigsResponse"]):
    """IncrementalAlterConfigsRequest, a request: versions 0 to 1, flexible from 1."""

    __slots__ = ("resources", "validate_only")
    API_KEY: ClassVar[int] = 44
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, resources: list[AlterConfigsResource] = EMPTY, validate_only: bool = False) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is EMPTY else resources
        self.validate_only: bool = validate_only

    def write(self, w: Writer, version: int) -> None:
        _write_IncrementalAlterConfigsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> IncrementalAlterConfigsRequest:
        return _read_IncrementalAlterConfigsRequest(r, version)


def _read_IncrementalAlterConfigsRequest(r: Reader, v: int) -> IncrementalAlterConfigsRequest:
    m = IncrementalAlterConfigsRequest.__new__(IncrementalAlterConfigsRequest)
    if v >= 1:
        m.resources = [_read_AlterConfigsResource(r, v) for _ in r.each(r.compact_count(4))]
        m.validate_only = r.boolean()
        r.skip_tags()
    else:
        m.resources = [_read_AlterConfigsResource(r, v) for _ in r.each(r.count(7))]
        m.validate_only = r.boolean()
    return m


def _write_IncrementalAlterConfigsRequest(w: Writer, m: IncrementalAlterConfigsRequest, v: int) -> None:
    if v >= 1:
        w.compact_count(len(m.resources))
        for resource in w.each(m.resources):
            _write_AlterConfigsResource(w, resource, v)
        w.boolean(m.validate_only)
        w.uvarint(0)
    else:
        w.count(len(m.resources))
        for resource in w.each(m.resources):
            _write_AlterConfigsResource(w, resource, v)
        w.boolean(m.validate_only)


class AlterConfigsResourceResponse(Structure):
    """One element of responses in IncrementalAlterConfigsResponse."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", resource_type: int = 0, resource_name: str = ""
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name


def _read_AlterConfigsResourceResponse(r: Reader, v: int) -> AlterConfigsResourceResponse:
    m = AlterConfigsResourceResponse.__new__(AlterConfigsResourceResponse)
    if v >= 1:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.resource_type = r.int8()
        m.resource_name = r.compact_string()
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.resource_type = r.int8()
        m.resource_name = r.string()
    return m


def _write_AlterConfigsResourceResponse(w: Writer, m: AlterConfigsResourceResponse, v: int) -> None:
    if v >= 1:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.int8(m.resource_type)
        w.compact_string(m.resource_name)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)
        w.int8(m.resource_type)
        w.string(m.resource_name)


class IncrementalAlterConfigsResponse(Message):
    """IncrementalAlterConfigsResponse, a response: versions 0 to 1, flexible from 1."""

    __slots__ = ("throttle_time_ms", "responses")
    API_KEY: ClassVar[int] = 44
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, throttle_time_ms: int = 0, responses: list[AlterConfigsResourceResponse] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is EMPTY else responses

    def write(self, w: Writer, version: int) -> None:
        _write_IncrementalAlterConfigsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> IncrementalAlterConfigsResponse:
        return _read_IncrementalAlterConfigsResponse(r, version)


def _read_IncrementalAlterConfigsResponse(r: Reader, v: int) -> IncrementalAlterConfigsResponse:
    m = IncrementalAlterConfigsResponse.__new__(IncrementalAlterConfigsResponse)
    if v >= 1:
        m.throttle_time_ms = r.int32()
        m.responses = [_read_AlterConfigsResourceResponse(r, v) for _ in r.each(r.compact_count(6))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.responses = [_read_AlterConfigsResourceResponse(r, v) for _ in r.each(r.count(7))]
    return m


def _write_IncrementalAlterConfigsResponse(w: Writer, m: IncrementalAlterConfigsResponse, v: int) -> None:
    if v >= 1:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.responses))
        for response in w.each(m.responses):
            _write_AlterConfigsResourceResponse(w, response, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.responses))
        for response in w.each(m.responses):
            _write_AlterConfigsResourceResponse(w, response, v)
