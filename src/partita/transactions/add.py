"""AddPartitionsToTxn and AddOffsetsToTxn: add partitions to a transaction or verify them. (§7, §8.1)"""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.transactions import moves
from partita.transactions.contract import AddPartitions, Outcome, Reply, Token, VerifyPartitions
from partita.transactions.model import State
from partita.transactions.shard import Entry, Turn

_NONE = Outcome(ErrorCode.NONE)


def add_partitions(turn: Turn, token: Token, request: AddPartitions) -> None:
    """Answer NONE once a record stores that the transaction has all of them; at once if it has them already."""
    entry = turn.shard.entries.get(request.transactional_id)
    if entry is None:
        turn.answer(token, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return
    if entry.is_pending:  # before the id and epoch are compared
        turn.answer(token, ErrorCode.CONCURRENT_TRANSACTIONS)
        return
    refused = check_producer(entry, request.producer_id, request.epoch)
    transaction = entry.transaction
    if refused is not ErrorCode.NONE:
        turn.answer(token, refused)
    elif transaction.state.is_decided:
        turn.answer(token, ErrorCode.CONCURRENT_TRANSACTIONS)
    elif transaction.state is State.ONGOING and request.partitions <= transaction.partitions:
        turn.replies.append(Reply(token, _NONE))
    elif len(transaction.partitions | request.partitions) > turn.shard.config.partitions_max:
        turn.answer(token, ErrorCode.TRANSACTION_ABORTABLE)
    else:
        added = moves.add(transaction, request.partitions, request.version, turn.now.wall_ms)
        turn.begin(entry, added, token, _NONE)


def verify_partitions(turn: Turn, token: Token, request: VerifyPartitions) -> None:
    """Answer with TRANSACTION_ABORTABLE for each partition that is not in the producer's open transaction.

    A move under way is ignored: the stored state decides. (KAFKA-14904)
    """
    entry = turn.shard.entries.get(request.transactional_id)
    if entry is None:
        turn.answer(token, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return
    refused = check_producer(entry, request.producer_id, request.epoch)
    if refused is not ErrorCode.NONE:
        turn.answer(token, refused)
    elif entry.transaction.state.is_decided:
        turn.answer(token, ErrorCode.CONCURRENT_TRANSACTIONS)
    else:
        known = entry.transaction.partitions
        missing = {one: ErrorCode.TRANSACTION_ABORTABLE for one in sorted(request.partitions) if one not in known}
        turn.replies.append(Reply(token, Outcome(ErrorCode.NONE, verdicts=missing)))


def check_producer(entry: Entry, producer_id: int, epoch: int) -> ErrorCode:
    """Check that the request has exactly the current producer id and epoch."""
    if producer_id != entry.transaction.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if epoch != entry.transaction.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
