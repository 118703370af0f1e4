"""DescribeClientQuotas (API 48). Generated from schema/describe_client_quotas.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ComponentData(Structure):
    """One element of components in DescribeClientQuotasRequest."""

    __slots__ = ("entity_type", "match_type", "match")

    def __init__(self, *, entity_type: str = "", match_type: int = 0, match: str | None = "") -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match


def _read_ComponentData(r: Reader, v: int) -> ComponentData:
    m = ComponentData.__new__(ComponentData)
    if v >= 1:
        m.entity_type = r.compact_string()
        m.match_type = r.int8()
        m.match = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.entity_type = r.string()
        m.match_type = r.int8()
        m.match = r.nullable_string()
    return m


def _write_ComponentData(w: Writer, m: ComponentData, v: int) -> None:
    if v >= 1:
        w.compact_string(m.entity_type)
        w.int8(m.match_type)
        w.compact_nullable_string(m.match)
        w.uvarint(0)
    else:
        w.string(m.entity_type)
        w.int8(m.match_type)
        w.nullable_string(m.match)


class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    """DescribeClientQuotasRequest, a request: versions 0 to 1, flexible from 1."""

    __slots__ = ("components", "strict")
    API_KEY: ClassVar[int] = 48
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, components: list[ComponentData] = EMPTY, strict: bool = False) -> None:
        self.components: list[ComponentData] = [] if components is EMPTY else components
        self.strict: bool = strict

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeClientQuotasRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeClientQuotasRequest:
        return _read_DescribeClientQuotasRequest(r, version)


def _read_DescribeClientQuotasRequest(r: Reader, v: int) -> DescribeClientQuotasRequest:
    m = DescribeClientQuotasRequest.__new__(DescribeClientQuotasRequest)
    if v >= 1:
        m.components = [_read_ComponentData(r, v) for _ in r.each(r.compact_count(4))]
        m.strict = r.boolean()
        r.skip_tags()
    else:
        m.components = [_read_ComponentData(r, v) for _ in r.each(r.count(5))]
        m.strict = r.boolean()
    return m


def _write_DescribeClientQuotasRequest(w: Writer, m: DescribeClientQuotasRequest, v: int) -> None:
    if v >= 1:
        w.compact_count(len(m.components))
        for component in w.each(m.components):
            _write_ComponentData(w, component, v)
        w.boolean(m.strict)
        w.uvarint(0)
    else:
        w.count(len(m.components))
        for component in w.each(m.components):
            _write_ComponentData(w, component, v)
        w.boolean(m.strict)


class EntityData(Structure):
    """One element of entries.entity in DescribeClientQuotasResponse."""

    __slots__ = ("entity_type", "entity_name")

    def __init__(self, *, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name


def _read_EntityData(r: Reader, v: int) -> EntityData:
    m = EntityData.__new__(EntityData)
    if v >= 1:
        m.entity_type = r.compact_string()
        m.entity_name = r.compact_nullable_string()
        r.skip_tags()
    else:
        m.entity_type = r.string()
        m.entity_name = r.nullable_string()
    return m


def _write_EntityData(w: Writer, m: EntityData, v: int) -> None:
    if v >= 1:
        w.compact_string(m.entity_type)
        w.compact_nullable_string(m.entity_name)
        w.uvarint(0)
    else:
        w.string(m.entity_type)
        w.nullable_string(m.entity_name)


class ValueData(Structure):
    """One element of entries.values in DescribeClientQuotasResponse."""

    __slots__ = ("key", "value")

    def __init__(self, *, key: str = "", value: float = 0.0) -> None:
        self.key: str = key
        self.value: float = value


def _read_ValueData(r: Reader, v: int) -> ValueData:
    m = ValueData.__new__(ValueData)
    if v >= 1:
        m.key = r.compact_string()
        m.value = r.float64()
        r.skip_tags()
    else:
        m.key = r.string()
        m.value = r.float64()
    return m


def _write_ValueData(w: Writer, m: ValueData, v: int) -> None:
    if v >= 1:
        w.compact_string(m.key)
        w.float64(m.value)
        w.uvarint(0)
    else:
        w.string(m.key)
        w.float64(m.value)


class EntryData(Structure):
    """One element of entries in DescribeClientQuotasResponse."""

    __slots__ = ("entity", "values")

    def __init__(self, *, entity: list[EntityData] = EMPTY, values: list[ValueData] = EMPTY) -> None:
        self.entity: list[EntityData] = [] if entity is EMPTY else entity
        self.values: list[ValueData] = [] if values is EMPTY else values


def _read_EntryData(r: Reader, v: int) -> EntryData:
    m = EntryData.__new__(EntryData)
    if v >= 1:
        m.entity = [_read_EntityData(r, v) for _ in r.each(r.compact_count(3))]
        m.values = [_read_ValueData(r, v) for _ in r.each(r.compact_count(10))]
        r.skip_tags()
    else:
        m.entity = [_read_EntityData(r, v) for _ in r.each(r.count(4))]
        m.values = [_read_ValueData(r, v) for _ in r.each(r.count(10))]
    return m


def _write_EntryData(w: Writer, m: EntryData, v: int) -> None:
    if v >= 1:
        w.compact_count(len(m.entity))
        for entity_item in w.each(m.entity):
            _write_EntityData(w, entity_item, v)
        w.compact_count(len(m.values))
        for value in w.each(m.values):
            _write_ValueData(w, value, v)
        w.uvarint(0)
    else:
        w.count(len(m.entity))
        for entity_item in w.each(m.entity):
            _write_EntityData(w, entity_item, v)
        w.count(len(m.values))
        for value in w.each(m.values):
            _write_ValueData(w, value, v)


class DescribeClientQuotasResponse(Message):
    """DescribeClientQuotasResponse, a response: versions 0 to 1, flexible from 1."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")
    API_KEY: ClassVar[int] = 48
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: list[EntryData] | None = [] if entries is EMPTY else entries

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeClientQuotasResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeClientQuotasResponse:
        return _read_DescribeClientQuotasResponse(r, version)


def _read_DescribeClientQuotasResponse(r: Reader, v: int) -> DescribeClientQuotasResponse:
    m = DescribeClientQuotasResponse.__new__(DescribeClientQuotasResponse)
    if v >= 1:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.error_message = r.compact_nullable_string()
        m.entries = None if (n := r.compact_nullable_count(3)) < 0 else [_read_EntryData(r, v) for _ in r.each(n)]
        r.skip_tags()
    else:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.error_message = r.nullable_string()
        m.entries = None if (n := r.nullable_count(8)) < 0 else [_read_EntryData(r, v) for _ in r.each(n)]
    return m


def _write_DescribeClientQuotasResponse(w: Writer, m: DescribeClientQuotasResponse, v: int) -> None:
    if v >= 1:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.compact_nullable_string(m.error_message)
        if m.entries is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.entries))
            for entrie in w.each(m.entries):
                _write_EntryData(w, entrie, v)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.nullable_string(m.error_message)
        if m.entries is None:
            w.count(-1)
        else:
            w.count(len(m.entries))
            for entrie in w.each(m.entries):
                _write_EntryData(w, entrie, v)
