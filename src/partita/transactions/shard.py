"""The transactional ids of one shard, and one input being decided."""

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
    """One transactional id: what is stored of it, and what is under way.

    `is_completing` says that markers are being written, or the record after them; `unmarked` are the partitions
    without marker yet. `has_failed_fence` says that the epoch was raised and the record of it refused.
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
        """Whether a move is under way, so that no other may begin."""
        return self.move is not None or self.is_completing


class Shard:
    """The transactional ids of one partition of `__transaction_state`.

    `new_producer_id()` gives an id that nobody ever had, or None where none can be taken now. `ids_held()` says how
    many transactional ids all shards hold.
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
        """Ids whose stored state is Ongoing, the longest known first."""
        self.unfinished: dict[str, None] = {}
        """Ids with all markers written whose completion was refused; tried again at `completion_due_ms`."""
        self.completion_due_ms = 0
        self.unresumed: dict[str, bool] = {}
        """After a load: ids whose transaction has to be completed, or (True) to be aborted since it was copied."""
        self.timeouts_due_ms: int | None = None
        self.unlooked: deque[str] = deque()
        """Ids that the look at open transactions under way has not come to."""
        self.expiry_due_ms: int | None = None
        self.refusal_noted_ms: int | None = None
        self.skipped = 0

    def set(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Take the stored value of an id; None forgets it."""
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
        """The transaction version of what the server does by itself; a request is served by its own version."""
        return self.config.level


class Turn:
    """What every rule is given: the shard, what the step will hold, and the time of the input."""

    def __init__(self, shard: Shard, now: Now) -> None:
        self.shard = shard
        self.now = now
        self.writes: list[Write] = []
        self.replies: list[Reply] = []
        self.orders: list[SendMarkers] = []
        self.notes: list[Note] = []

    def answer(self, token: Token, code: ErrorCode) -> None:
        """Answer at once, with an error or with NONE."""
        self.replies.append(Reply(token, Outcome(code)))

    def begin(self, entry: Entry, after: Transaction, token: Token | None, on_stored: Outcome) -> None:
        """Begin a move: nothing changes before its record is stored, and nothing else begins meanwhile."""
        assert entry.move is None, f"{after.transactional_id}: a move is under way already"
        entry.move = Move(after, token, on_stored)
        if after.state is State.DEAD:
            record = tombstone_of(after.transactional_id)
        else:
            record = record_of(after, self.shard.config.level)
        self.writes.append(Write(record, entry.move))

    def step(self) -> Step:
        """What the input led to."""
        return Step(tuple(self.writes), tuple(self.replies), tuple(self.orders), tuple(self.notes))


def without_last_epoch(transaction: Transaction, epoch: int) -> Transaction:
    """The same at another epoch, with no memory of the one before."""
    return replace(transaction, epoch=epoch, last_epoch=-1)
