"""Consumer protocol. Generated from schema/consumer_protocol.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, Buffer, Message, Reader, Structure, Writer


class TopicPartition(Structure):
    """One element of owned_partitions in ConsumerProtocolSubscription."""

    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


def _read_TopicPartition(r: Reader, v: int) -> TopicPartition:
    m = TopicPartition.__new__(TopicPartition)
    m.topic = r.string()
    m.partitions = r.int32_array()
    return m


def _write_TopicPartition(w: Writer, m: TopicPartition, v: int) -> None:
    w.string(m.topic)
    w.int32_array(m.partitions)


class ConsumerProtocolSubscription(Message):
    """ConsumerProtocolSubscription, embedded data: versions 0 to 3."""

    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        user_data: Buffer | None = None,
        owned_partitions: list[TopicPartition] = EMPTY,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics: list[str] = [] if topics is EMPTY else topics
        self.user_data: Buffer | None = user_data
        self.owned_partitions: list[TopicPartition] = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id: int = generation_id
        self.rack_id: str | None = rack_id

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerProtocolSubscription(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerProtocolSubscription:
        return _read_ConsumerProtocolSubscription(r, version)


def _read_ConsumerProtocolSubscription(r: Reader, v: int) -> ConsumerProtocolSubscription:
    m = ConsumerProtocolSubscription.__new__(ConsumerProtocolSubscription)
    m.topics = [r.string() for _ in r.each(r.count(2))]
    m.user_data = r.nullable_bytes()
    m.owned_partitions = [_read_TopicPartition(r, v) for _ in r.each(r.count(6))] if v >= 1 else []
    m.generation_id = r.int32() if v >= 2 else -1
    m.rack_id = r.nullable_string() if v == 3 else None
    return m


def _write_ConsumerProtocolSubscription(w: Writer, m: ConsumerProtocolSubscription, v: int) -> None:
    w.count(len(m.topics))
    for topic in w.each(m.topics):
        w.string(topic)
    w.nullable_bytes(m.user_data)
    if v >= 1:
        w.count(len(m.owned_partitions))
        for owned_partition in w.each(m.owned_partitions):
            _write_TopicPartition(w, owned_partition, v)
    if v >= 2:
        w.int32(m.generation_id)
    if v == 3:
        w.nullable_string(m.rack_id)


class ConsumerProtocolAssignment(Message):
    """ConsumerProtocolAssignment, embedded data: versions 0 to 3."""

    __slots__ = ("assigned_partitions", "user_data")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, assigned_partitions: list[TopicPartition] = EMPTY, user_data: Buffer | None = None) -> None:
        self.assigned_partitions: list[TopicPartition] = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data: Buffer | None = user_data

    def write(self, w: Writer, version: int) -> None:
        _write_ConsumerProtocolAssignment(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ConsumerProtocolAssignment:
        return _read_ConsumerProtocolAssignment(r, version)


def _read_ConsumerProtocolAssignment(r: Reader, v: int) -> ConsumerProtocolAssignment:
    m = ConsumerProtocolAssignment.__new__(ConsumerProtocolAssignment)
    m.assigned_partitions = [_read_TopicPartition(r, v) for _ in r.each(r.count(6))]
    m.user_data = r.nullable_bytes()
    return m


def _write_ConsumerProtocolAssignment(w: Writer, m: ConsumerProtocolAssignment, v: int) -> None:
    w.count(len(m.assigned_partitions))
    for assigned_partition in w.each(m.assigned_partitions):
        _write_TopicPartition(w, assigned_partition, v)
    w.nullable_bytes(m.user_data)
