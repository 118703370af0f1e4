"""Transaction log. Generated from schema/transaction_log.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, Message, Reader, Structure, Writer

_fixed_qhib = Struct(">qhib")
_fixed_qq = Struct(">qq")


class TransactionLogKey(Message):
    """TransactionLogKey, a record_key: version 0."""

    __slots__ = ("transactional_id",)
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, transactional_id: str = "") -> None:
        self.transactional_id: str = transactional_id

    def write(self, w: Writer, version: int) -> None:
        _write_TransactionLogKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> TransactionLogKey:
        return _read_TransactionLogKey(r, version)


def _read_TransactionLogKey(r: Reader, v: int) -> TransactionLogKey:
    m = TransactionLogKey.__new__(TransactionLogKey)
    m.transactional_id = r.string()
    return m


def _write_TransactionLogKey(w: Writer, m: TransactionLogKey, v: int) -> None:
    w.string(m.transactional_id)


class TransactionLogPartitions(Structure):
    """One element of transaction_partitions in TransactionLogValue."""

    __slots__ = ("topic", "partition_ids")

    def __init__(self, *, topic: str = "", partition_ids: list[int] = EMPTY) -> None:
        self.topic: str = topic
        self.partition_ids: list[int] = [] if partition_ids is EMPTY else partition_ids


def _read_TransactionLogPartitions(r: Reader, v: int) -> TransactionLogPartitions:
    m = TransactionLogPartitions.__new__(TransactionLogPartitions)
    if v >= 1:
        m.topic = r.compact_string()
        m.partition_ids = r.compact_int32_array()
        r.skip_tags()
    else:
        m.topic = r.string()
        m.partition_ids = r.int32_array()
    return m


def _write_TransactionLogPartitions(w: Writer, m: TransactionLogPartitions, v: int) -> None:
    if v >= 1:
        w.compact_string(m.topic)
        w.compact_int32_array(m.partition_ids)
        w.uvarint(0)
    else:
        w.string(m.topic)
        w.int32_array(m.partition_ids)


class TransactionLogValue(Message):
    """TransactionLogValue, a record_value: versions 0 to 1, flexible from 1."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_timeout_ms",
        "transaction_status",
        "transaction_partitions",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "previous_producer_id",
        "next_producer_id",
        "client_transaction_version",
        "next_producer_epoch",
        "last_producer_epoch",
    )
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = 1

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TransactionLogPartitions] | None = EMPTY,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        client_transaction_version: int = 0,
        next_producer_epoch: int = -1,
        last_producer_epoch: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_status: int = transaction_status
        self.transaction_partitions: list[TransactionLogPartitions] | None = (
            [] if transaction_partitions is EMPTY else transaction_partitions
        )
        self.transaction_last_update_timestamp_ms: int = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms: int = transaction_start_timestamp_ms
        self.previous_producer_id: int = previous_producer_id
        self.next_producer_id: int = next_producer_id
        self.client_transaction_version: int = client_transaction_version
        self.next_producer_epoch: int = next_producer_epoch
        self.last_producer_epoch: int = last_producer_epoch

    def write(self, w: Writer, version: int) -> None:
        _write_TransactionLogValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> TransactionLogValue:
        return _read_TransactionLogValue(r, version)


def _read_TransactionLogValue(r: Reader, v: int) -> TransactionLogValue:
    m = TransactionLogValue.__new__(TransactionLogValue)
    if v >= 1:
        m.producer_id, m.producer_epoch, m.transaction_timeout_ms, m.transaction_status = r.fixed(_fixed_qhib)
        m.transaction_partitions = (
            None
            if (n := r.compact_nullable_count(3)) < 0
            else [_read_TransactionLogPartitions(r, v) for _ in r.each(n)]
        )
        m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms = r.fixed(_fixed_qq)
        m.previous_producer_id = -1
        m.next_producer_id = -1
        m.client_transaction_version = 0
        m.next_producer_epoch = -1
        m.last_producer_epoch = -1
        tag = -1
        for _ in range(r.uvarint()):
            tag, end = r.tag(tag)
            if tag == 0:
                m.previous_producer_id = r.int64()
            elif tag == 1:
                m.next_producer_id = r.int64()
            elif tag == 2:
                m.client_transaction_version = r.int16()
            elif tag == 3:
                m.next_producer_epoch = r.int16()
            elif tag == 20357:
                m.last_producer_epoch = r.int16()
            else:
                r.pos = end
            r.end_tag(end)
    else:
        m.producer_id, m.producer_epoch, m.transaction_timeout_ms, m.transaction_status = r.fixed(_fixed_qhib)
        m.transaction_partitions = (
            None if (n := r.nullable_count(6)) < 0 else [_read_TransactionLogPartitions(r, v) for _ in r.each(n)]
        )
        m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms = r.fixed(_fixed_qq)
        m.previous_producer_id = -1
        m.next_producer_id = -1
        m.client_transaction_version = 0
        m.next_producer_epoch = -1
        m.last_producer_epoch = -1
    return m


def _write_TransactionLogValue(w: Writer, m: TransactionLogValue, v: int) -> None:
    if v >= 1:
        w.buf += _fixed_qhib.pack(m.producer_id, m.producer_epoch, m.transaction_timeout_ms, m.transaction_status)
        if m.transaction_partitions is None:
            w.compact_count(-1)
        else:
            w.compact_count(len(m.transaction_partitions))
            for transaction_partition in w.each(m.transaction_partitions):
                _write_TransactionLogPartitions(w, transaction_partition, v)
        w.buf += _fixed_qq.pack(m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms)
        tags: list[tuple[int, Writer]] = []
        if m.previous_producer_id != -1:
            t = Writer()
            t.int64(m.previous_producer_id)
            tags.append((0, t))
        if m.next_producer_id != -1:
            t = Writer()
            t.int64(m.next_producer_id)
            tags.append((1, t))
        if m.client_transaction_version != 0:
            t = Writer()
            t.int16(m.client_transaction_version)
            tags.append((2, t))
        if m.next_producer_epoch != -1:
            t = Writer()
            t.int16(m.next_producer_epoch)
            tags.append((3, t))
        if m.last_producer_epoch != -1:
            t = Writer()
            t.int16(m.last_producer_epoch)
            tags.append((20357, t))
        w.tags(tags)
    else:
        w.buf += _fixed_qhib.pack(m.producer_id, m.producer_epoch, m.transaction_timeout_ms, m.transaction_status)
        if m.transaction_partitions is None:
            w.count(-1)
        else:
            w.count(len(m.transaction_partitions))
            for transaction_partition in w.each(m.transaction_partitions):
                _write_TransactionLogPartitions(w, transaction_partition, v)
        w.buf += _fixed_qq.pack(m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms)
