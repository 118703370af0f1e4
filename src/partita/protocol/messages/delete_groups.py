"""DeleteGroups (API 42). Generated from schema/delete_groups.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer


class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    """DeleteGroupsRequest, a request: versions 0 to 3, flexible from 2."""

    __slots__ = ("groups_names",)
    API_KEY: ClassVar[int] = 42
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, groups_names: list[str] = EMPTY) -> None:
        self.groups_names: list[str] = [] if groups_names is EMPTY else groups_names

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteGroupsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteGroupsRequest:
        return _read_DeleteGroupsRequest(r, version)


def _read_DeleteGroupsRequest(r: Reader, v: int) -> DeleteGroupsRequest:
    m = DeleteGroupsRequest.__new__(DeleteGroupsRequest)
    if v >= 2:
        m.groups_names = [r.compact_string() for _ in r.each(r.compact_count(1))]
        r.skip_tags()
    else:
        m.groups_names = [r.string() for _ in r.each(r.count(2))]
    return m


def _write_DeleteGroupsRequest(w: Writer, m: DeleteGroupsRequest, v: int) -> None:
    if v >= 2:
        w.compact_count(len(m.groups_names))
        for groups_name in w.each(m.groups_names):
            w.compact_string(groups_name)
        w.uvarint(0)
    else:
        w.count(len(m.groups_names))
        for groups_name in w.each(m.groups_names):
            w.string(groups_name)


class DeletableGroupResult(Structure):
    """One element of results in DeleteGroupsResponse."""

    __slots__ = ("group_id", "error_code", "error_message")

    def __init__(self, *, group_id: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_DeletableGroupResult(r: Reader, v: int) -> DeletableGroupResult:
    m = DeletableGroupResult.__new__(DeletableGroupResult)
    if v >= 2:
        m.group_id = r.compact_string()
        m.error_code = r.int16()
        m.error_message = r.compact_nullable_string() if v == 3 else None
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.error_code = r.int16()
        m.error_message = None
    return m


def _write_DeletableGroupResult(w: Writer, m: DeletableGroupResult, v: int) -> None:
    if v >= 2:
        w.compact_string(m.group_id)
        w.int16(m.error_code)
        if v == 3:
            w.compact_nullable_string(m.error_message)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        w.int16(m.error_code)


class DeleteGroupsResponse(Message):
    """DeleteGroupsResponse, a response: versions 0 to 3, flexible from 2."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY: ClassVar[int] = 42
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(self, *, throttle_time_ms: int = 0, results: list[DeletableGroupResult] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is EMPTY else results

    def write(self, w: Writer, version: int) -> None:
        _write_DeleteGroupsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DeleteGroupsResponse:
        return _read_DeleteGroupsResponse(r, version)


def _read_DeleteGroupsResponse(r: Reader, v: int) -> DeleteGroupsResponse:
    m = DeleteGroupsResponse.__new__(DeleteGroupsResponse)
    if v >= 2:
        m.throttle_time_ms = r.int32()
        m.results = [_read_DeletableGroupResult(r, v) for _ in r.each(r.compact_count(4))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results = [_read_DeletableGroupResult(r, v) for _ in r.each(r.count(4))]
    return m


def _write_DeleteGroupsResponse(w: Writer, m: DeleteGroupsResponse, v: int) -> None:
    if v >= 2:
        w.int32(m.throttle_time_ms)
        w.compact_count(len(m.results))
        for result in w.each(m.results):
            _write_DeletableGroupResult(w, result, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results))
        for result in w.each(m.results):
            _write_DeletableGroupResult(w, result, v)
