"""ListTransactions (API 66). Generated from schema/list_transactions.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")


class ListTransactionsRequest(Request["ListTransactionsResponse"]):
    """ListTransactionsRequest, a request: versions 0 to 2, flexible from 0."""

    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")
    API_KEY: ClassVar[int] = 66
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern

    def write(self, w: Writer, version: int) -> None:
        _write_ListTransactionsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListTransactionsRequest:
        return _read_ListTransactionsRequest(r, version)


def _read_ListTransactionsRequest(r: Reader, v: int) -> ListTransactionsRequest:
    m = ListTransactionsRequest.__new__(ListTransactionsRequest)
    m.state_filters = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.producer_id_filters = [r.int64() for _ in r.each(r.compact_count(8))]
    m.duration_filter = r.int64() if v >= 1 else -1
    m.transactional_id_pattern = r.compact_nullable_string() if v == 2 else None
    r.skip_tags()
    return m


def _write_ListTransactionsRequest(w: Writer, m: ListTransactionsRequest, v: int) -> None:
    w.compact_count(len(m.state_filters))
    for state_filter in w.each(m.state_filters):
        w.compact_string(state_filter)
    w.compact_count(len(m.producer_id_filters))
    for producer_id_filter in w.each(m.producer_id_filters):
        w.int64(producer_id_filter)
    if v >= 1:
        w.int64(m.duration_filter)
    if v == 2:
        w.compact_nullable_string(m.transactional_id_pattern)
    w.uvarint(0)


class ListedTransaction(Structure):
    """One element of transaction_states in ListTransactionsResponse."""

    __slots__ = ("transactional_id", "producer_id", "transaction_state")

    def __init__(self, *, transactional_id: str = "", producer_id: int = 0, transaction_state: str = "") -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state


def _read_ListedTransaction(r: Reader, v: int) -> ListedTransaction:
    m = ListedTransaction.__new__(ListedTransaction)
    m.transactional_id = r.compact_string()
    m.producer_id = r.int64()
    m.transaction_state = r.compact_string()
    r.skip_tags()
    return m


def _write_ListedTransaction(w: Writer, m: ListedTransaction, v: int) -> None:
    w.compact_string(m.transactional_id)
    w.int64(m.producer_id)
    w.compact_string(m.transaction_state)
    w.uvarint(0)


class ListTransactionsResponse(Message):
    """ListTransactionsResponse, a response: versions 0 to 2, flexible from 0."""

    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")
    API_KEY: ClassVar[int] = 66
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[ListedTransaction] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states: list[ListedTransaction] = [] if transaction_states is EMPTY else transaction_states

    def write(self, w: Writer, version: int) -> None:
        _write_ListTransactionsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ListTransactionsResponse:
        return _read_ListTransactionsResponse(r, version)


def _read_ListTransactionsResponse(r: Reader, v: int) -> ListTransactionsResponse:
    m = ListTransactionsResponse.__new__(ListTransactionsResponse)
    m.throttle_time_ms, m.error_code = r.fixed(_fixed_ih)
    m.unknown_state_filters = [r.compact_string() for _ in r.each(r.compact_count(1))]
    m.transaction_states = [_read_ListedTransaction(r, v) for _ in r.each(r.compact_count(11))]
    r.skip_tags()
    return m


def _write_ListTransactionsResponse(w: Writer, m: ListTransactionsResponse, v: int) -> None:
    w.buf += _fixed_ih.pack(m.throttle_time_ms, m.error_code)
    w.compact_count(len(m.unknown_state_filters))
    for unknown_state_filter in w.each(m.unknown_state_filters):
        w.compact_string(unknown_state_filter)
    w.compact_count(len(m.transaction_states))
    for transaction_state in w.each(m.transaction_states):
        _write_ListedTransaction(w, transaction_state, v)
    w.uvarint(0)
