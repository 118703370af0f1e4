"""Share log. Generated from schema/share_log.txt by partita.protocol.generate; do not edit."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Message, Reader, Structure, Writer

_fixed_iiiqqq = Struct(">iiiqqq")
_fixed_iiq = Struct(">iiq")
_fixed_qqbh = Struct(">qqbh")


class ShareSnapshotKey(Message):
    """ShareSnapshotKey, a record_key: version 0."""

    __slots__ = ("group_id", "topic_id", "partition")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", topic_id: bytes = ZERO_UUID, partition: int = 0) -> None:
        self.group_id: str = group_id
        self.topic_id: bytes = topic_id
        self.partition: int = partition

    def write(self, w: Writer, version: int) -> None:
        _write_ShareSnapshotKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareSnapshotKey:
        return _read_ShareSnapshotKey(r, version)


def _read_ShareSnapshotKey(r: Reader, v: int) -> ShareSnapshotKey:
    m = ShareSnapshotKey.__new__(ShareSnapshotKey)
    m.group_id = r.string()
    m.topic_id = r.uuid()
    m.partition = r.int32()
    return m


def _write_ShareSnapshotKey(w: Writer, m: ShareSnapshotKey, v: int) -> None:
    w.string(m.group_id)
    w.uuid(m.topic_id)
    w.int32(m.partition)


class ShareStateBatch(Structure):
    """One element of state_batches in ShareSnapshotValue."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self, *, first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count


def _read_ShareStateBatch(r: Reader, v: int) -> ShareStateBatch:
    m = ShareStateBatch.__new__(ShareStateBatch)
    m.first_offset, m.last_offset, m.delivery_state, m.delivery_count = r.fixed(_fixed_qqbh)
    r.skip_tags()
    return m


def _write_ShareStateBatch(w: Writer, m: ShareStateBatch, v: int) -> None:
    w.buf += _fixed_qqbh.pack(m.first_offset, m.last_offset, m.delivery_state, m.delivery_count)
    w.uvarint(0)


class ShareSnapshotValue(Message):
    """ShareSnapshotValue, a record_value: version 0, flexible from 0."""

    __slots__ = (
        "snapshot_epoch",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "create_timestamp",
        "write_timestamp",
        "state_batches",
        "delivery_complete_count",
    )
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareStateBatch] = EMPTY,
        delivery_complete_count: int = -1,
    ) -> None:
        self.snapshot_epoch: int = snapshot_epoch
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.create_timestamp: int = create_timestamp
        self.write_timestamp: int = write_timestamp
        self.state_batches: list[ShareStateBatch] = [] if state_batches is EMPTY else state_batches
        self.delivery_complete_count: int = delivery_complete_count

    def write(self, w: Writer, version: int) -> None:
        _write_ShareSnapshotValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareSnapshotValue:
        return _read_ShareSnapshotValue(r, version)


def _read_ShareSnapshotValue(r: Reader, v: int) -> ShareSnapshotValue:
    m = ShareSnapshotValue.__new__(ShareSnapshotValue)
    m.snapshot_epoch, m.state_epoch, m.leader_epoch, m.start_offset, m.create_timestamp, m.write_timestamp = r.fixed(
        _fixed_iiiqqq
    )
    m.state_batches = [_read_ShareStateBatch(r, v) for _ in r.each(r.compact_count(20))]
    m.delivery_complete_count = -1
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.delivery_complete_count = r.int32()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_ShareSnapshotValue(w: Writer, m: ShareSnapshotValue, v: int) -> None:
    w.buf += _fixed_iiiqqq.pack(
        m.snapshot_epoch, m.state_epoch, m.leader_epoch, m.start_offset, m.create_timestamp, m.write_timestamp
    )
    w.compact_count(len(m.state_batches))
    for state_batche in w.each(m.state_batches):
        _write_ShareStateBatch(w, state_batche, v)
    tags: list[tuple[int, Writer]] = []
    if m.delivery_complete_count != -1:
        t = Writer()
        t.int32(m.delivery_complete_count)
        tags.append((0, t))
    w.tags(tags)


class ShareUpdateKey(Message):
    """ShareUpdateKey, a record_key: version 1."""

    __slots__ = ("group_id", "topic_id", "partition")
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int | None] = None

    def __init__(self, *, group_id: str = "", topic_id: bytes = ZERO_UUID, partition: int = 0) -> None:
        self.group_id: str = group_id
        self.topic_id: bytes = topic_id
        self.partition: int = partition

    def write(self, w: Writer, version: int) -> None:
        _write_ShareUpdateKey(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareUpdateKey:
        return _read_ShareUpdateKey(r, version)


def _read_ShareUpdateKey(r: Reader, v: int) -> ShareUpdateKey:
    m = ShareUpdateKey.__new__(ShareUpdateKey)
    m.group_id = r.string()
    m.topic_id = r.uuid()
    m.partition = r.int32()
    return m


def _write_ShareUpdateKey(w: Writer, m: ShareUpdateKey, v: int) -> None:
    w.string(m.group_id)
    w.uuid(m.topic_id)
    w.int32(m.partition)


class ShareUpdateValue(Message):
    """ShareUpdateValue, a record_value: version 0, flexible from 0."""

    __slots__ = ("snapshot_epoch", "leader_epoch", "start_offset", "state_batches", "delivery_complete_count")
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int | None] = 0

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[ShareStateBatch] = EMPTY,
        delivery_complete_count: int = -1,
    ) -> None:
        self.snapshot_epoch: int = snapshot_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.state_batches: list[ShareStateBatch] = [] if state_batches is EMPTY else state_batches
        self.delivery_complete_count: int = delivery_complete_count

    def write(self, w: Writer, version: int) -> None:
        _write_ShareUpdateValue(w, self, version)

    @classmethod
    def read(cls, r: Reader, version: int) -> ShareUpdateValue:
        return _read_ShareUpdateValue(r, version)


def _read_ShareUpdateValue(r: Reader, v: int) -> ShareUpdateValue:
    m = ShareUpdateValue.__new__(ShareUpdateValue)
    m.snapshot_epoch, m.leader_epoch, m.start_offset = r.fixed(_fixed_iiq)
    m.state_batches = [_read_ShareStateBatch(r, v) for _ in r.each(r.compact_count(20))]
    m.delivery_complete_count = -1
    tag = -1
    for _ in range(r.uvarint()):
        tag, end = r.tag(tag)
        if tag == 0:
            m.delivery_complete_count = r.int32()
        else:
            r.pos = end
        r.end_tag(end)
    return m


def _write_ShareUpdateValue(w: Writer, m: ShareUpdateValue, v: int) -> None:
    w.buf += _fixed_iiq.pack(m.snapshot_epoch, m.leader_epoch, m.start_offset)
    w.compact_count(len(m.state_batches))
    for state_batche in w.each(m.state_batches):
        _write_ShareStateBatch(w, state_batche, v)
    tags: list[tuple[int, Writer]] = []
    if m.delivery_complete_count != -1:
        t = Writer()
        t.int32(m.delivery_complete_count)
        tags.append((0, t))
    w.tags(tags)
