"""The settings of share groups as the leaders of their partitions read them: at each use, since they may change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from partita.log.storage import StorageError
from partita.log.timestamp_search import first_in
from partita.options import parse_duration_ms
from partita.protocol.error_codes import ErrorCode
from partita.records.header import InvalidBatch, read_header
from partita.records.opened.inspect import is_long
from partita.records.validate import inflated_bytes_max
from partita.share.partition.model import Limits

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import Partition
    from partita.now import Clock


class InForce(Protocol):
    """A setting of a group: its own value, or the broker's."""

    def __call__(self, group_id: str, name: str, /) -> int | str: ...


class ShareSettings:
    """Limits, isolation and first offsets of share groups."""

    def __init__(self, in_force: InForce, clock: Clock, takes_letters: Callable[[], bool]) -> None:
        """`takes_letters` says whether groups may have dead letters. (share.version 2)"""
        self._takes_letters = takes_letters
        self._in_force = in_force
        self._clock = clock

    def limits(self, group_id: str) -> Limits:
        """Return the limits that hold for the group's share partitions now."""
        return Limits(
            self._number(group_id, "share.delivery.count.limit"),
            self._number(group_id, "share.partition.max.record.locks"),
            self.lock_ms(group_id),
            bool(self._in_force(group_id, "share.renew.acknowledge.enable")),
            self._takes_letters() and bool(self._in_force(group_id, "errors.deadletterqueue.topic.name")),
        )

    def lock_ms(self, group_id: str) -> int:
        """How long a member holds what it acquires now."""
        return self._number(group_id, "share.record.lock.duration.ms")

    def is_committed(self, group_id: str) -> bool:
        """Whether records of transactions are hidden until they are committed."""
        return self._in_force(group_id, "share.isolation.level") == "read_committed"

    async def initial_offset(self, group_id: str, partition: Partition) -> int | ErrorCode:
        """Return the first offset of a group that has none stored."""
        reset = str(self._in_force(group_id, "share.auto.offset.reset"))
        try:
            log = partition.log
            if reset == "latest":
                return log.high_watermark
            if reset == "earliest":
                return log.log_start_offset
            timestamp = self._clock.now().wall_ms - parse_duration_ms(reset.partition(":")[2])
            return await self._first_since(partition, timestamp)
        except (StorageError, InvalidBatch):
            return ErrorCode.KAFKA_STORAGE_ERROR

    async def _first_since(self, partition: Partition, timestamp: int) -> int | ErrorCode:
        """The first record that is young enough. Large batches are searched beside the event loop."""
        start = partition.log.log_start_offset
        max_bytes = inflated_bytes_max(partition.topic.config.int("max.message.bytes"))
        for batch in partition.log.batches_from_timestamp(timestamp):
            look = partial(first_in, batch, timestamp, start, max_bytes)
            found = (await asyncio.to_thread(look)) if is_long(read_header(batch)) else look()
            if found is not None:
                return found.offset
        return ErrorCode.OFFSET_NOT_AVAILABLE

    def _number(self, group_id: str, name: str) -> int:
        value = self._in_force(group_id, name)
        assert isinstance(value, int), f"{name} is no number: {value!r}"
        return value
