"""What the coordinator does by itself: abort open transactions that are too old, forget idle ids, finish. (§11)

Open transactions and idle ids are looked through at intervals, as in Kafka; what is looked through are the open
transactions alone, so that idle ids cost nothing.
"""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.transactions import end, moves
from partita.transactions.contract import Outcome
from partita.transactions.model import Transaction
from partita.transactions.notes import TransactionalIdsExpired
from partita.transactions.shard import Shard, Turn

_EXPIRED_AT_ONCE = 500
"""Ids forgotten in one step; the rest follows at once, with other work between."""


def next_ms(shard: Shard) -> int | None:
    """When the next deadline is due, on the monotonic clock; None: there is none."""
    due = [shard.completion_due_ms] if shard.unfinished else []
    if shard.open and shard.timeouts_due_ms is not None:
        due.append(shard.timeouts_due_ms)
    if shard.entries and shard.expiry_due_ms is not None:
        due.append(shard.expiry_due_ms)
    return min(due, default=None)


def arm(turn: Turn) -> None:
    """Set the next look at open transactions and at idle ids where none is set."""
    shard, mono_ms = turn.shard, turn.now.mono_ms
    if not shard.open:
        shard.timeouts_due_ms = None
    elif shard.timeouts_due_ms is None:
        shard.timeouts_due_ms = mono_ms + shard.config.timeout_check_interval_ms
    if shard.expiry_due_ms is None:
        shard.expiry_due_ms = mono_ms + shard.config.expiration_check_interval_ms


def run(turn: Turn) -> None:
    """Do what is due."""
    shard, mono_ms = turn.shard, turn.now.mono_ms
    if shard.unfinished and shard.completion_due_ms <= mono_ms:
        end.finish(turn)
    if shard.timeouts_due_ms is not None and shard.timeouts_due_ms <= mono_ms:
        shard.timeouts_due_ms = None
        for transactional_id in list(shard.open):
            entry = shard.entries[transactional_id]
            if not entry.is_pending and entry.transaction.is_timed_out(turn.now.wall_ms):
                end.fence(turn, entry, "timeout")
    if shard.expiry_due_ms is not None and shard.expiry_due_ms <= mono_ms:
        shard.expiry_due_ms = None
        _expire(turn)


def _expire(turn: Turn) -> None:
    oldest_ms = turn.now.wall_ms - turn.shard.config.id_expiration_ms
    count = 0
    for entry in list(turn.shard.entries.values()):
        if count == _EXPIRED_AT_ONCE:
            turn.shard.expiry_due_ms = turn.now.mono_ms
            break
        if not entry.is_pending and _is_forgettable(entry.transaction, oldest_ms):
            turn.begin(entry, moves.expire(entry.transaction), None, Outcome(ErrorCode.NONE))
            count += 1
    if count:
        turn.notes.append(TransactionalIdsExpired(count, turn.now.wall_ms))


def _is_forgettable(transaction: Transaction, oldest_ms: int) -> bool:
    return transaction.state.is_idle and transaction.updated_ms <= oldest_ms
