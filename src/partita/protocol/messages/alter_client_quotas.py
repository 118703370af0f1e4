"""AlterClientQuotas (API 49). Generated from schema/alter_client_quotas.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer


class EntityData(Structure):
    """One element of entries.entity in AlterClientQuotasRequest."""

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


class OpData(Structure):
    """One element of entries.ops in AlterClientQuotasRequest."""

    __slots__ = ("key", "value", "remove")

    def __init__(self, *, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove


def _read_OpData(r: Reader, v: int) -> OpData:
    m = OpData.__new__(OpData)
    if v >= 1:
        m.key = r.compact_string()
        m.value = r.float64()
        m.remove = r.boolean()
        r.skip_tags()
    else:
        m.key = r.string()
        m.value = r.float64()
        m.remove = r.boolean()
    return m


def _write_OpData(w: Writer, m: OpData, v: int) -> None:
    if v >= 1:
        w.compact_string(m.key)
        w.float64(m.value)
        w.boolean(m.remove)
        w.uvarint(0)
    else:
        w.string(m.key)
        w.float64(m.value)
        w.boolean(m.remove)


class EntryData(Structure):
    """One element of entries in AlterClientQuotasRequest."""

    __slots__ = ("entity", "ops")

    def __init__(self, *, entity: list[EntityData] = EMPTY, ops: list[OpData] = EMPTY) -> None:
        self.entity: list[EntityData] = [] if entity is EMPTY else entity
        self.ops: list[OpData] = [] if ops is EMPTY else ops


def _read_EntryData(r: Reader, v: int) -> EntryData:
    m = EntryData.__new__(EntryData)
    if v >= 1:
        m.entity = [_read_EntityData(r, v) for _ in r.each(r.compact_count(3))]
        m.ops = [_read_OpData(r, v) for _ in r.each(r.compact_count(11))]
        r.skip_tags()
    else:
        m.entity = [_read_EntityData(r, v) for _ in r.each(r.count(4))]
        m.ops = [_read_OpData(r, v) for _ in r.each(r.count(11))]
    return m


def _write_EntryData(w: Writer, m: EntryData, v: int) -> None:
    if v >= 1:
        w.compact_count(len(m.entity))
        for entity_item in w.each(m.entity):
            _write_EntityData(w, entity_item, v)
        w.compact_count(len(m.ops))
        for op in w.each(m.ops):
            _write_OpData(w, op, v)
        w.uvarint(0)
    else:
        w.count(len(m.entity))
        for entity_item in w.each(m.entity):
            _write_EntityData(w, entity_item, v)
        w.count(len(m.ops))
        for op in w.each(m.ops):
            _write_OpData(w, op, v)


class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    """AlterClientQuotasRequest, a request: versions 0 to 1, flexible from 1."""

    __slots__ = ("entries", "validate_only")
    API_KEY: ClassVar[int] = 49
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, entries: list[EntryData] = EMPTY, validate_only: bool = False) -> None:
        self.entries: list[EntryData] = [] if entries is EMPTY else entries
        self.validate_only: bool = validate_only

    def write(self, w: Writer, version: int) -> None:
        _write_AlterClientQuotasRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterClientQuotasRequest:
        return _read_AlterClientQuotasRequest(r, version)


def _read_AlterClientQuotasRequest(r: Reader, v: int) -> AlterClientQuotasRequest:
    m = AlterClientQuotasRequest.__new__(AlterClientQuotasRequest)
    if v >= 1:
        m.entries = [_read_EntryData(r, v) for _ in r.each(r.compact_count(3))]
        m.validate_only = r.boolean()
        r.skip_tags()
    else:
        m.entries = [_read_EntryData(r, v) for _ in r.each(r.count(8))]
        m.validate_only = r.boolean()
    return m


def _write_AlterClientQuotasRequest(w: Writer, m: AlterClientQuotasRequest, v: int) -> None:
    if v >= 1:
        w.compact_count(len(m.entries))
        for entrie in w.each(m.entries):
            _write_EntryData(w, entrie, v)
        w.boolean(m.validate_only)
        w.uvarint(0)
    else:
        w.count(len(m.entries))
        for entrie in w.each(m.entries):
            _write_EntryData(w, entrie, v)
        w.boolean(m.validate_only)


class AlteredEntryData(Structure):
    """One element of entries in AlterClientQuotasResponse."""

    __slots__ = ("error_code", "error_message", "entity")

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", entity: list[EntityData] = EMPTY
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: list[EntityData] = [] if entity is EMPTY else entity


def _read_AlteredEntryData(r: Reader, v: int) -> AlteredEntryData:
    m = AlteredEntryData.__new__(AlteredEntryData)
    if v >= 1:
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string()
        m.entity = [_read_EntityData(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.error_code = r.int16()
        m.error_message = r.nullable_string()
        m.entity = [_read_EntityData(r, v) for _ in r.each(r.count(4))]
    return m


def _write_AlteredEntryData(w: Writer, m: AlteredEntryData, v: int) -> None:
    if v >= 1:
        w.int16(m.error_code)
        w.compact_nullable_string(m.error_message)
        w.compact_count(len(m.entity))
        for entity_item in w.each(m.entity):
            _write_EntityData(w, entity_item, v)
        w.uvarint(0)
    else:
        w.int16(m.error_code)
        w.nullable_string(m.error_message)
        w.count(len(m.entity))
        for entity_item in w.each(m.entity):
            _write_EntityData(w, entity_item, v)


class AlterClientQuotasResponse(Message):
    """AlterClientQuotasResponse, a response: versions 0 to 1, flexible from 1."""

    __slots__ = ("throttle_time_ms", "entries")
    API_KEY: ClassVar[int] = 49
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(self, *, throttle_time_ms: int = 0, entries: list[AlteredEntryData] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: list[AlteredEntryData] = [] if entries is EMPTY else entries

    def write(self, w: Writer, version: int) -> None:
        _write_AlterClientQuotasResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AlterClientQuotasResponse:
        return _read_AlterClientQuotasResponse(r, version)


def _read_AlterClientQuotasResponse(r: Reader, v: int) -> AlterClientQuotasResponse:
    m = AlterClientQuotasResponse.__new__(AlterClientQuotasResponse)
    if v >= 1:
        m.throttle_time_ms = r.int32()
        m.entries = [_read_AlteredEntryData(r, v) for _ in r.each(r.compact_count(5))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.entries = [_read_AlteredEntryData(r, v) for _ in r.each(r.count(8))]
    return m


def _write_AlterClientQuotasResponse(w: Writer, m: AlterClientQuotasResponse, v: int) -> None:
    if v >= 1:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.entries))
        for entrie in w.each(m.entries):
            _write_AlteredEntryData(w, entrie, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.entries))
        for entrie in w.each(m.entries):
            _write_AlteredEntryData(w, entrie, v)
