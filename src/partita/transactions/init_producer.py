"""InitProducerId with a transactional id: a new producer id, the next epoch, or a fence. (§6)"""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.transactions import end, moves
from partita.transactions.contract import InitProducer, Outcome, Token
from partita.transactions.model import NO_EPOCH, USED_UP, State, Transaction
from partita.transactions.notes import TransactionRefused
from partita.transactions.shard import Entry, Turn

_NOTE_EVERY_MS = 1000


def check(request: InitProducer, max_timeout_ms: int) -> ErrorCode:
    """Return the error of a request that is invalid in any state, in Kafka's order; NONE if it passes."""
    if (request.producer_id == -1) != (request.epoch == NO_EPOCH) or not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.timeout_ms <= max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def init_producer(turn: Turn, token: Token, request: InitProducer) -> None:
    """Answer with the producer id and epoch once they are stored; an open transaction is aborted first."""
    entry = turn.shard.entries.get(request.transactional_id) or _new_entry(turn, request)
    if isinstance(entry, ErrorCode):
        turn.answer(token, entry)
        return
    transaction = entry.transaction
    if entry.is_pending:
        turn.answer(token, ErrorCode.CONCURRENT_TRANSACTIONS)
    elif not _is_known(transaction, request):
        turn.answer(token, ErrorCode.PRODUCER_FENCED)
    elif transaction.state.is_decided:
        turn.answer(token, ErrorCode.CONCURRENT_TRANSACTIONS)
    elif transaction.state is State.ONGOING:
        end.fence(turn, entry, "successor", token)
    else:
        _renew(turn, entry, token, request)


def _new_entry(turn: Turn, request: InitProducer) -> Entry | ErrorCode:
    shard, now = turn.shard, turn.now
    if shard.ids_held() >= shard.config.ids_max:
        if shard.refusal_noted_ms is None or now.mono_ms - shard.refusal_noted_ms >= _NOTE_EVERY_MS:
            shard.refusal_noted_ms = now.mono_ms
            turn.notes.append(TransactionRefused(request.transactional_id, shard.config.ids_max, now.wall_ms))
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    producer_id = shard.new_producer_id()
    if producer_id is None:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    transaction = Transaction(request.transactional_id, producer_id, request.timeout_ms, now.wall_ms)
    shard.set(request.transactional_id, transaction)
    return shard.entries[request.transactional_id]


def _is_known(transaction: Transaction, request: InitProducer) -> bool:
    """Whether the producer id and epoch of the request, if any, fit the stored producer or the one before it."""
    if request.epoch == NO_EPOCH or transaction.epoch == NO_EPOCH or request.producer_id == transaction.producer_id:
        return True
    return request.producer_id == transaction.previous_producer_id and request.epoch >= USED_UP


def _renew(turn: Turn, entry: Entry, token: Token, request: InitProducer) -> None:
    transaction, wall_ms = entry.transaction, turn.now.wall_ms
    given = None if request.epoch == NO_EPOCH else request.epoch
    renewed: Transaction | ErrorCode
    if transaction.is_used_up and given in (None, transaction.epoch):
        renewed = _rotate(turn, transaction, request)
    elif transaction.is_used_up and given is not None:
        renewed = moves.repeat(transaction, given, request.timeout_ms, wall_ms)
    else:
        renewed = moves.bump(transaction, given, request.timeout_ms, wall_ms)
    if isinstance(renewed, ErrorCode):
        turn.answer(token, renewed)
    else:
        turn.begin(entry, renewed, token, Outcome(ErrorCode.NONE, renewed.producer_id, renewed.epoch))


def _rotate(turn: Turn, transaction: Transaction, request: InitProducer) -> Transaction | ErrorCode:
    producer_id = turn.shard.new_producer_id()
    if producer_id is None:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    is_given = request.epoch != NO_EPOCH
    return moves.rotate(transaction, producer_id, request.timeout_ms, turn.now.wall_ms, epoch_given=is_given)
