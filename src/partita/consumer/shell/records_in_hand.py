"""The records that a `for` loop over the consumer has taken from a poll and not finished yet.

A loop gets its records one by one. A record counts as passed once the loop asks for the next one; until then a commit
says that it is still to be read. So a loop that breaks, raises or is cancelled loses nothing: what it did not pass is
read again, by the next loop, the next poll, or the next owner of the partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from partita.consumer.partition_state import InHand, PartitionState, Position
from partita.consumer.records import ConsumerRecord, ConsumerRecords
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import run_blocking
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition

_POLL_AT_LEAST_EVERY_MS = 1_000


class _Part:
    """The records of one partition; `at` is the next one to yield."""

    __slots__ = ("at", "count", "end", "records", "stand", "state", "tp")

    def __init__(
        self, tp: TopicPartition, state: PartitionState, records: list[ConsumerRecord[Any, Any]], end: OffsetAndMetadata
    ):
        self.tp = tp
        self.state = state
        self.records = records
        self.end = end
        self.at = 0
        self.count = len(records)
        self.stand = state.in_hand = InHand(records[0].offset, records)


@dataclass(slots=True)
class _Given:
    """What the last poll gave of one partition: its records begin at `start`; fetching goes on at `end`."""

    state: PartitionState
    start: int
    end: int


class RecordsInHand:
    """`fill` takes what a poll found, `next` yields it, `take` gives the rest to a poll, `put_back` to the fetcher.

    `PartitionState.in_hand` is where the application stands in each partition with records in hand.
    """

    def __init__(self, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._core = driver.core
        self._parts: deque[_Part] = deque()
        self._yielded: _Part | None = None
        self._given: dict[TopicPartition, _Given] = {}
        self._polled_ms = 0
        self._seen = -1
        self._calls = -1
        self._polled_at = -1

    def __len__(self) -> int:
        return sum(part.count - part.at for part in self._parts)

    @property
    def has_deliverable(self) -> bool:
        """Could `next` return a record?"""
        return any(self._has_more(part) and part.state.is_deliverable for part in self._parts)

    def fill(self, found: ConsumerRecords[Any, Any]) -> None:
        """Keep these records; they were taken by the poll that is under way. Called with the core's lock held."""
        for tp, records in found.items():
            self._given.pop(tp, None)
            state = self._core.subscription.assignment.get(tp)
            if state is None or not records:
                continue
            end = found.next_offsets.get(tp) or OffsetAndMetadata(records[-1].offset + 1, records[-1].leader_epoch)
            before = next((part for part in self._parts if part.stand is state.in_hand), None)
            if before is None:
                self._parts.append(_Part(tp, state, list(records), end))
            else:
                before.records += records
                before.count += len(records)
                before.end = end

    def next(self) -> ConsumerRecord[Any, Any] | None:
        """Pass the record yielded last and return the next one; None when a poll is due first."""
        part = self._yielded
        if part is not None:
            if part.state.in_hand is part.stand:
                self._move(part)
            self._yielded = None
        self._calls = self._driver.calls
        if not self._parts or self._is_poll_due():
            return None
        self._yielded = part = self._next_part()
        if part is None:
            return None
        part.at += 1
        return part.records[part.at - 1]

    def burst(self) -> Iterator[ConsumerRecord[Any, Any]]:
        """After `next`: pass the record yielded last, yield the one behind it, and so on, as `next` would.

        It ends where `next` has to look again: after up to sixteen records, at the end of a partition's records, or
        when something has happened, in the I/O thread (a heartbeat was answered, say) or by a call of the application.
        """
        part, io, driver = self._yielded, self._driver.io, self._driver
        if part is None:
            return
        at, count, records, stand = part.at, part.count, part.records, part.stand
        seen, calls = self._seen, self._calls
        while at & 15 and at < count and io.activity == seen and driver.calls == calls:
            stand.passed = at
            part.at = at = at + 1
            yield records[at - 1]

    def _next_part(self) -> _Part | None:
        """The first part that may be yielded; those that are over go, those that may not come last."""
        for _ in range(len(self._parts)):
            part = self._parts[0]
            if not self._has_more(part):
                self._parts.popleft()
            elif not part.state.is_deliverable:
                self._parts.rotate(-1)
            else:
                return part
        return None

    def polled(self) -> None:
        """A poll has ended: the next one is due after a second, or when something happens."""
        self._polled_ms = self._driver.now().mono_ms
        self._polled_at = self._driver.io.activity

    def begin_poll(self) -> None:
        """A poll begins: the application has finished what the one before gave it."""
        self._given.clear()

    def gave(self, starts: Mapping[TopicPartition, int]) -> None:
        """A poll gives records that begin at these offsets to the application. Called with the core's lock held."""
        for tp, start in starts.items():
            state = self._core.subscription.assignment.get(tp)
            if state is not None and state.position is not None:
                self._given[tp] = _Given(state, start, state.position.offset)

    def take_back(self) -> None:
        """An exception leaves the application's block: what the last poll gave is not known to be processed.

        So the commit on close says that it is still to be read, but for what the application has committed itself.
        Called with the core's lock held.
        """
        for tp, given in self._given.items():
            state = given.state
            has_sought = state.position is None or state.position.offset != given.end
            if not has_sought and self._core.subscription.assignment.get(tp) is state:
                state.in_hand = InHand(given.start)
        self._given.clear()

    def pass_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None) -> None:
        """The application commits these offsets itself, or all positions.

        If the record yielded last is among them, it is passed; so is what the last poll gave before these offsets.
        """
        if offsets is None:
            self._given.clear()
        for tp, wanted in (offsets or {}).items():
            if tp in self._given:
                self._given[tp].start = wanted.offset
        part = self._yielded
        if part is None or not offsets or part.state.in_hand is not part.stand:
            return
        committed = offsets.get(part.tp)
        if committed is not None and committed.offset == part.records[part.at - 1].offset + 1:
            self._yielded = None
            self._move(part)

    def begin_again(self) -> None:
        """A new loop begins: the record yielded last was not passed, so it comes again."""
        self._driver.calls += 1
        part, self._yielded = self._yielded, None
        if part is not None:
            part.at -= 1

    def take(self, limit: int) -> ConsumerRecords[Any, Any] | None:
        """Records in hand for a poll, at most `limit`, the one yielded last included; None without any."""
        found: dict[TopicPartition, list[ConsumerRecord[Any, Any]]] = {}
        ends: dict[TopicPartition, OffsetAndMetadata] = {}
        kept: deque[_Part] = deque()
        while self._parts:
            part = self._parts.popleft()
            if part is self._yielded and part.state.is_deliverable and limit > 0:
                self.begin_again()
            if not self._has_more(part):
                if part is self._yielded and part.state.in_hand is part.stand:
                    kept.append(part)  # its last record was yielded and not passed
                continue
            if limit <= 0 or not part.state.is_deliverable:
                kept.append(part)
                continue
            found[part.tp] = some = part.records[part.at : part.at + limit]
            part.at += len(some)
            limit -= len(some)
            self._move(part)
            if part.state.in_hand is None:
                ends[part.tp] = part.end
            else:
                ends[part.tp] = OffsetAndMetadata(part.stand.offset, part.stand.epoch)
                kept.append(part)
        self._parts = kept
        return ConsumerRecords(found, ends) if found else None

    def put_back(self) -> None:
        """Have everything in hand fetched again, from where the application stands. Called with the lock held."""
        kept: deque[_Part] = deque()
        for part in self._parts:
            position = part.state.position
            if part.state.in_hand is not part.stand:
                continue
            if position is None or not part.state.has_valid_position:
                kept.append(part)
                continue
            part.state.advance(Position(part.stand.offset, -1, position.leader, position.leader_epoch))
            part.state.in_hand = None
        self._parts, self._yielded = kept, None

    def _move(self, part: _Part) -> None:
        """The application stands behind the records before `at`; behind the last one, at the position."""
        if part.at == part.count:
            part.state.in_hand = None
        else:
            part.stand.passed = part.at

    def _has_more(self, part: _Part) -> bool:
        return part.state.in_hand is part.stand and part.at < part.count

    def _is_poll_due(self) -> bool:
        """Because something happened, because the group rebalances, or after a second.

        While a rebalance waits for an answer, records go on: polling again before one comes would only spin.
        """
        core, driver = self._core, self._driver
        member, self._seen = core.member, driver.io.activity
        if member.events or driver.is_woken or driver.is_forked:
            return True
        is_rejoining = member.rejoin_needed and core.subscription.is_group and not core.membership.is_held
        if is_rejoining and self._seen != self._polled_at:
            return True
        return driver.mono_ms() - self._polled_ms >= _POLL_AT_LEAST_EVERY_MS


