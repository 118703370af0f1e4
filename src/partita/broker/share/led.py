"""One share partition in the memory of its leader: loaded, served, its state written, its locks ended in time.

Writes go to the coordinator one after the other: a later one says where the partition starts, and must not be overtaken
by an earlier one that is tried again. Those that come meanwhile go together. (Kafka: SharePartition, its shell.)
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from partita.broker.share.calls import Persister, Place, Read, read_state, write_state
from partita.protocol.error_codes import ErrorCode
from partita.records.header import iter_batches
from partita.share.partition.acquiring import Wish
from partita.share.partition.model import Acknowledgement, Acquired, Letter, Limits, LogBatch, Stored, Write
from partita.share.partition.share_partition import SharePartition

if TYPE_CHECKING:
    from partita.broker.share.dead_letters import DeadLetters
    from partita.broker.share.settings import ShareSettings
    from partita.broker.topics.catalogue import Partition
    from partita.log.partition_log import PartitionLog
    from partita.now import Clock

log = logging.getLogger("partita.broker")

ROWS_MAX = 10_000
"""So many lines of state go to the coordinator together, unless one write has more."""
_FENCING = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND}
)
"""After these errors of a write our view of the partition counts no more."""
MUCH = 1 << 40
LOOKS = 8
"""So many reads of records that are hidden from the group are done at once."""


class Taken(NamedTuple):
    """Records that a member got: whole batches, of which some records may be another member's."""

    records: memoryview
    acquired: list[Acquired]


NOTHING = Taken(memoryview(b""), [])


class InFlight(NamedTuple):
    """How much of a share partition is in flight."""

    records: int = 0
    batches: int = 0


class Shell(NamedTuple):
    """The surroundings of all share partitions of a node. `look_again` wakes the fetches that wait on a partition.

    `acknowledged` counts records by the type of their acknowledgement.
    """

    loop: asyncio.AbstractEventLoop
    clock: Clock
    persister: Persister
    look_again: Callable[[Partition], None]
    acknowledged: Counter[int]
    dead_letters: DeadLetters


