"""The TransactionCoordinator of one shard: one partition of `__transaction_state` and every id that hashes to it.

The complete contract: `replay` and `resume` load it, `handle` and `on_deadline` drive it, `stored`, `refused` and
`markers_done` report the outcome of its orders, `unload` ends it. Each returns a `Step`. A move changes nothing before
its record is durable, and while it waits every other move of the same id is answered CONCURRENT_TRANSACTIONS; so a
refused append needs no undoing, and moves of different ids may wait together. (Kafka: TransactionCoordinator,
TransactionStateManager.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.transactions import add, deadlines, describe, end, init_producer
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import (
    AddPartitions,
    Described,
    EndTransaction,
    Filters,
    InitProducer,
    Move,
    Outcome,
    Record,
    Reply,
    Request,
    Step,
    Token,
    VerifyPartitions,
)
from partita.transactions.log_records import read_record
from partita.transactions.model import NO_EPOCH, State, TopicPartition, Transaction
from partita.transactions.notes import TransactionsLoaded
from partita.transactions.shard import Entry, Shard, Turn


def first_check(request: Request, config: TransactionConfig) -> ErrorCode:
    """Return the error of a request that is invalid in any state, on any broker; NONE if it passes."""
    if isinstance(request, InitProducer):
        return init_producer.check(request, config.max_timeout_ms)
    return ErrorCode.NONE if request.transactional_id else ErrorCode.INVALID_REQUEST


class TransactionCoordinator:
    """One shard. `new_producer_id()` returns a never used producer id, or None if none is available now.

    Then a request that needs one is answered COORDINATOR_LOAD_IN_PROGRESS, and a timeout is retried later.
    `ids_held()` returns the number of transactional ids over all shards; by default only this shard counts.
    """

    def __init__(
        self,
        config: TransactionConfig,
        new_producer_id: Callable[[], int | None],
        ids_held: Callable[[], int] | None = None,
    ) -> None:
        self._shard = Shard(config, new_producer_id, ids_held)

    @property
    def config(self) -> TransactionConfig:
        """The settings. They may be replaced while running; the next decision uses the new ones."""
        return self._shard.config

    @config.setter
    def config(self, config: TransactionConfig) -> None:
        """Replace the settings."""
        self._shard.config = config

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The current transactional ids; for metrics, snapshots and tests. Read only."""
        return self._shard.entries

    def open_entries(self) -> list[Entry]:
        """Return the transactional ids with an open transaction."""
        return [self._shard.entries[name] for name in self._shard.open]

    def count_unfinished(self) -> int:
        """Return the number of completions that were refused and wait to be retried."""
        return len(self._shard.unfinished)

    def replay(self, record: Record) -> None:
        """Apply one record of the log. Raises MalformedRequest: the load failed."""
        loaded = read_record(record)
        if loaded is None:
            self._shard.skipped += 1
        else:
            self._shard.set(*loaded)

    def resume(self, now: Now, *, restored_ms: int = -1) -> Step:
        """After the last replay: order the markers of decided transactions again and start deadlines.

        `restored_ms`: the log is a copy of that time. Later changes are unknown, so transactions that were open are
        aborted and their producers fenced. Work beyond the size of one step is due at once; an id that a request names
        before its turn is handled first.
        """
        turn = Turn(self._shard, now)
        entries = self._shard.entries
        decided = [name for name, entry in entries.items() if entry.transaction.state.is_decided]
        copied = [name for name in self._shard.open if entries[name].transaction.start_ms <= restored_ms]
        self._shard.unresumed = dict.fromkeys(decided, False) | dict.fromkeys(copied, True)
        deadlines.resume_some(turn)
        deadlines.arm(turn)
        turn.notes.append(TransactionsLoaded(len(entries), len(decided), self._shard.skipped, now.wall_ms))
        return turn.step()

    def handle(self, token: Token, request: Request, now: Now) -> Step:
        """Answer a request, at once or when its move is stored. Its token is returned exactly once."""
        turn = Turn(self._shard, now)
        refused = first_check(request, self._shard.config)
        if refused is not ErrorCode.NONE:
            turn.answer(token, refused)
            return turn.step()
        deadlines.resume(turn, request.transactional_id)
        match request:
            case InitProducer():
                init_producer.init_producer(turn, token, request)
            case AddPartitions():
                add.add_partitions(turn, token, request)
            case VerifyPartitions():
                add.verify_partitions(turn, token, request)
            case EndTransaction():
                end.end_transaction(turn, token, request)
            case never:
                assert_never(never)
        return turn.step()

    def stored(self, move: Move, now: Now) -> Step:
        """Apply a move whose record is durable."""
        turn = Turn(self._shard, now)
        entry = self._entry_of(move)
        entry.move = None
        self._shard.set(move.transactional_id, move.after)
        if move.token is not None:
            turn.replies.append(Reply(move.token, move.on_stored))
        if move.after.state.is_decided:
            end.begin_completion(turn, entry)
        else:
            entry.is_completing = False
        deadlines.arm(turn)
        return turn.step()

    def refused(self, move: Move, error: ErrorCode, now: Now) -> Step:
        """Drop a move whose record was refused: nothing has changed, and the request is answered with `error`."""
        turn = Turn(self._shard, now)
        entry = self._entry_of(move)
        entry.move = None
        if move.token is not None:
            turn.answer(move.token, error)
        if entry.is_completing:
            end.completion_refused(turn, entry)
        elif entry.transaction.epoch == NO_EPOCH and entry.transaction.state is State.EMPTY:
            self._shard.set(move.transactional_id, None)  # never stored, so there is nothing to be kept (KAFKA-14880)
        return turn.step()

    def markers_done(self, decided: Transaction, partitions: Iterable[TopicPartition], now: Now) -> Step:
        """Note that these partitions have the markers ordered by `partita.transactions.contract.SendMarkers`."""
        turn = Turn(self._shard, now)
        end.markers_done(turn, decided, list(partitions))
        return turn.step()

    def on_deadline(self, now: Now) -> Step:
        """Handle due deadlines."""
        turn = Turn(self._shard, now)
        deadlines.run(turn)
        deadlines.arm(turn)
        return turn.step()

    def next_deadline_ms(self) -> int | None:
        """Return when to call `on_deadline`, on the monotonic clock. May be early, is never late."""
        return deadlines.next_ms(self._shard)

    def describe(self, transactional_id: str) -> Described:
        """Return the stored state of one id."""
        return describe.describe(self._shard, transactional_id)

    def list(self, filters: Filters, now: Now) -> Iterator[Transaction | None]:
        """Yield each transaction that passes every filter, and None for each that does not."""
        return describe.listed(self._shard, filters, now.wall_ms)

    def unload(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> Step:
        """Answer every move under way with `error`; the next load finds whether it was stored. The shard is over."""
        moves = [entry.move for entry in self._shard.entries.values() if entry.move is not None]
        return Step(replies=tuple(Reply(m.token, Outcome(error)) for m in moves if m.token is not None))

    def _entry_of(self, move: Move) -> Entry:
        entry = self._shard.entries[move.transactional_id]
        assert entry.move is move, f"{move.transactional_id}: another move is under way"
        return entry
