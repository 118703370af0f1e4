"""The coordinator's own actions: abort timed-out transactions, expire idle ids, retry completions. (§11)

Open transactions and idle ids are scanned at intervals, as in Kafka; the scan for timeouts visits only open
transactions, so that idle ids cost nothing. A step does a part of it and is due again at once until all is done.
Transactions found by a load come first: until they are handled, no transaction times out and no id expires.
"""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.transactions import end, moves
from partita.transactions.contract import Outcome
from partita.transactions.model import Transaction
from partita.transactions.notes import TransactionalIdsExpired
from partita.transactions.shard import Shard, Turn

_EXPIRED_AT_ONCE = 500
"""Ids expired per step; the rest follows at once, with other work in between."""
_LOOKED_AT_ONCE = 2_000
"""Open transactions checked per step."""
_ABORTED_AT_ONCE = 500
"""Partitions of transactions aborted per step; each transaction adds a constant."""
_COST_OF_ABORT = 5


def next_ms(shard: Shard) -> int | None:
    """Return the time of the next deadline on the monotonic clock, or None."""
    if shard.unresumed:
        return 0
    due = [shard.completion_due_ms] if shard.unfinished else []
    if shard.open and shard.timeouts_due_ms is not None:
        due.append(shard.timeouts_due_ms)
    if shard.entries and shard.expiry_due_ms is not None:
        due.append(shard.expiry_due_ms)
    return min(due, default=None)


def arm(turn: Turn) -> None:
    """Schedule the next scans of open transactions and idle ids, unless scheduled."""
    shard, mono_ms = turn.shard, turn.now.mono_ms
    if not shard.open:
        shard.timeouts_due_ms = None
        shard.unlooked.clear()
    elif shard.timeouts_due_ms is None:
        shard.timeouts_due_ms = mono_ms + shard.config.timeout_check_interval_ms
    if shard.expiry_due_ms is None:
        shard.expiry_due_ms = mono_ms + shard.config.expiration_check_interval_ms


def run(turn: Turn) -> None:
    """Handle due deadlines."""
    shard, mono_ms = turn.shard, turn.now.mono_ms
    if shard.unresumed:
        resume_some(turn)
        return
    if shard.unfinished and shard.completion_due_ms <= mono_ms:
        end.finish(turn)
    if shard.timeouts_due_ms is not None and shard.timeouts_due_ms <= mono_ms:
        _time_out(turn)
    if shard.expiry_due_ms is not None and shard.expiry_due_ms <= mono_ms:
        shard.expiry_due_ms = None
        _expire(turn)


def resume_some(turn: Turn) -> None:
    """Continue with the transactions found by a load, up to the size of one step."""
    shard, cost = turn.shard, 0
    while shard.unresumed and cost < _ABORTED_AT_ONCE:
        transactional_id = next(iter(shard.unresumed))
        cost += _COST_OF_ABORT + len(shard.entries[transactional_id].transaction.partitions)
        resume(turn, transactional_id)


def resume(turn: Turn, transactional_id: str) -> None:
    """Complete or abort the transaction that a load found for this id, unless that was done already."""
    is_copied = turn.shard.unresumed.pop(transactional_id, None)
    if is_copied is None:
        return
    entry = turn.shard.entries[transactional_id]
    if is_copied:
        end.fence(turn, entry, "restore")
    else:
        end.begin_completion(turn, entry)


def _time_out(turn: Turn) -> None:
    """Continue the running scan of open transactions and abort those that have timed out."""
    shard = turn.shard
    if not shard.unlooked:
        shard.unlooked.extend(shard.open)
    looked = aborted = 0
    while shard.unlooked and looked < _LOOKED_AT_ONCE and aborted < _ABORTED_AT_ONCE:
        looked += 1
        transactional_id = shard.unlooked.popleft()
        if transactional_id not in shard.open:
            continue
        entry = shard.entries[transactional_id]
        if not entry.is_pending and entry.transaction.is_timed_out(turn.now.wall_ms):
            aborted += _COST_OF_ABORT + len(entry.transaction.partitions)
            end.fence(turn, entry, "timeout")
    shard.timeouts_due_ms = turn.now.mono_ms if shard.unlooked else None


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
