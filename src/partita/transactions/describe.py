"""DescribeTransactions and ListTransactions of one shard. (§17)"""

from __future__ import annotations

from collections.abc import Iterator

from partita.expressions import InvalidExpression, Matches, compiled
from partita.protocol.error_codes import ErrorCode
from partita.transactions.contract import Described, Filters
from partita.transactions.model import Transaction
from partita.transactions.shard import Shard

PATTERN_CHARACTERS_MAX = 1000


def describe(shard: Shard, transactional_id: str) -> Described:
    """Return the stored state of one id. While markers are written, its partitions are those without marker yet."""
    if not transactional_id:
        return Described(ErrorCode.INVALID_REQUEST)
    entry = shard.entries.get(transactional_id)
    if entry is None:
        return Described(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    transaction = entry.transaction
    partitions = entry.unmarked if entry.is_completing and transaction.state.is_decided else transaction.partitions
    return Described(ErrorCode.NONE, transaction, tuple(sorted(partitions)))


def pattern_of(text: str | None) -> Matches | None:
    """Return a predicate that matches whole ids; None for no pattern. Raises InvalidExpression.

    Deviation: Partita refuses a pattern of ListTransactions of more than 1,000 characters, and every pattern without
    the package google-re2, with INVALID_REGULAR_EXPRESSION, where Kafka reads all of them.
    """
    if not text:
        return None
    if len(text) > PATTERN_CHARACTERS_MAX:
        raise InvalidExpression(f"a pattern has at most {PATTERN_CHARACTERS_MAX} characters, not {len(text)}")
    return compiled(text)


def listed(shard: Shard, filters: Filters, wall_ms: int) -> Iterator[Transaction | None]:
    """Yield each transaction that passes every filter, and None for each that does not.

    A transaction without a start time passes every duration filter, as in Kafka.
    """
    for entry in list(shard.entries.values()):
        transaction = entry.transaction
        is_long_enough = (
            filters.open_longer_than_ms < 0
            or transaction.start_ms < 0
            or wall_ms - transaction.start_ms > filters.open_longer_than_ms
        )
        if (
            is_long_enough
            and (not filters.states or transaction.state.text in filters.states)
            and (not filters.producer_ids or transaction.producer_id in filters.producer_ids)
            and (filters.matches is None or filters.matches(transaction.transactional_id))
        ):
            yield transaction
        else:
            yield None
