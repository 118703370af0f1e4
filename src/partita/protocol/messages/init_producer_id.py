"""InitProducerId (API 22). Generated from schema/init_producer_id.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import Message, Reader, Request, Writer

_fixed_ihqh = Struct(">ihqh")


class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    """InitProducerIdRequest, a request: versions 0 to 6, flexible from 2."""

    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )
    API_KEY: ClassVar[int] = 22
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.enable2_pc: bool = enable2_pc
        self.keep_prepared_txn: bool = keep_prepared_txn

    def write(self, w: Writer, version: int) -> None:
        _write_InitProducerIdRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> InitProducerIdRequest:
        return _read_InitProducerIdRequest(r, version)


def _read_InitProducerIdRequest(r: Reader, v: int) -> InitProducerIdRequest:
    m = InitProducerIdRequest.__new__(InitProducerIdRequest)
    if v >= 2:
        m.transactional_id = r.compact_nullable_string()
        m.transaction_timeout_ms = r.int32()
        m.producer_id = r.int64() if v >= 3 else -1
        m.producer_epoch = r.int16() if v >= 3 else -1
        m.enable2_pc = r.boolean() if v == 6 else False
        m.keep_prepared_txn = r.boolean() if v == 6 else False
        r.skip_tags()
    else:
        m.transactional_id = r.nullable_string()
        m.transaction_timeout_ms = r.int32()
        m.producer_id = -1
        m.producer_epoch = -1
        m.enable2_pc = False
        m.keep_prepared_txn = False
    return m


def _write_InitProducerIdRequest(w: Writer, m: InitProducerIdRequest, v: int) -> None:
    if v >= 2:
        w.compact_nullable_string(m.transactional_id)
        w.int32(m.transaction_timeout_ms)
        if v >= 3:
            w.int64(m.producer_id)
            w.int16(m.producer_epoch)
        if v == 6:
            w.boolean(m.enable2_pc)
            w.boolean(m.keep_prepared_txn)
        w.uvarint(0)
    else:
        w.nullable_string(m.transactional_id)
        w.int32(m.transaction_timeout_ms)


class InitProducerIdResponse(Message):
    """InitProducerIdResponse, a response: versions 0 to 6, flexible from 2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )
    API_KEY: ClassVar[int] = 22
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 6
    FLEXIBLE_FROM: ClassVar[int | None] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.ongoing_txn_producer_id: int = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch: int = ongoing_txn_producer_epoch

    def write(self, w: Writer, version: int) -> None:
        _write_InitProducerIdResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> InitProducerIdResponse:
        return _read_InitProducerIdResponse(r, version)


def _read_InitProducerIdResponse(r: Reader, v: int) -> InitProducerIdResponse:
    m = InitProducerIdResponse.__new__(InitProducerIdResponse)
    if v >= 2:
        m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch = r.fixed(_fixed_ihqh)
        m.ongoing_txn_producer_id = r.int64() if v == 6 else -1
        m.ongoing_txn_producer_epoch = r.int16() if v == 6 else -1
        r.skip_tags()
    else:
        m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch = r.fixed(_fixed_ihqh)
        m.ongoing_txn_producer_id = -1
        m.ongoing_txn_producer_epoch = -1
    return m


def _write_InitProducerIdResponse(w: Writer, m: InitProducerIdResponse, v: int) -> None:
    if v >= 2:
        w.buf += _fixed_ihqh.pack(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
        if v == 6:
            w.int64(m.ongoing_txn_producer_id)
            w.int16(m.ongoing_txn_producer_epoch)
        w.uvarint(0)
    else:
        w.buf += _fixed_ihqh.pack(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
