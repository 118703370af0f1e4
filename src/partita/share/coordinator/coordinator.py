"""The ShareCoordinator of one shard: one partition of __share_group_state and the share partitions that hash to it.

`replay` loads it, `handle` decides; a decision changes memory only by replaying its own records, so both are the same
code. It waits for nothing: the shell appends the records and holds the answer back until they are durable. (Kafka:
ShareCoordinatorShard, release 4.4.0.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, assert_never

from partita.protocol.error_codes import ErrorCode
from partita.share.coordinator.log_records import Record, Update, read_record, snapshot_of, tombstone_of, update_of
from partita.share.coordinator.merging import merged
from partita.share.coordinator.model import KEEP_START, UNKNOWN_COUNT, ShareKey, ShareState
from partita.share.coordinator.prune import PrunePoint
from partita.share.coordinator.requests import (
    Decision,
    Delete,
    Initialize,
    Outcome,
    Read,
    StateRequest,
    Summarize,
    Write,
)

_ABSENT = ShareState(0, 0, 0, KEEP_START, UNKNOWN_COUNT, (), -1, -1)


class _Fence(NamedTuple):
    """The highest epochs seen of a share partition. An initialization stores leader epoch 0 and lowers neither."""

    leader_epoch: int
    state_epoch: int


_NO_FENCE = _Fence(-1, -1)


class ShareConfig(NamedTuple):
    """Settings of the share coordinator."""

    updates_per_snapshot: int = 500
    cold_snapshot_ms: int = 300_000
    is_strict: bool = True
    """Negative epochs are refused, and a write does not move the start offset back: 4.4.0. False: as 4.3.1."""


class ShareCoordinator:
    """One shard. `partitions_of(topic_id)` returns how many partitions a topic has, 0 if there is no such topic."""

    def __init__(self, config: ShareConfig, partitions_of: Callable[[bytes], int]) -> None:
        self.config = config
        self._partitions_of = partitions_of
        self._states: dict[ShareKey, ShareState] = {}
        self._updates: dict[ShareKey, int] = {}
        """How many updates were written since a snapshot replaced them."""
        self._fences: dict[ShareKey, _Fence] = {}
        self._prune_point = PrunePoint()

    @property
    def states(self) -> Mapping[ShareKey, ShareState]:
        """The stored states; read only."""
        return self._states

    @property
    def prune_below(self) -> int | None:
        """Every record below this offset has been replaced; None while that is none."""
        return self._prune_point.offset

    def replay(self, record: Record, offset: int) -> None:
        """Apply the record at this offset of the log. Raises MalformedRequest."""
        loaded = read_record(record)
        if loaded is None:
            return
        key, found = loaded
        if found is None:
            self._states.pop(key, None)
            self._updates.pop(key, None)
            self._fences.pop(key, None)
            self._prune_point.removed(key, offset)
        elif isinstance(found, ShareState):
            self._states[key] = found
            self._raise_fence(key, found.leader_epoch, found.state_epoch)
            if self._updates.get(key, 0) >= self.config.updates_per_snapshot:
                self._updates[key] = 0
            self._prune_point.stored(key, offset)
        else:
            self._states[key] = _with(self._states.get(key, _ABSENT), found)
            self._updates[key] = self._updates.get(key, 0) + 1
            self._raise_fence(key, found.leader_epoch, -1)

    def handle(self, request: StateRequest, now_ms: int) -> Decision:
        """Decide; the caller appends the records and replays each with the offset it got."""
        refused = self._refusal(request)
        if refused is not None:
            return Decision(Outcome(*refused))
        state = self._states.get(request.key)
        match request:
            case Initialize():
                return self._initialize(request, state, now_ms)
            case Read():
                return self._read(request, now_ms)
            case Write():
                return self._write(request, now_ms)
            case Delete():
                return Decision(Outcome(), () if state is None else (tombstone_of(request.key),))
            case Summarize():
                return Decision(Outcome(state=_ABSENT if state is None else state))
            case never:
                assert_never(never)

    def cold_snapshots(self, now_ms: int) -> list[Record]:
        """Return new snapshots of share partitions whose last one is old, so that an idle one does not keep all others.

        Empty when the last snapshot of every one was made here: then nothing has changed since.
        """
        if all(state.created_ms != state.written_ms for state in self._states.values()):
            return []
        return [
            snapshot_of(key, state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms))
            for key, state in self._states.items()
            if now_ms - state.written_ms >= self.config.cold_snapshot_ms
        ]

    def forget_topics(self, topic_ids: frozenset[bytes]) -> list[Record]:
        """Return the records that remove the share partitions of topics that are gone."""
        return [tombstone_of(key) for key in self._states if key.topic_id in topic_ids]

    def _raise_fence(self, key: ShareKey, leader_epoch: int, state_epoch: int) -> None:
        known = self._fences.get(key, _NO_FENCE)
        self._fences[key] = _Fence(max(known.leader_epoch, leader_epoch), max(known.state_epoch, state_epoch))

    # -- one request -----------------------------------------------------------------------------------------------

    def _refusal(self, request: StateRequest) -> tuple[ErrorCode, str] | None:
        """Return the first error that applies, and why."""
        key = request.key
        if key.partition < 0:
            return ErrorCode.INVALID_REQUEST, f"partition {key.partition}: a partition number is not negative"
        if self.config.is_strict and (negative := _negative_epoch(request)) is not None:
            return ErrorCode.INVALID_REQUEST, f"{negative}: an epoch is not negative"
        state, fence = self._states.get(key), self._fences.get(key, _NO_FENCE)
        if isinstance(request, Read | Write):
            if state is None:
                return ErrorCode.INVALID_REQUEST, "the share partition is not initialized"
            if -1 != request.leader_epoch < fence.leader_epoch:
                why = f"a leader of epoch {fence.leader_epoch} has come; the request says {request.leader_epoch}"
                return ErrorCode.FENCED_LEADER_EPOCH, why
        if isinstance(request, Initialize | Write) and -1 != request.state_epoch < fence.state_epoch:
            why = f"it was initialized at epoch {fence.state_epoch}; the request says {request.state_epoch}"
            return ErrorCode.FENCED_STATE_EPOCH, why
        if key.partition >= self._partitions_of(key.topic_id):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {key.partition} of this topic"
        return None

    def _initialize(self, request: Initialize, state: ShareState | None, now_ms: int) -> Decision:
        stored = ShareState(
            snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
            state_epoch=request.state_epoch,
            leader_epoch=0,
            start_offset=request.start_offset,
            completed=UNKNOWN_COUNT if request.start_offset == KEEP_START else 0,
            batches=(),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return Decision(Outcome(), (snapshot_of(request.key, stored),))

    def _read(self, request: Read, now_ms: int) -> Decision:
        state = self._states[request.key]
        if request.leader_epoch in (-1, self._fences[request.key].leader_epoch):
            return Decision(Outcome(state=state))
        update = Update(request.leader_epoch, state.start_offset, state.completed, ())
        return Decision(Outcome(state=state), (self._next_record(request.key, update, now_ms),))

    def _write(self, request: Write, now_ms: int) -> Decision:
        state = self._states[request.key]
        start_offset, completed = request.start_offset, request.completed
        if self.config.is_strict:
            start_offset, completed = _not_back(state, start_offset, completed)
        own = merged((), request.batches, start_offset)
        update = Update(state.leader_epoch, start_offset, completed, own)
        return Decision(Outcome(), (self._next_record(request.key, update, now_ms),))

    def _next_record(self, key: ShareKey, update: Update, now_ms: int) -> Record:
        """Return an update, or a snapshot of everything when the last one has enough updates."""
        state = self._states[key]
        if self._updates.get(key, 0) < self.config.updates_per_snapshot:
            return update_of(key, state.snapshot_epoch, update)
        new = _with(state, update)._replace(
            snapshot_epoch=state.snapshot_epoch + 1, created_ms=now_ms, written_ms=now_ms
        )
        return snapshot_of(key, new)


def _with(state: ShareState, update: Update) -> ShareState:
    start_offset = state.start_offset if update.start_offset == KEEP_START else update.start_offset
    return state._replace(
        leader_epoch=update.leader_epoch,
        start_offset=start_offset,
        completed=update.completed,
        batches=merged(state.batches, update.batches, start_offset),
    )


def _not_back(state: ShareState, start_offset: int, completed: int) -> tuple[int, int]:
    """Return the start offset that a write leads to, and the count that belongs to it."""
    if start_offset == state.start_offset:
        return start_offset, max(completed, state.completed)
    return (start_offset, completed) if start_offset > state.start_offset else (state.start_offset, state.completed)


def _negative_epoch(request: StateRequest) -> str | None:
    if isinstance(request, Read | Write) and request.leader_epoch < 0:
        return f"leader epoch {request.leader_epoch}"
    if isinstance(request, Initialize | Write) and request.state_epoch < 0:
        return f"state epoch {request.state_epoch}"
    return None
