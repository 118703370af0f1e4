"""State of one shard of transactional ids, and the context of one input."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.transactions.config import TransactionConfig
from partita.transactions.contract import Move, Outcome, Reply, SendMarkers, Step, Token, Write
from partita.transactions.log_records import record_of, tombstone_of
from partita.transactions.model import State, TopicPartition, Transaction
from partita.transactions.notes import Note


class Entry:
    """One transactional id: its stored state and the move under way.

    `is_completing`: markers or the record after them are being written; `unmarked` are the partitions without marker
    yet. `has_failed_fence`: the epoch was raised but its record was refused.
    """

    __slots__ = ("has_failed_fence", "is_completing", "move", "transaction", "unmarked")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.move: Move | None = None
        self.is_completing = False
        self.unmarked: set[TopicPartition] = set()
        self.has_failed_fence = False

    @property
    def is_pending(self) -> bool:
        """Whether a move is under way, which excludes others."""
        return self.move is not None or self.is_completing


class Shard:
    """The transactional ids of one partition of `__transaction_state`.

    `new_producer_id()` returns a never used producer id, or None if none is available now. `ids_held()` returns the
    number of transactional ids over all shards.
    """

    def __init__(
        self,
        config: TransactionConfig,
        new_producer_id: Callable[[], int | None],
        ids_held: Callable[[], int] | None = None,
    ) -> None:
        self.config = config
        self.new_producer_id = new_producer_id
        self.ids_held = ids_held or (lambda: len(self.entries))
        self.entries: dict[str, Entry] = {}
        self.open: dict[str, None] = {}
        """Ids whose stored state is Ongoing, the least recently stored first."""
        self.unfinished: dict[str, None] = {}
        """Ids with all markers written whose completion was refused; retried at `completion_due_ms`."""
        self.completion_due_ms = 0
        self.unresumed: dict[str, bool] = {}
        """Ids found by a load whose transaction must be completed or, if True, aborted since the log is a copy."""
        self.timeouts_due_ms: int | None = None
        self.unlooked: deque[str] = deque()
        """Ids that the running scan of open transactions has not reached yet."""
        self.expiry_due_ms: int | None = None
        self.refusal_noted_ms: int | None = None
        self.skipped = 0

    def set(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Set the stored value of an id; None removes it."""
        self.open.pop(transactional_id, None)
        if transaction is None or transaction.state is State.DEAD:
            self.entries.pop(transactional_id, None)
            return
        entry = self.entries.get(transactional_id)
        if entry is None:
            self.entries[transactional_id] = Entry(transaction)
        else:
            entry.transaction = transaction
        if transaction.state is State.ONGOING:
            self.open[transactional_id] = None

    @property
    def server_version(self) -> int:
        """The transaction version of the server's own actions; a request is served by its own version."""
        return self.config.level


class Turn:
    """Argument of every rule: the shard, the step being built, and the time of the input."""

    def __init__(self, shard: Shard, now: Now) -> None:
        self.shard = shard
        self.now = now
        self.writes: list[Write] = []
        self.replies: list[Reply] = []
        self.orders: list[SendMarkers] = []
        self.notes: list[Note] = []

    def answer(self, token: Token, code: ErrorCode) -> None:
        """Answer at once, with an error or NONE."""
        self.replies.append(Reply(token, Outcome(code)))

    def begin(self, entry: Entry, after: Transaction, token: Token | None, on_stored: Outcome) -> None:
        """Begin a move: it takes effect once its record is stored, and no other move begins meanwhile."""
        assert entry.move is None, f"{after.transactional_id}: a move is under way already"
        entry.move = Move(after, token, on_stored)
        if after.state is State.DEAD:
            record = tombstone_of(after.transactional_id)
        else:
            record = record_of(after, self.shard.config.level)
        self.writes.append(Write(record, entry.move))

    def step(self) -> Step:
        """Return the result of the input."""
        return Step(tuple(self.writes), tuple(self.replies), tuple(self.orders), tuple(self.notes))


def without_last_epoch(transaction: Transaction, epoch: int) -> Transaction:
    """Return the transaction at another epoch, without the previous one."""
    return replace(transaction, epoch=epoch, last_epoch=-1)
