"""AddOffsetsToTxn (API 25). Generated from schema/add_offsets_to_txn.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Message, Reader, Request, Writer

_fixed_ih = Struct(">ih")
_fixed_qh = Struct(">qh")


class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"]):
    """AddOffsetsToTxnRequest, a request: versions 0 to 4, flexible from 3."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    API_KEY: ClassVar[int] = 25
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self, *, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, group_id: str = ""
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.group_id: str = group_id

    def write(self, w: Writer, version: int) -> None:
        _write_AddOffsetsToTxnRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AddOffsetsToTxnRequest:
        return _read_AddOffsetsToTxnRequest(r, version)


def _read_AddOffsetsToTxnRequest(r: Reader, v: int) -> AddOffsetsToTxnRequest:
    m = AddOffsetsToTxnRequest.__new__(AddOffsetsToTxnRequest)
    if v >= 3:
        m.transactional_id = r.compact_string()
        m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
        m.group_id = r.compact_string()
        r.skip_tags()
    else:
        m.transactional_id = r.string()
        m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
        m.group_id = r.string()
    return m


def _write_AddOffsetsToTxnRequest(w: Writer, m: AddOffsetsToTxnRequest, v: int) -> None:
    if v >= 3:
        w.compact_string(m.transactional_id)
        w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
        w.compact_string(m.group_id)
        w.uvarint(0)
    else:
        w.string(m.transactional_id)
        w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
        w.string(m.group_id)


class AddOffsetsToTxnResponse(Message):
    """AddOffsetsToTxnResponse, a response: versions 0 to 4, flexible from 3."""

    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY: ClassVar[int] = 25
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code

    def write(self, w: Writer, version: int) -> None:
        _write_AddOffsetsToTxnResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AddOffsetsToTxnResponse:
        return _read_AddOffsetsToTxnResponse(r, version)


def _read_AddOffsetsToTxnResponse(r: Reader, v: int) -> AddOffsetsToTxnResponse:
    m = AddOffsetsToTxnResponse.__new__(AddOffsetsToTxnResponse)
    if v >= 3:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        r.skip_tags()
    else:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    return m


def _write_AddOffsetsToTxnResponse(w: Writer, m: AddOffsetsToTxnResponse, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
