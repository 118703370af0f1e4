"""AddPartitionsToTxn (API 24). Generated from schema/add_partitions_to_txn.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Request, Structure, Writer

_fixed_ih = Struct(">ih")
_fixed_qh = Struct(">qh")


class AddPartitionsToTxnTopic(Structure):
    """One element of transactions.topics in AddPartitionsToTxnRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_AddPartitionsToTxnTopic(r: Reader, v: int) -> AddPartitionsToTxnTopic:
    m = AddPartitionsToTxnTopic.__new__(AddPartitionsToTxnTopic)
    m.name = r.compact_string()
    m.partitions = r.compact_int32_array()
    r.skip_tags()
    return m


def _write_AddPartitionsToTxnTopic(w: Writer, m: AddPartitionsToTxnTopic, v: int) -> None:
    w.compact_string(m.name)
    w.compact_int32_array(m.partitions)
    w.uvarint(0)


class AddPartitionsToTxnTransaction(Structure):
    """One element of transactions in AddPartitionsToTxnRequest."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.verify_only: bool = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is EMPTY else topics


def _read_AddPartitionsToTxnTransaction(r: Reader, v: int) -> AddPartitionsToTxnTransaction:
    m = AddPartitionsToTxnTransaction.__new__(AddPartitionsToTxnTransaction)
    m.transactional_id = r.compact_string()
    m.producer_id, m.producer_epoch = r.fixed(_fixed_qh)
    m.verify_only = r.boolean()
    m.topics = [_read_AddPartitionsToTxnTopic(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_AddPartitionsToTxnTransaction(w: Writer, m: AddPartitionsToTxnTransaction, v: int) -> None:
    w.compact_string(m.transactional_id)
    w.buf += _fixed_qh.pack(m.producer_id, m.producer_epoch)
    w.boolean(m.verify_only)
    w.compact_count(len(m.topics))
    for topic in w.each(m.topics):
        _write_AddPartitionsToTxnTopic(w, topic, v)
    w.uvarint(0)


class V3AndBelowTopic(Structure):
    """One element of v3_and_below_topics in AddPartitionsToTxnRequest."""

    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_V3AndBelowTopic(r: Reader, v: int) -> V3AndBelowTopic:
    m = V3AndBelowTopic.__new__(V3AndBelowTopic)
    if v >= 3:
        m.name = r.compact_string()
        m.partitions = r.compact_int32_array()
        r.skip_tags()
    else:
        m.name = r.string()
        m.partitions = r.int32_array()
    return m


def _write_V3AndBelowTopic(w: Writer, m: V3AndBelowTopic, v: int) -> None:
    if v >= 3:
        w.compact_string(m.name)
        w.compact_int32_array(m.partitions)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.int32_array(m.partitions)


class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"]):
    """AddPartitionsToTxnRequest, a request: versions 0 to 5, flexible from 3."""

    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )
    API_KEY: ClassVar[int] = 24
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[V3AndBelowTopic] = EMPTY,
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[V3AndBelowTopic] = [] if v3_and_below_topics is EMPTY else v3_and_below_topics

    def write(self, w: Writer, version: int) -> None:
        _write_AddPartitionsToTxnRequest(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AddPartitionsToTxnRequest:
        return _read_AddPartitionsToTxnRequest(r, version)


def _read_AddPartitionsToTxnRequest(r: Reader, v: int) -> AddPartitionsToTxnRequest:
    m = AddPartitionsToTxnRequest.__new__(AddPartitionsToTxnRequest)
    if v >= 3:
        m.transactions = (
            [_read_AddPartitionsToTxnTransaction(r, v) for _ in r.each(r.compact_count(14))] if v >= 4 else []
        )
        m.v3_and_below_transactional_id = r.compact_string() if v == 3 else ""
        m.v3_and_below_producer_id = r.int64() if v == 3 else 0
        m.v3_and_below_producer_epoch = r.int16() if v == 3 else 0
        m.v3_and_below_topics = [_read_V3AndBelowTopic(r, v) for _ in r.each(r.compact_count(3))] if v == 3 else []
        r.skip_tags()
    else:
        m.v3_and_below_transactional_id = r.string()
        m.v3_and_below_producer_id, m.v3_and_below_producer_epoch = r.fixed(_fixed_qh)
        m.v3_and_below_topics = [_read_V3AndBelowTopic(r, v) for _ in r.each(r.count(6))]
        m.transactions = []
    return m


def _write_AddPartitionsToTxnRequest(w: Writer, m: AddPartitionsToTxnRequest, v: int) -> None:
    if v >= 3:
        if v >= 4:
            w.compact_count(len(m.transactions))
            for transaction in w.each(m.transactions):
                _write_AddPartitionsToTxnTransaction(w, transaction, v)
        if v == 3:
            w.compact_string(m.v3_and_below_transactional_id)
            w.int64(m.v3_and_below_producer_id)
            w.int16(m.v3_and_below_producer_epoch)
            w.compact_count(len(m.v3_and_below_topics))
            for v3_and_below_topic in w.each(m.v3_and_below_topics):
                _write_V3AndBelowTopic(w, v3_and_below_topic, v)
        w.uvarint(0)
    else:
        w.string(m.v3_and_below_transactional_id)
        w.buf += _fixed_qh.pack(m.v3_and_below_producer_id, m.v3_and_below_producer_epoch)
        w.count(len(m.v3_and_below_topics))
        for v3_and_below_topic in w.each(m.v3_and_below_topics):
            _write_V3AndBelowTopic(w, v3_and_below_topic, v)


class AddPartitionsToTxnPartitionResult(Structure):
    """One element of results_by_transaction.topic_results.results_by_partition in AddPartitionsToTxnResponse."""

    __slots__ = ("partition_index", "partition_error_code")

    def __init__(self, *, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code


def _read_AddPartitionsToTxnPartitionResult(r: Reader, v: int) -> AddPartitionsToTxnPartitionResult:
    m = AddPartitionsToTxnPartitionResult.__new__(AddPartitionsToTxnPartitionResult)
    m.partition_index, m.partition_error_code = r.fixed(_fixed_ih)
    r.skip_tags()
    return m


def _write_AddPartitionsToTxnPartitionResult(w: Writer, m: AddPartitionsToTxnPartitionResult, v: int) -> None:
    w.buf += _fixed_ih.pack(m.partition_index, m.partition_error_code)
    w.uvarint(0)


class AddPartitionsToTxnTopicResult(Structure):
    """One element of results_by_transaction.topic_results in AddPartitionsToTxnResponse."""

    __slots__ = ("name", "results_by_partition")

    def __init__(
        self, *, name: str = "", results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY
    ) -> None:
        self.name: str = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = (
            [] if results_by_partition is EMPTY else results_by_partition
        )


def _read_AddPartitionsToTxnTopicResult(r: Reader, v: int) -> AddPartitionsToTxnTopicResult:
    m = AddPartitionsToTxnTopicResult.__new__(AddPartitionsToTxnTopicResult)
    m.name = r.compact_string()
    m.results_by_partition = [_read_AddPartitionsToTxnPartitionResult(r, v) for _ in r.each(r.compact_count(7))]
    r.skip_tags()
    return m


def _write_AddPartitionsToTxnTopicResult(w: Writer, m: AddPartitionsToTxnTopicResult, v: int) -> None:
    w.compact_string(m.name)
    w.compact_count(len(m.results_by_partition))
    for results_by_partition_item in w.each(m.results_by_partition):
        _write_AddPartitionsToTxnPartitionResult(w, results_by_partition_item, v)
    w.uvarint(0)


class AddPartitionsToTxnResult(Structure):
    """One element of results_by_transaction in AddPartitionsToTxnResponse."""

    __slots__ = ("transactional_id", "topic_results")

    def __init__(
        self, *, transactional_id: str = "", topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY
    ) -> None:
        self.transactional_id: str = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is EMPTY else topic_results


def _read_AddPartitionsToTxnResult(r: Reader, v: int) -> AddPartitionsToTxnResult:
    m = AddPartitionsToTxnResult.__new__(AddPartitionsToTxnResult)
    m.transactional_id = r.compact_string()
    m.topic_results = [_read_AddPartitionsToTxnTopicResult(r, v) for _ in r.each(r.compact_count(3))]
    r.skip_tags()
    return m


def _write_AddPartitionsToTxnResult(w: Writer, m: AddPartitionsToTxnResult, v: int) -> None:
    w.compact_string(m.transactional_id)
    w.compact_count(len(m.topic_results))
    for topic_result in w.each(m.topic_results):
        _write_AddPartitionsToTxnTopicResult(w, topic_result, v)
    w.uvarint(0)


class V3AndBelowPartitionResult(Structure):
    """One element of results_by_topic_v3_and_below.results_by_partition in AddPartitionsToTxnResponse."""

    __slots__ = ("partition_index", "partition_error_code")

    def __init__(self, *, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code


def _read_V3AndBelowPartitionResult(r: Reader, v: int) -> V3AndBelowPartitionResult:
    m = V3AndBelowPartitionResult.__new__(V3AndBelowPartitionResult)
    if v >= 3:
        m.partition_index, m.partition_error_code = r.fixed(_fixed_ih)
        r.skip_tags()
    else:
        m.partition_index, m.partition_error_code = r.fixed(_fixed_ih)
    return m


def _write_V3AndBelowPartitionResult(w: Writer, m: V3AndBelowPartitionResult, v: int) -> None:
    if v >= 3:
        w.buf += _fixed_ih.pack(m.partition_index, m.partition_error_code)
        w.uvarint(0)
    else:
        w.buf += _fixed_ih.pack(m.partition_index, m.partition_error_code)


class V3AndBelowTopicResult(Structure):
    """One element of results_by_topic_v3_and_below in AddPartitionsToTxnResponse."""

    __slots__ = ("name", "results_by_partition")

    def __init__(self, *, name: str = "", results_by_partition: list[V3AndBelowPartitionResult] = EMPTY) -> None:
        self.name: str = name
        self.results_by_partition: list[V3AndBelowPartitionResult] = (
            [] if results_by_partition is EMPTY else results_by_partition
        )


def _read_V3AndBelowTopicResult(r: Reader, v: int) -> V3AndBelowTopicResult:
    m = V3AndBelowTopicResult.__new__(V3AndBelowTopicResult)
    if v >= 3:
        m.name = r.compact_string()
        m.results_by_partition = [_read_V3AndBelowPartitionResult(r, v) for _ in r.each(r.compact_count(7))]
        r.skip_tags()
    else:
        m.name = r.string()
        m.results_by_partition = [_read_V3AndBelowPartitionResult(r, v) for _ in r.each(r.count(6))]
    return m


def _write_V3AndBelowTopicResult(w: Writer, m: V3AndBelowTopicResult, v: int) -> None:
    if v >= 3:
        w.compact_string(m.name)
        w.compact_count(len(m.results_by_partition))
        for results_by_partition_item in w.each(m.results_by_partition):
            _write_V3AndBelowPartitionResult(w, results_by_partition_item, v)
        w.uvarint(0)
    else:
        w.string(m.name)
        w.count(len(m.results_by_partition))
        for results_by_partition_item in w.each(m.results_by_partition):
            _write_V3AndBelowPartitionResult(w, results_by_partition_item, v)


class AddPartitionsToTxnResponse(Message):
    """AddPartitionsToTxnResponse, a response: versions 0 to 5, flexible from 3."""

    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")
    API_KEY: ClassVar[int] = 24
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int | None] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,
        results_by_topic_v3_and_below: list[V3AndBelowTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = (
            [] if results_by_transaction is EMPTY else results_by_transaction
        )
        self.results_by_topic_v3_and_below: list[V3AndBelowTopicResult] = (
            [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
        )

    def write(self, w: Writer, version: int) -> None:
        _write_AddPartitionsToTxnResponse(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> AddPartitionsToTxnResponse:
        return _read_AddPartitionsToTxnResponse(r, version)


def _read_AddPartitionsToTxnResponse(r: Reader, v: int) -> AddPartitionsToTxnResponse:
    m = AddPartitionsToTxnResponse.__new__(AddPartitionsToTxnResponse)
    if v >= 3:
        m.throttle_time_ms = r.int32()
        m.error_code = r.int16() if v >= 4 else 0
        m.results_by_transaction = (
            [_read_AddPartitionsToTxnResult(r, v) for _ in r.each(r.compact_count(3))] if v >= 4 else []
        )
        m.results_by_topic_v3_and_below = (
            [_read_V3AndBelowTopicResult(r, v) for _ in r.each(r.compact_count(3))] if v == 3 else []
        )
        r.skip_tags()
    else:
        m.throttle_time_ms = r.int32()
        m.results_by_topic_v3_and_below = [_read_V3AndBelowTopicResult(r, v) for _ in r.each(r.count(6))]
        m.error_code = 0
        m.results_by_transaction = []
    return m


def _write_AddPartitionsToTxnResponse(w: Writer, m: AddPartitionsToTxnResponse, v: int) -> None:
    if v >= 3:
        w.int32(m.throttle_time_ms)
        if v >= 4:
            w.int16(m.error_code)
            w.compact_count(len(m.results_by_transaction))
            for results_by_transaction_item in w.each(m.results_by_transaction):
                _write_AddPartitionsToTxnResult(w, results_by_transaction_item, v)
        if v == 3:
            w.compact_count(len(m.results_by_topic_v3_and_below))
            for results_by_topic_v3_and_below_item in w.each(m.results_by_topic_v3_and_below):
                _write_V3AndBelowTopicResult(w, results_by_topic_v3_and_below_item, v)
        w.uvarint(0)
    else:
        w.int32(m.throttle_time_ms)
        w.count(len(m.results_by_topic_v3_and_below))
        for results_by_topic_v3_and_below_item in w.each(m.results_by_topic_v3_and_below):
            _write_V3AndBelowTopicResult(w, results_by_topic_v3_and_below_item, v)
