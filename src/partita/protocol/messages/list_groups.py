"""ListGroups (API 16). Generated from schema/list_groups.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ListGroupsRequest(Request["ListGroupsResponse"]):
    """ListGroupsRequest, a request: versions 0 to 5, flexible from 3."""

    __slots__ = ("states_filter", "types_filter")
    API_KEY: ClassVar[int] = 16
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(self, *, states_filter: list[str] = EMPTY, types_filter: list[str] = EMPTY) -> None:
        self.states_filter: list[str] = [] if states_filter is EMPTY else states_filter
        self.types_filter: list[str] = [] if types_filter is EMPTY else types_filter

    def write(self, w: Writer, version: int) -> None:
        _write_ListGroupsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListGroupsRequest:
        return _read_ListGroupsRequest(r, version)


def _read_ListGroupsRequest(r: Reader, v: int) -> ListGroupsRequest:
    m = ListGroupsRequest.__new__(ListGroupsRequest)
    if v >= 3:
        m.states_filter = [r.compact_string() for _ in r.each(r.compact_count(1))] if v >= 4 else []
        m.types_filter = [r.compact_string() for _ in r.each(r.compact_count(1))] if v == 5 else []
        r.skip_tags()
    else:
        m.states_filter = []
        m.types_filter = []
    return m


def _write_ListGroupsRequest(w: Writer, m: ListGroupsRequest, v: int) -> None:
    if v >= 3:
        if v >= 4:
            w.compact_count(len(m.states_filter))
            for states_filter_item in w.each(m.states_filter):
                w.compact_string(states_filter_item)
        if v == 5:
            w.compact_count(len(m.types_filter))
            for types_filter_item in w.each(m.types_filter):
                w.compact_string(types_filter_item)
        w.uvarint(0)
    else:
        pass


class ListedGroup(Structure):
    """One element of groups in ListGroupsResponse."""

    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")

    def __init__(
        self, *, group_id: str = "", protocol_type: str = "", group_state: str = "", group_type: str = ""
    ) -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type


def _read_ListedGroup(r: Reader, v: int) -> ListedGroup:
    m = ListedGroup.__new__(ListedGroup)
    if v >= 3:
        m.group_id = r.compact_string()
        m.protocol_type = r.compact_string()
        m.group_state = r.compact_string() if v >= 4 else ""
        m.group_type = r.compact_string() if v == 5 else ""
        r.skip_tags()
    else:
        m.group_id = r.string()
        m.protocol_type = r.string()
        m.group_state = ""
        m.group_type = ""
    return m


def _write_ListedGroup(w: Writer, m: ListedGroup, v: int) -> None:
    if v >= 3:
        w.compact_string(m.group_id)
        w.compact_string(m.protocol_type)
        if v >= 4:
            w.compact_string(m.group_state)
        if v == 5:
            w.compact_string(m.group_type)
        w.uvarint(0)
    else:
        w.string(m.group_id)
        w.string(m.protocol_type)


class ListGroupsResponse(Message):
    """ListGroupsResponse, a response: versions 0 to 5, flexible from 3."""

    __slots__ = ("throttle_time_ms", "error_code", "groups")
    API_KEY: ClassVar[int] = 16
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, groups: list[ListedGroup] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListedGroup] = [] if groups is EMPTY else groups

    def write(self, w: Writer, version: int) -> None:
        _write_ListGroupsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListGroupsResponse:
        return _read_ListGroupsResponse(r, version)


def _read_ListGroupsResponse(r: Reader, v: int) -> ListGroupsResponse:
    m = ListGroupsResponse.__new__(ListGroupsResponse)
    if v >= 3:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.groups = [_read_ListedGroup(r, v) for _ in r.each(r.compact_count(3))]
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32() if v >= 1 else 0
        m.error_code = r.int16()
        m.groups = [_read_ListedGroup(r, v) for _ in r.each(r.count(4))]
    return m


def _write_ListGroupsResponse(w: Writer, m: ListGroupsResponse, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.compact_count(len(m.groups))
        for group in w.each(m.groups):
            _write_ListedGroup(w, group, v)
        w.uvarint(0)
    else:
        if v >= 1:
            w.int32(m.throttle_time_ms)
        w.int16(m.error_code)
        w.count(len(m.groups))
        for group in w.each(m.groups):
            _write_ListedGroup(w, group, v)
