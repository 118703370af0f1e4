"""EndTxn, fencing and timeouts: the decision of a transaction, its markers, and its completion. (§9, §6.4, §10)"""

from __future__ import annotations

from typing import assert_never

from partita.protocol.error_codes import ErrorCode
from partita.transactions import moves
from partita.transactions.add import check_producer
from partita.transactions.contract import EndTransaction, Outcome, Reply, SendMarkers, Token
from partita.transactions.model import NO_PRODUCER_ID, USED_UP, State, TopicPartition, Transaction
from partita.transactions.notes import TransactionEnded
from partita.transactions.shard import Entry, Turn, without_last_epoch
from partita.transactions.tables import Case, Verb, end_v1, end_v2

_COMPLETION_RETRY_MS = 100
_DONE = Outcome(ErrorCode.NONE)


def end_transaction(turn: Turn, token: Token, request: EndTransaction) -> None:
    """Answer NONE once the decision is stored; under version 2 with the next producer id and epoch."""
    entry = turn.shard.entries.get(request.transactional_id)
    if entry is None:
        turn.answer(token, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return
    verb = _end_v2(entry, request) if request.version >= moves.VERSION_2 else _end_v1(entry, request)
    if isinstance(verb, ErrorCode):
        turn.answer(token, verb)
        return
    match verb:
        case Verb.DECIDE:
            _decide(turn, entry, token, request)
        case Verb.REPEAT:
            transaction = entry.transaction
            turn.replies.append(Reply(token, Outcome(ErrorCode.NONE, transaction.producer_id, transaction.epoch)))
        case Verb.INVALID:
            turn.answer(token, ErrorCode.INVALID_TXN_STATE)
        case Verb.WAIT:
            turn.answer(token, ErrorCode.CONCURRENT_TRANSACTIONS)
        case Verb.FENCED:
            turn.answer(token, ErrorCode.PRODUCER_FENCED)
        case Verb.NEVER:
            raise AssertionError(f"{request.transactional_id} is {entry.transaction.state.text}")
        case never:
            assert_never(never)


def _end_v1(entry: Entry, request: EndTransaction) -> Verb | ErrorCode:
    refused = check_producer(entry, request.producer_id, request.epoch)
    if refused is not ErrorCode.NONE:
        return refused
    if entry.is_pending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return end_v1(entry.transaction.state, committed=request.committed)


def _end_v2(entry: Entry, request: EndTransaction) -> Verb | ErrorCode:
    """Classify an end of version 2, which raises the epoch: one with the previous epoch repeats the last end.

    Deviation: Partita takes an EndTxn of version 2 with the previous epoch for a repetition only if the last end was of
    version 2, where Kafka gives a fenced producer the epoch of its successor of version 1.
    """
    if entry.is_pending:  # before the id and epoch are compared
        return ErrorCode.CONCURRENT_TRANSACTIONS
    transaction = entry.transaction
    over_rotation = (
        request.epoch == USED_UP
        and transaction.epoch == 0
        and transaction.previous_producer_id == request.producer_id != transaction.producer_id
    )
    if request.producer_id != transaction.producer_id and not over_rotation:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_repeated = request.epoch == transaction.epoch - 1 and transaction.client_version >= moves.VERSION_2
    if over_rotation or is_repeated:
        case = Case.REPEAT
    elif request.epoch == transaction.epoch:
        case = Case.CURRENT
    else:
        return ErrorCode.PRODUCER_FENCED
    return end_v2(transaction.state, case, committed=request.committed)


def _decide(turn: Turn, entry: Entry, token: Token, request: EndTransaction) -> None:
    transaction = entry.transaction
    next_producer_id = _next_producer_id(turn, transaction, request.version)
    if next_producer_id is None:
        turn.answer(token, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return
    decided = moves.end(
        transaction,
        committed=request.committed,
        client_version=request.version,
        wall_ms=turn.now.wall_ms,
        next_producer_id=next_producer_id,
        nothing_added=transaction.state is not State.ONGOING,
    )
    turn.begin(entry, decided, token, _to_be_used_next(decided))
    _note(turn, transaction, decided, "producer")


def _next_producer_id(turn: Turn, transaction: Transaction, version: int) -> int | None:
    """Return the id that follows after the last epoch; NO_PRODUCER_ID before it, None if no id is available now."""
    is_last = version >= moves.VERSION_2 and transaction.is_used_up
    return turn.shard.new_producer_id() if is_last else NO_PRODUCER_ID


def _to_be_used_next(decided: Transaction) -> Outcome:
    if decided.next_producer_id != NO_PRODUCER_ID:
        return Outcome(ErrorCode.NONE, decided.next_producer_id, 0)
    return Outcome(ErrorCode.NONE, decided.producer_id, decided.epoch)


def fence(turn: Turn, entry: Entry, by: str, token: Token | None = None) -> None:
    """Abort an open transaction and fence its producer. (§6.4)

    A request is answered with a retriable error: CONCURRENT_TRANSACTIONS, or COORDINATOR_LOAD_IN_PROGRESS if no
    producer id is available; then nothing happens yet.
    """
    transaction, version = entry.transaction, turn.shard.server_version
    next_producer_id = _next_producer_id(turn, transaction, version)
    if next_producer_id is None:
        if token is not None:
            turn.answer(token, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return
    if version < moves.VERSION_2:
        fenced = moves.fence(transaction)
        if not entry.has_failed_fence:
            # Applied in memory at once: the old producer is fenced even if the record is refused.
            transaction = entry.transaction = without_last_epoch(transaction, fenced.epoch)
            entry.has_failed_fence = True
        version = 0
    decided = moves.end(
        transaction,
        committed=False,
        client_version=version,
        wall_ms=turn.now.wall_ms,
        next_producer_id=next_producer_id,
    )
    turn.begin(entry, decided, token, Outcome(ErrorCode.CONCURRENT_TRANSACTIONS))
    _note(turn, transaction, decided, by)


def _note(turn: Turn, before: Transaction, decided: Transaction, by: str) -> None:
    open_ms = 0 if before.start_ms < 0 else max(0, turn.now.wall_ms - before.start_ms)
    committed = decided.state is State.PREPARE_COMMIT
    turn.notes.append(
        TransactionEnded(
            decided.transactional_id,
            decided.producer_id,
            decided.epoch,
            committed,
            len(decided.partitions),
            by,
            open_ms,
            turn.now.wall_ms,
        )
    )


def begin_completion(turn: Turn, entry: Entry) -> None:
    """Order markers for every partition of a decided transaction; complete it if it has no partitions."""
    transaction = entry.transaction
    entry.is_completing = True
    entry.has_failed_fence = False
    entry.unmarked = set(transaction.partitions)
    if entry.unmarked:
        turn.orders.append(SendMarkers(transaction, tuple(sorted(entry.unmarked))))
    else:
        _complete(turn, entry)


def markers_done(turn: Turn, decided: Transaction, partitions: list[TopicPartition]) -> None:
    """Note partitions that have the decision's marker, or need none. Late reports on other decisions are ignored."""
    entry = turn.shard.entries.get(decided.transactional_id)
    if entry is None or not entry.is_completing or entry.transaction is not decided or entry.move is not None:
        return
    if not entry.unmarked:
        return
    entry.unmarked.difference_update(partitions)
    if not entry.unmarked:
        _complete(turn, entry)


def _complete(turn: Turn, entry: Entry) -> None:
    turn.begin(entry, moves.complete(entry.transaction, turn.now.wall_ms), None, _DONE)


def completion_refused(turn: Turn, entry: Entry) -> None:
    """Keep the id pending after its last record was refused, to be retried. (KAFKA-5416)"""
    shard = turn.shard
    if not shard.unfinished:
        shard.completion_due_ms = turn.now.mono_ms + _COMPLETION_RETRY_MS
    shard.unfinished[entry.transaction.transactional_id] = None


def finish(turn: Turn) -> None:
    """Retry the refused completions."""
    unfinished, turn.shard.unfinished = turn.shard.unfinished, {}
    for transactional_id in unfinished:
        entry = turn.shard.entries[transactional_id]
        _complete(turn, entry)
