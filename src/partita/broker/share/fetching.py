"""One ShareFetch: looks at the partitions of its session, waits if there is too little, and acquires once.

A partition that is loaded or fully acquired has nothing to give for now; its fetch waits for it. (Kafka:
DelayedShareFetch.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.share.led import NOTHING, LedPartition, Taken
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.records.header import InvalidBatch
from partita.share.partition.acquiring import Wish
from partita.share.sessions import Key

if TYPE_CHECKING:
    from partita.broker.share.acknowledging import Partitions
    from partita.broker.share.node import ShareNode
    from partita.broker.topics.catalogue import Partition


class Wanted(NamedTuple):
    """How much one ShareFetch asks for, of which member of which group."""

    group_id: str
    member_id: str
    is_exact: bool
    records_max: int
    batch_size: int
    bytes_min: int
    bytes_max: int

    @property
    def wants_nothing(self) -> bool:
        """Whether no record may be acquired for it."""
        return self.records_max <= 0 or self.bytes_max <= 0


class Got(NamedTuple):
    """The outcome of one partition."""

    taken: Taken = NOTHING
    code: ErrorCode = ErrorCode.NONE


class ShareFetching:
    """One request. It may be looked at often, and acquires when there is enough, something to say, or no time left."""

    def __init__(
        self, node: ShareNode, partitions: Partitions, asked: Wanted, keys: Sequence[Key], added: frozenset[Key]
    ) -> None:
        """`added` are those of the partitions that the request itself names."""
        self._added = added
        self._node = node
        self._partitions = partitions
        self._asked = asked
        self._keys = keys
        self._led: dict[Key, LedPartition] = {}
        self._by_partition: dict[Partition, LedPartition] = {}
        self._seen: dict[LedPartition, tuple[int, int]] = {}
        self._sizes: dict[LedPartition, int] = {}
        self._known: set[Key] = set()
        """The partitions in error when they were first looked at: they end no waiting."""

    def load(self) -> Generator[None, None, set[asyncio.Task[None]]]:
        """Find every partition; return the loads that are under way."""
        self._known = set()
        for key in self._keys:
            yield None
            if self._look(key) is not ErrorCode.NONE:
                self._known.add(key)
        return {led.load for led in self._led.values() if not led.load.done()}

    def attempt(self, *, is_final: bool) -> Generator[None, None, dict[Key, Got] | None]:
        """Return what each partition gives, in the order of the session; None if the fetch should wait."""
        errors: dict[Key, Got] = {}
        for key in self._keys:
            yield None
            code = self._look(key)
            if code is not ErrorCode.NONE:
                errors[key] = Got(code=code)
        has_news = not self._led or any(key not in self._known for key in errors)
        if not (is_final or has_news or self.is_enough(())):
            return None
        found = yield from self._acquire(errors)
        return found if is_final or has_news or any(got.taken.acquired for got in found.values()) else None

    def partitions(self) -> list[Partition]:
        """The partitions to wait for."""
        return list(self._by_partition)

    def has_moved(self) -> bool:
        """Whether anything happened to a partition since it was looked at."""
        return any(self._state_of(led) != seen for led, seen in self._seen.items())

    def is_enough(self, moved: Iterable[Partition]) -> bool:
        """Whether to attempt again, given the partitions that moved."""
        for partition in moved:
            led = self._by_partition[partition]
            if led.has_ended:
                return True
            self._measure(led)
        return any(led.can_acquire for led in self._sizes) and sum(self._sizes.values()) >= self._asked.bytes_min

    def _look(self, key: Key) -> ErrorCode:
        """Find the share partition, and measure what it has; or the error for its place in the answer."""
        led = self._led.get(key)
        if led is not None and led.has_ended:
            self._forget(key, led)
            if led.error is not ErrorCode.NONE:
                return led.error
            led = None
        partition = self._partitions.find(key)
        if isinstance(partition, ErrorCode):
            if led is not None:
                self._forget(key, led)
            is_deleted = partition is ErrorCode.UNKNOWN_TOPIC_ID and key not in self._added
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_deleted else partition
        if led is None:
            led = self._led[key] = self._by_partition[partition] = self._node.lead(self._asked.group_id, key, partition)
        self._measure(led)
        return ErrorCode.NONE

    def _forget(self, key: Key, led: LedPartition) -> None:
        del self._led[key], self._by_partition[led.partition]
        self._sizes.pop(led, None)
        self._seen.pop(led, None)

    def _measure(self, led: LedPartition) -> None:
        self._sizes[led] = led.readable_bytes()
        self._seen[led] = self._state_of(led)

    def _state_of(self, led: LedPartition) -> tuple[int, int]:
        return led.changes, led.end_offset()

    def _acquire(self, errors: dict[Key, Got]) -> Generator[None, None, dict[Key, Got]]:
        givers = sum(1 for size in self._sizes.values() if size)
        share, rest = divmod(self._asked.bytes_max, givers) if givers else (0, 0)
        left = self._asked.records_max
        found: dict[Key, Got] = {}
        for key in self._keys:
            if key in errors:
                found[key] = errors[key]
                continue
            led = self._led[key]
            if left <= 0 or not self._sizes[led]:
                continue
            yield None
            got = self._take(led, left, share + rest)
            rest = 0
            left -= sum(acquired.last - acquired.first + 1 for acquired in got.taken.acquired)
            if got.taken.acquired or got.code:
                found[key] = got
        return found

    def _take(self, led: LedPartition, records_max: int, bytes_max: int) -> Got:
        asked = self._asked
        if led.has_ended:
            return Got(code=led.error)
        try:
            return Got(led.take(Wish(asked.member_id, asked.is_exact, records_max, asked.batch_size), bytes_max))
        except InvalidBatch as error:
            return Got(code=error.code)
        except StorageError:
            return Got(code=ErrorCode.KAFKA_STORAGE_ERROR)
