"""The records that a `for` loop over the consumer has taken from a poll and not finished yet.

A loop is given its records one by one, and none of them twice: whichever call comes next goes on behind the record
given last. That record counts as passed once the application asks for more, by the loop, by another one, or by a poll.
Until then a commit says that it is still to be read, so that a crash loses nothing. Only a `Hold` takes back the
records that its loop left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from partita.consumer.partition_state import InHand, PartitionState, Position
from partita.consumer.records import ConsumerRecord, ConsumerRecords
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import AsyncWaiter, run_blocking
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition

_POLL_AT_LEAST_EVERY_MS = 1_000


class _Part:
    """The records of one partition."""

    __slots__ = ("count", "end", "records", "stand", "state", "tp")

    def __init__(
        self, tp: TopicPartition, state: PartitionState, records: list[ConsumerRecord[Any, Any]], end: OffsetAndMetadata
    ):
        self.tp = tp
        self.state = state
        self.records = records
        self.end = end
        self.count = len(records)
        self.stand = state.in_hand = InHand(records[0].offset, records)


@dataclass(slots=True)
class _Given:
    """The last poll's share of one partition: its records begin at `start`; fetching continues at `end`."""

    state: PartitionState
    start: int
    end: int


class RecordsInHand:
    """`fill` takes the records of a poll, `next` gives them to a loop, `take` the rest to a poll, `put_back` to the
    fetcher.

    `PartitionState.in_hand` is where the application stands in each partition with records in hand.
    """

    def __init__(self, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._core = driver.core
        self._parts: deque[_Part] = deque()
        self._last: _Part | None = None
        """The part of the record that was given last and is not passed."""
        self._given: dict[TopicPartition, _Given] = {}
        self._stood: list[tuple[TopicPartition, PartitionState, int | None]] = []
        """Where the application stood in each partition when the poll under way last took records."""
        self._polled_ms = 0
        self._seen = -1
        self._calls = -1
        self._polled_at = -1

    def __len__(self) -> int:
        return sum(part.count - part.stand.given for part in self._parts)

    @property
    def has_deliverable(self) -> bool:
        """Could `next` return a record?"""
        return any(self._has_more(part) and part.state.is_deliverable for part in self._parts)

    def count_deliverable(self) -> int:
        """Number of records that `take` could return now."""
        ready = [part for part in self._parts if self._has_more(part) and part.state.is_deliverable]
        return sum(part.count - part.stand.given for part in ready)

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
            elif records[0].offset < before.stand.next_offset:
                # The poll took them from here, with more behind them: appended, they would come after those.
                before.stand.given -= len(records)
                before.stand.passed = min(before.stand.passed, before.stand.given)
            else:
                before.records += records
                before.count += len(records)
                before.end = end

    def next(self) -> ConsumerRecord[Any, Any] | None:
        """Pass the record given last and return the next one; None when a poll is due first."""
        self._pass_last()
        self._calls = self._driver.calls
        if not self._parts or self._is_poll_due():
            return None
        self._last = part = self._next_part()
        if part is None:
            return None
        part.stand.given += 1
        return part.records[part.stand.given - 1]

    def burst(self) -> Iterator[ConsumerRecord[Any, Any]]:
        """After `next`: pass the record given last, yield the one behind it, and so on, as `next` would.

        It ends where `next` has to look again: after up to sixteen records, at the end of a partition's records, or
        when something has happened, in the I/O thread (a heartbeat was answered, say) or by a call of the application.
        """
        part, io, driver = self._last, self._driver.io, self._driver
        if part is None:
            return
        count, records, stand = part.count, part.records, part.stand
        at, seen, calls = stand.given, self._seen, self._calls
        while at & 15 and at < count and io.activity == seen and driver.calls == calls:
            stand.passed = at
            stand.given = at = at + 1
            yield records[at - 1]

    def _next_part(self) -> _Part | None:
        """The first part that may be given; those that are over go, those that may not come last."""
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
        self._polled_ms = self._driver.mono_ms()
        self._polled_at = self._driver.io.activity

    def begin_poll(self) -> None:
        """Begin a poll: the application has finished the records of the previous one."""
        self._given.clear()

    def stand(self, fetched: Iterable[TopicPartition] | None) -> None:
        """A poll is about to take records of these partitions or those in hand, or (None) it has taken none.

        Called with the core's lock held.
        """
        self._stood = []
        if fetched is None:
            return
        assignment = self._core.subscription.assignment
        states = {part.tp: part.state for part in self._parts}
        states |= {tp: assignment[tp] for tp in fetched if tp in assignment}
        self._stood = [(tp, state, state.next_offset) for tp, state in states.items()]

    def step_back(self) -> None:
        """The poll was broken off, and its caller has got nothing: what it took is fetched again.

        Positions have moved with the records, so a commit would cover them.
        """
        with self._driver.io.lock:
            stood, self._stood = self._stood, []
            self._core.buffer.drop({tp for tp, _, _ in stood})
            for tp, state, offset in stood:
                at = state.position
                is_ours = self._core.subscription.assignment.get(tp) is state
                if is_ours and at is not None and offset is not None and state.next_offset is not None:
                    state.in_hand = None
                    state.seek(Position(offset, at.offset_epoch, at.leader, at.leader_epoch))

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

        If the record given last is among them, it is passed; so is what the last poll gave before these offsets.
        """
        if offsets is None:
            self._given.clear()
        for tp, wanted in (offsets or {}).items():
            if tp in self._given:
                self._given[tp].start = wanted.offset
        part = self._last
        if part is None or not offsets or part.state.in_hand is not part.stand:
            return
        committed = offsets.get(part.tp)
        if committed is not None and committed.offset == part.stand.next_offset:
            self._pass_last()

    def give_back(self) -> None:
        """A hold ends: if its loop was left in the body of a record, that one is delivered again."""
        part, self._last = self._last, None
        if part is not None and part.state.in_hand is part.stand:
            part.stand.given -= 1

    def begin_loop(self) -> None:
        """A new loop begins: one that is under way has to look again."""
        self._driver.calls += 1

    def ask_for_more(self) -> None:
        """A poll for records begins: the application is done with the record given last.

        While its partition is paused, a poll only keeps the membership of an application that works on that record.
        """
        if self._last is not None and self._last.state.is_deliverable:
            self._pass_last()

    def take(self, limit: int) -> ConsumerRecords[Any, Any] | None:
        """Records in hand for a poll, at most `limit`; None without any."""
        found: dict[TopicPartition, list[ConsumerRecord[Any, Any]]] = {}
        ends: dict[TopicPartition, OffsetAndMetadata] = {}
        kept: deque[_Part] = deque()
        while self._parts:
            part = self._parts.popleft()
            if not self._has_more(part):
                if part is self._last and part.state.in_hand is part.stand:
                    kept.append(part)  # its last record was given and not passed
                continue
            if limit <= 0 or not part.state.is_deliverable:
                kept.append(part)
                continue
            at = part.stand.given
            found[part.tp] = some = part.records[at : at + limit]
            part.stand.given += len(some)
            limit -= len(some)
            self._pass(part)
            if part.state.in_hand is None:
                ends[part.tp] = part.end
            else:
                ends[part.tp] = OffsetAndMetadata(part.stand.offset, part.stand.epoch)
                kept.append(part)
        self._parts = kept
        return ConsumerRecords(found, ends) if found else None

    def put_back(self) -> None:
        """Have the rest in hand fetched again. Called with the lock held."""
        kept: deque[_Part] = deque()
        for part in self._parts:
            position = part.state.position
            if part.state.in_hand is not part.stand:
                continue
            if position is None or not part.state.has_valid_position:
                kept.append(part)
                continue
            part.state.advance(Position(part.stand.next_offset, -1, position.leader, position.leader_epoch))
            if part is self._last:  # it is given and not passed: commits stay behind it
                part.count = part.stand.given
                del part.records[part.count :]
                kept.append(part)
            else:
                part.state.in_hand = None
        self._parts = kept

    def _pass_last(self) -> None:
        part, self._last = self._last, None
        if part is not None and part.state.in_hand is part.stand:
            self._pass(part)

    def _pass(self, part: _Part) -> None:
        """The application has passed all that it was given; behind the last record it stands at the position."""
        if part.stand.given == part.count:
            part.state.in_hand = None
        else:
            part.stand.passed = part.stand.given

    def _has_more(self, part: _Part) -> bool:
        return part.state.in_hand is part.stand and part.stand.given < part.count

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
    """The context manager of `consumer.hold(records)`: no partition is taken away while its records are processed.

    A loop over it yields the records one by one and polls for the group in between. A record counts as passed once the
    next one is asked for; the rest, the record of a broken-off body included, goes back to the next poll, or to the
    next owner of its partition. When `others_wait`, finish soon.
    """

    def __init__(
        self,
        driver: ConsumerDriver,
        in_hand: RecordsInHand,
        poll: Callable[..., Coroutine[Any, Any, Any]],
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
        self._begin()
        if not isinstance(self._driver.waiter, AsyncWaiter):
            run_blocking(self._finish_rebalance())
        return self

    def _begin(self) -> None:
        with self._driver.io.lock:
            self._driver.core.membership.is_held = True
            self._in_hand.put_back()  # a hold is of these records alone; a broken loop may have left more
            self._in_hand.fill(self._records)
        self._in_hand.polled()

    async def _finish_rebalance(self) -> None:
        """Poll until a rebalance under way is over: from then on nothing is taken away.

        A poll returns records in the middle of a cooperative one. It ends within max_poll_interval_ms, when the
        coordinator goes on without members that are silent.
        """
        driver, membership = self._driver, self._driver.core.membership
        if driver.core.member.by_epochs:
            return
        until_ms = driver.mono_ms() + driver.config.max_poll_interval_ms
        while membership.is_joining and self._in_hand.has_deliverable and driver.mono_ms() < until_ms:
            membership.is_held = False
            await self._poll(1.0, None, lambda: None if membership.is_joining else True)
            membership.is_held = True

    def __exit__(self, *_: object) -> None:
        with self._driver.io.lock:
            self._driver.core.membership.is_held = False
            self._in_hand.give_back()

    async def __aenter__(self) -> Hold:
        self._begin()
        await self._finish_rebalance()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __iter__(self) -> Iterator[ConsumerRecord[Any, Any]]:
        self._in_hand.begin_loop()
        while (record := self._in_hand.next()) is not None or self._in_hand.has_deliverable:
            if record is None:
                run_blocking(self._poll(0, None))
            else:
                yield record
                yield from self._in_hand.burst()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[Any, Any]]:
        await self._finish_rebalance()  # entered by a plain `with`, it could not
        self._in_hand.begin_loop()
        while (record := self._in_hand.next()) is not None or self._in_hand.has_deliverable:
            if record is None:
                await self._poll(0, None)
            else:
                yield record
                for following in self._in_hand.burst():
                    yield following
