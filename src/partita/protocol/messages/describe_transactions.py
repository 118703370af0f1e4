"""DescribeTransactions (API 65). Generated from schema/describe_transactions.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_iqqh = Struct(">iqqh")


class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"]):
    """DescribeTransactionsRequest, a request: version 0, flexible from 0."""

    __slots__ = ("transactional_ids",)
    API_KEY: ClassVar[int] = 65
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, transactional_ids: list[str] = EMPTY) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is EMPTY else transactional_ids

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeTransactionsRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeTransactionsRequest:
        return _read_DescribeTransactionsRequest(r, version)


def _read_DescribeTransactionsRequest(r: Reader, v: int) -> DescribeTransactionsRequest:
    m = DescribeTransactionsRequest.__new__(DescribeTransactionsRequest)
    m.transactional_ids = [r.compact_string() for _ in r.each(r.compact_count(1))]
    r.skip_tags()
    return m


def _write_DescribeTransactionsRequest(w: Writer, m: DescribeTransactionsRequest, v: int) -> None:
    w.compact_count(len(m.transactional_ids))
    for transactional_id in w.each(m.transactional_ids):
        w.compact_string(transactional_id)
    w.uvarint(0)


class DescribedTransactionTopic(Structure):
    """One element of transaction_states.topics in DescribeTransactionsResponse."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_DescribedTransactionTopic(r: Reader, v: int) -> DescribedTransactionTopic:
    m = DescribedTransactionTopic.__new__(DescribedTransactionTopic)
    m.topic = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_DescribedTransactionTopic(w: Writer, m: DescribedTransactionTopic, v: int) -> None:
    w.compact_string(m.topic)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class DescribedTransaction(Structure):
    """One element of transaction_states in DescribeTransactionsResponse."""

    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[DescribedTransactionTopic] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.transactional_id: str = transactional_id
        self.transaction_state: str = transaction_state
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_start_time_ms: int = transaction_start_time_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.topics: list[DescribedTransactionTopic] = [] if topics is EMPTY else topics


def _read_DescribedTransaction(r: Reader, v: int) -> DescribedTransaction:
    m = DescribedTransaction.__new__(DescribedTransaction)
    m.error_code = r.int16()
    m.transactional_id = r.compact_string()
    m.transaction_state = r.compact_string()
    m.transaction_timeout_ms, m.transaction_start_time_ms, m.producer_id, m.producer_epoch = r.fixed(_fixed_iqqh)
    m.topics = [_read_DescribedTransactionTopic(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_DescribedTransaction(w: Writer, m: DescribedTransaction, v: int) -> None:
    w.int16(m.error_code)
    w.compact_string(m.transactional_id)
    w.compact_string(m.transaction_state)
    w.buf += _fixed_iqqh.pack(m.transaction_timeout_ms, m.transaction_start_time_ms, m.producer_id, m.producer_epoch)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_DescribedTransactionTopic(w, topic, v)
    w.uvarint(0)


class DescribeTransactionsResponse(Message):
    """DescribeTransactionsResponse, a response: version 0, flexible from 0."""

    __slots__ = ("throttle_time_ms", "transaction_states")
    API_KEY: ClassVar[int] = 65
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(self, *, throttle_time_ms: int = 0, transaction_states: list[DescribedTransaction] = EMPTY) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.transaction_states: list[DescribedTransaction] = [] if transaction_states is EMPTY else transaction_states

    def write(self, w: Writer, version: int) -> None:
        _write_DescribeTransactionsResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> DescribeTransactionsResponse:
        return _read_DescribeTransactionsResponse(r, version)


def _read_DescribeTransactionsResponse(r: Reader, v: int) -> DescribeTransactionsResponse:
    m = DescribeTransactionsResponse.__new__(DescribeTransactionsResponse)
    m.throttle_time_ms = r.int32()
    m.transaction_states = [_read_DescribedTransaction(r, v) for _ in r.each(r.compact_count(28))]
    r.skip_tags()
    return m


def _write_DescribeTransactionsResponse(w: Writer, m: DescribeTransactionsResponse, v: int) -> None:
    w.int32(m.throttle_time_ms)
    w.compact_count(len(m.transaction_states))
    for transaction_state in w.each(m.transaction_states):
        _write_DescribedTransaction(w, transaction_state, v)
    w.uvarint(0)