class Hold:
    """What `consumer.hold(records)` gives: a context manager whose records are worked on while nothing is taken away.

    A loop over it yields the records one by one and polls for the group in between. A record counts as passed once the
    next one is asked for; what the loop leaves goes back to the next poll, or to the next owner of its partition. When
    `others_wait`, finish soon.
    """

    def __init__(
        self,
        driver: ConsumerDriver,
        in_hand: RecordsInHand,
        poll: Callable[[], Coroutine[Any, Any, Any]],
        records: ConsumerRecords[Any, Any],
    ) -> None:
        self._driver = driver
        self._in_hand = in_hand
        self._poll = poll
        self._records = records

    @property
    def others_wait(self) -> bool:
        """Does the group want to rebalance, and wait for this member?"""
        with self._driver.io.lock:
            return self._driver.core.member.must_rejoin()

    def __enter__(self) -> Hold:
        with self._driver.io.lock:
            self._driver.core.membership.is_held = True
            self._in_hand.fill(self._records)
        self._in_hand.polled()
        return self

    def __exit__(self, *_: object) -> None:
        with self._driver.io.lock:
            self._driver.core.membership.is_held = False

    async def __aenter__(self) -> Hold:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __iter__(self) -> Iterator[ConsumerRecord[Any, Any]]:
        self._in_hand.begin_again()
        while (record := self._in_hand.next()) is not None or self._in_hand.has_deliverable:
            if record is None:
                run_blocking(self._poll())
            else:
                yield record
                yield from self._in_hand.burst()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[Any, Any]]:
        self._in_hand.begin_again()
        while (record := self._in_hand.next()) is not None or self._in_hand.has_deliverable:
            if record is None:
                await self._poll()
            else:
                yield record
                for following in self._in_hand.burst():
                    yield following