class LedPartition:
    """A group's view of one partition, from its load until the leader gives it up."""

    def __init__(
        self, place: Place, partition: Partition, shell: Shell, settings: ShareSettings, on_end: Callable[[], None]
    ) -> None:
        self.place = place
        self.partition = partition
        self.shared: SharePartition | None = None
        """The records; None while the state is loaded."""
        self.error = ErrorCode.NONE
        """Why the partition cannot be served; it has ended then."""
        self.has_ended = False
        self.changes = 0
        """Counts the moments at which a waiting fetch should look again."""
        self.locks_ended = 0
        """Records that were taken back since their locks had ended."""
        self.is_leaving = False
        """To be forgotten once its writes are done, unless it is fetched again."""
        self._shell = shell
        self._settings = settings
        self._on_end = on_end
        self._state_epoch = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._queue: list[tuple[Write, asyncio.Future[ErrorCode]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_writing = False
        self._lettering = 0
        self.load = self._start(self._load())
        """The load of the state; it ends in `shared`, or in `error`."""

    # Loading and the end

    async def _load(self) -> None:
        try:
            loaded = await self._loaded()
        except Exception:
            log.exception("share group %r cannot load partition %d", self.place.group_id, self.place.partition)
            loaded = ErrorCode.UNKNOWN_SERVER_ERROR
        if self.has_ended:
            return
        if isinstance(loaded, SharePartition):
            self.shared = loaded
            self._look_again()
            self._write_letters(loaded.dead_letters())
        else:
            self.end(loaded)

    async def _loaded(self) -> SharePartition | ErrorCode:
        """The records as they are stored; where the group begins is decided here if nothing was stored yet."""
        found = await read_state(self._shell.persister, self.place)
        if not isinstance(found, Read):
            return found
        self._state_epoch = found.state_epoch
        start: int | ErrorCode = found.start
        if found.start < 0:
            start = await self._settings.initial_offset(self.place.group_id, self.partition)
        return start if isinstance(start, ErrorCode) else SharePartition(Stored(start, found.batches), self._limits)

    def end(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Give the partition up: nothing of it is served or written any more."""
        if self.has_ended:
            return
        self.has_ended, self.error = True, error
        if self._timer is not None:
            self._timer.cancel()
        for _, outcome in self._queue:
            _settle(outcome, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._queue.clear()
        self._on_end()
        self._look_again()

    def leave(self) -> None:
        """Leave memory as soon as everything is written."""
        self.is_leaving = True
        self._leave_when_written()

    def _leave_when_written(self) -> None:
        if self.is_leaving and not self._is_writing and not self._lettering:
            self.end()

    def stop(self) -> None:
        """End, and begin nothing more: the node stops."""
        self.end()
        for task in self._tasks:
            task.cancel()

    def _look_again(self) -> None:
        self.changes += 1
        self._shell.look_again(self.partition)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._shell.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _limits(self) -> Limits:
        return self._settings.limits(self.place.group_id)

    # What members do

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may get anything, once there is something in the log."""
        return self.shared is not None and not self.has_ended and self.shared.can_acquire

    @property
    def in_flight(self) -> InFlight:
        """The records that members hold or may get again."""
        flight = self.shared.flight if self.shared is not None else None
        return InFlight() if flight is None else InFlight(flight.span, len(flight.batches))

    @property
    def lag(self) -> int:
        """How many records are not done with, from the start of the share partition to the end of the log."""
        shared, log = self.shared, self.partition.opened_log
        if shared is None or log is None:
            return 0
        return max(0, log.high_watermark - shared.flight.start - shared.flight.completed)

    def end_offset(self) -> int:
        """The end of the log, as the group sees it."""
        return self._up_to(self.partition.log)

    def readable_bytes(self) -> int:
        """How much there is from the next record that a member can get."""
        shared = self.shared
        if shared is None or not self.can_acquire:
            return 0
        offset, log = shared.next_fetch_offset, self.partition.log
        if offset < log.log_start_offset:
            shared.log_start_moved(log.log_start_offset)
            offset = shared.next_fetch_offset
        up_to = self._up_to(log)
        if not log.log_start_offset <= offset < up_to:
            return 0
        size = log.readable_bytes(offset, up_to)
        return MUCH if size is None else size

    def take(self, wish: Wish, max_bytes: int) -> Taken:
        """Acquire records for a member. Raises InvalidBatch and StorageError where the log cannot be read."""
        shared = self.shared
        for _ in range(LOOKS):
            if shared is None or not self.readable_bytes():
                return NOTHING
            offset = shared.next_fetch_offset
            taken = self._take(shared, offset, wish, max_bytes)
            if taken.acquired or shared.next_fetch_offset == offset:
                self._arm()
                return taken
        # All of it was hidden from the group. The search goes on behind it, after other work.
        self._look_again()
        return NOTHING

    def _take(self, shared: SharePartition, offset: int, wish: Wish, max_bytes: int) -> Taken:
        log = self.partition.log
        records = log.read(offset, max_bytes, up_to=self._up_to(log))
        batches, ends = self._cut(log, offset, records)
        acquired = shared.acquire(wish, batches, offset, self._now_ms())
        if not acquired:
            return NOTHING
        first, last = acquired[0].first, acquired[-1].last
        sent = [i for i, batch in enumerate(batches) if batch.last >= first and batch.first <= last]
        return Taken(records[ends[sent[0]] : ends[sent[-1] + 1]], acquired) if sent else Taken(records[:0], acquired)

    def _cut(self, log: PartitionLog, offset: int, records: memoryview) -> tuple[list[LogBatch], list[int]]:
        """The batches that were read, and where each ends; the first end is 0."""
        hidden: dict[int, list[tuple[int, int]]] = {}
        if self._settings.is_committed(self.place.group_id):
            for entry in log.aborted_transactions(offset, records):
                hidden.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
        batches, ends = [], [0]
        for header, batch in iter_batches(records):
            ranges = hidden.get(header.producer_id, ()) if header.is_transactional and not header.is_control else ()
            is_aborted = any(first <= header.base_offset <= last for first, last in ranges)
            batches.append(LogBatch(header.base_offset, header.last_offset, is_aborted))
            ends.append(ends[-1] + len(batch))
        return batches, ends

    def acknowledge(self, member_id: str, verdicts: Sequence[Acknowledgement]) -> asyncio.Future[ErrorCode] | ErrorCode:
        """Do what a member decided; the outcome is known once it is stored."""
        if self.shared is None or self.has_ended:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        outcome = self.shared.acknowledge(member_id, verdicts, self._now_ms())
        self._arm()
        if isinstance(outcome, ErrorCode):
            return outcome
        for verdict in verdicts:
            if len(verdict.types) == 1:
                self._shell.acknowledged[verdict.types[0]] += verdict.last - verdict.first + 1
            else:
                self._shell.acknowledged.update(verdict.types)
        return ErrorCode.NONE if outcome is None else self._store(outcome)

    def release(self, member_id: str) -> asyncio.Future[ErrorCode] | None:
        """Give back all that a member holds; None if it holds nothing."""
        write = None if self.shared is None or self.has_ended else self.shared.release(member_id)
        return None if write is None else self._store(write)

    # Locks

    def on_timer(self) -> None:
        """Take back what is locked no longer."""
        self._timer = None
        self.end_locks(self._now_ms())

    def end_locks(self, until_ms: int) -> None:
        """Take back what is locked until then at the latest."""
        if self.shared is None or self.has_ended:
            return
        write = self.shared.expire(until_ms)
        if write is not None:
            self.locks_ended += sum(batch.last - batch.first + 1 for batch in write.batches)
            self._store(write)
            self._look_again()
        self._arm()

    def _arm(self) -> None:
        """Keep one timer, at or before the earliest end of a lock."""
        due_ms = None if self.shared is None or self.has_ended else self.shared.next_deadline_ms
        if due_ms is None or (self._timer is not None and self._timer_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = due_ms
        self._timer = self._shell.loop.call_later(max(0, due_ms - self._now_ms()) / 1000, self.on_timer)

    # Writes

    def _store(self, write: Write) -> asyncio.Future[ErrorCode]:
        outcome: asyncio.Future[ErrorCode] = self._shell.loop.create_future()
        self._queue.append((write, outcome))
        if not self._is_writing:
            self._is_writing = True
            self._start(self._write_all())
        return outcome

    async def _write_all(self) -> None:
        while self._queue:
            taken = self._next_writes()
            writes = [write for write, _ in taken]
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            try:
                code = await write_state(self._shell.persister, self.place, self._state_epoch, writes)
                if not self.has_ended:
                    self._written(writes, code)
            finally:
                for _, outcome in taken:
                    _settle(outcome, code)
        self._is_writing = False
        self._leave_when_written()

    def _next_writes(self) -> list[tuple[Write, asyncio.Future[ErrorCode]]]:
        rows = at = 0
        while at < len(self._queue) and (not at or rows + len(self._queue[at][0].batches) <= ROWS_MAX):
            rows += len(self._queue[at][0].batches)
            at += 1
        taken, self._queue = self._queue[:at], self._queue[at:]
        return taken

    def _written(self, writes: Sequence[Write], code: ErrorCode) -> None:
        shared = self.shared
        assert shared is not None, "only a loaded partition writes"
        before = shared.next_fetch_offset, shared.can_acquire
        for write in writes:
            if code is ErrorCode.NONE:
                shared.stored(write)
            else:
                shared.refused(write)
        if code in _FENCING:
            self.end(code)
            return
        self._arm()
        self._write_letters([letter for write in writes for letter in write.letters if shared.is_given_up(letter)])
        if (shared.next_fetch_offset, shared.can_acquire) != before:
            self._look_again()

    def _write_letters(self, letters: Sequence[Letter]) -> None:
        if letters:
            self._lettering += 1
            self._start(self._letter(letters))

    async def _letter(self, letters: Sequence[Letter]) -> None:
        """Write dead letters, then archive their records, whether or not that succeeded."""
        try:
            await self._shell.dead_letters.write(self.place, self.partition, letters)
        except Exception:
            log.exception("share group %r cannot write dead letters", self.place.group_id)
        self._lettering -= 1
        write = None if self.shared is None or self.has_ended else self.shared.archive(letters)
        if write is not None:
            self._store(write)
        self._leave_when_written()

    def _up_to(self, log: PartitionLog) -> int:
        is_committed = self._settings.is_committed(self.place.group_id)
        return log.last_stable_offset if is_committed else log.high_watermark

    def _now_ms(self) -> int:
        return self._shell.clock.now().mono_ms


def _settle(outcome: asyncio.Future[ErrorCode], code: ErrorCode) -> None:
    if not outcome.done():
        outcome.set_result(code)
