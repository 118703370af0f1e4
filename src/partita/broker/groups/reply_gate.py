"""A shard's steps on their way into its log, and their replies on the way out.

Steps of one loop turn share batches. The reply gate holds replies: none leaves before every record decided before it is
durable. First in, first out, also for steps that wrote nothing. A step that waits longer than
`offsets.commit.timeout.ms` is answered as timed out; its records stay in the log and may still take effect. (Kafka:
CoordinatorRuntime's deferred events.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from partita.broker.wire.contract import Promised
from partita.group.contract import GroupRequest, Marker, Producer, Record, Step
from partita.group.guards import not_here
from partita.group.requests import FetchOffsets
from partita.group.state.answers import refusal
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Structure
from partita.records.builder import Headers, build_batch, build_marker
from partita.records.control import ABORT, COMMIT

BATCH_BYTES = 512 * 1024
"""Steps share a batch up to this size; the records of one step are never parted."""
Shared: TypeAlias = tuple[list[Record], Producer | None, Marker | None, list[Step]]
"""Records of one batch, their producer, a marker behind them, and the steps they come from."""


def shared_batches(steps: list[Step], max_bytes: int = BATCH_BYTES) -> Iterator[Shared]:
    """Put steps together that may share a batch of up to `max_bytes`; a transactional step, or a marker, never does."""
    # Half of what the topic takes: the size counted here is of keys and values, without what a record adds around them.
    limit = min(BATCH_BYTES, max_bytes // 2)
    records: list[Record] = []
    covered: list[Step] = []
    size = 0
    for step in steps:
        # A batch has one producer or none, and a marker is a batch of its own: nothing else may be in it.
        alone = step.producer is not None or step.marker is not None
        step_bytes = sum(len(key) + len(value or b"") for key, value in step.records)
        if covered and (alone or size + step_bytes > limit):
            yield records, None, None, covered
            records, covered, size = [], [], 0
        if alone:
            yield list(step.records), step.producer, step.marker, [step]
            continue
        records += step.records
        covered.append(step)
        size += step_bytes
    if covered:
        yield records, None, None, covered


def encode(
    records: list[Record],
    producer: Producer | None,
    marker: Marker | None,
    wall_ms: int,
    codec: int,
    headers_of: Callable[[Record], Headers],
) -> Iterator[bytes]:
    """A batch of the records, if any; behind it the marker, if any."""
    if records:
        given = [(wall_ms, record.key, record.value, headers_of(record)) for record in records]
        if producer is None:
            yield build_batch(given, codec=codec)
        else:
            yield build_batch(
                given,
                codec=codec,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                is_transactional=True,
            )
    if marker is not None:
        yield build_marker(
            COMMIT if marker.committed else ABORT,
            timestamp=wall_ms,
            producer_id=marker.producer.producer_id,
            producer_epoch=marker.producer.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )


class Call:
    """One caller's token: its answer at once, or a future of it."""

    __slots__ = ("future", "request", "response")

    def __init__(self, request: GroupRequest) -> None:
        self.request = request
        self.response: Structure | None = None
        self.future: Promised | None = None

    def answer(self, response: Structure) -> None:
        """Give the caller its answer; later answers are ignored."""
        # The answer may come within the very call that asks; then no future is made, which heartbeats and refusals are
        # spared.
        if self.future is None:
            self.response = response
        # Done already: timed out, cancelled with its connection, or refused when the shard was dropped. The first
        # answer counts.
        elif not self.future.done():
            self.future.keep(response)


class _Waiting(NamedTuple):
    """A step whose records are in the log: `offset` must be durable first, `due_ms` is when patience ends."""

    offset: int
    step: Step
    due_ms: int


class ReplyGate:
    """Steps that wait for the log, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def next_due_ms(self) -> int | None:
        """When (monotonic) the oldest waiting step times out; None when nothing waits."""
        return self._waiting[0].due_ms if self._waiting else None

    def last_offset(self) -> int:
        """The offset that must be durable before a step that comes now may be answered."""
        return self._waiting[-1].offset

    def add(self, offset: int, step: Step, due_ms: int) -> None:
        """Let `step` wait until `offset` is durable, at most until `due_ms`."""
        self._waiting.append(_Waiting(offset, step, due_ms))

    def release(self, durable: int) -> None:
        """Release replies that waited for offsets up to `durable`."""
        waiting = self._waiting
        # Offsets in the queue never fall, so the first one that is not durable ends the walk.
        while waiting and waiting[0].offset <= durable:
            release(waiting.popleft().step)

    def expire(self, now_ms: int) -> None:
        """Answer replies that waited too long as timed out. Nothing is undone."""
        while self._waiting and self._waiting[0].due_ms <= now_ms:
            refuse(self._waiting.popleft().step, _timed_out)

    def drop(self) -> None:
        """Answer all that wait with NOT_COORDINATOR: the shard is over."""
        # Emptied first: an answer may run code that looks at the gate again.
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            refuse(entry.step, not_here)


def release(step: Step) -> None:
    """Give the callers of a step their answers."""
    for token, message in step.replies:
        assert isinstance(token, Call), "tokens are calls of the runner"
        token.answer(message)


def refuse(step: Step, answer: Callable[[GroupRequest], Structure]) -> None:
    """Give the step's callers another answer than the one decided."""
    for token, _ in step.replies:
        assert isinstance(token, Call), "tokens are calls of the runner"
        token.answer(answer(token.request))


def _timed_out(request: GroupRequest) -> Structure:
    """Old clients do not retry COORDINATOR_NOT_AVAILABLE of OffsetFetch, so that one gets NOT_COORDINATOR."""
    if isinstance(request.message, FetchOffsets):
        return not_here(request)
    return refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
