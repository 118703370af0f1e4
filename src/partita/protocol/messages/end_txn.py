"""EndTxn (API 26). Generated from schema/end_txn.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Message, Reader, Request, Writer

_fixed_ih = Struct(">ih")
_fixed_qh = Struct(">qh")


class EndTxnRequest(Request["EndTxnResponse"]):
    """EndTxnRequest, a request: versions 0 to 5, flexible from 3."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")
    API_KEY: ClassVar[int] = 26
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self, *, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, committed: bool = False
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.committed: bool = committed

    def write(self, w: Writer, version: int) -> None:
        _write_EndTxnRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> EndTxnRequest:
        return _read_EndTxnRequest(r, version)


def _read_EndTxnRequest(r: Reader, v: int) -> EndTxnRequest:
    m = EndTxnRequest.__new__(EndTxnRequest)
    if v >= 3:
        m.transactional_id = r.compact_string()
        m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
        m.committed = r.boolean()
        r.skip_tags()
    else:
        m.transactional_id = r.string()
        m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
        m.committed = r.boolean()
    return m


def _write_EndTxnRequest(w: Writer, m: EndTxnRequest, v: int) -> None:
    if v >= 3:
        w.compact_string(m.transactional_id)
        w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
        w.boolean(m.committed)
        w.uvarint(0)
    else:
        w.string(m.transactional_id)
        w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
        w.boolean(m.committed)


class EndTxnResponse(Message):
    """EndTxnResponse, a response: versions 0 to 5, flexible from 3."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    API_KEY: ClassVar[int] = 26
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch

    def write(self, w: Writer, version: int) -> None:
        _write_EndTxnResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> EndTxnResponse:
        return _read_EndTxnResponse(r, version)


def _read_EndTxnResponse(r: Reader, v: int) -> EndTxnResponse:
    m = EndTxnResponse.__new__(EndTxnResponse)
    if v >= 3:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.producer_id = r.int64() if v == 5 else -1
        m.producer_epoch = r.int16() if v == 5 else -1
        r.skip_tags()
    else:
        m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
        m.producer_id = -1
        m.producer_epoch = -1
    return m


def _write_EndTxnResponse(w: Writer, m: EndTxnResponse, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
        if v == 5:
            w.int64(m.producer_id)
            w.int16(m.producer_epoch)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
