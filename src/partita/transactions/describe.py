"""DescribeTransactions and ListTransactions of one shard. (§17)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from partita.protocol.error_codes import ErrorCode
from partita.transactions.contract import Described, Filters
from partita.transactions.model import Transaction
from partita.transactions.shard import Shard

PATTERN_CHARACTERS_MAX = 1000
_NESTED = re.compile(r"[*+}]\)[*+{?]")
"""A repetition of a repetition, which can take exponential time."""


def describe(shard: Shard, transactional_id: str) -> Described:
    """What is stored of one id. While markers are written, its partitions are those without marker yet."""
    if not transactional_id:
        return Described(ErrorCode.INVALID_REQUEST)
    entry = shard.entries.get(transactional_id)
    if entry is None:
        return Described(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    transaction = entry.transaction
    partitions = entry.unmarked if entry.is_completing and transaction.state.is_decided else transaction.partitions
    return Described(ErrorCode.NONE, transaction, tuple(sorted(partitions)))


def pattern_of(text: str | None) -> re.Pattern[str] | None:
    """The compiled filter of ids; None for no filter. Raises ValueError for one that is wrong, or could take for ever.

    Deviation: the pattern of ListTransactions is read as a Python regular expression; one of more than 1,000
    characters, or with nested repetitions, is refused with INVALID_REGULAR_EXPRESSION.
    """
    if not text:
        return None
    if len(text) > PATTERN_CHARACTERS_MAX or _NESTED.search(text):
        raise ValueError(f"this pattern is too long or too costly: {text[:80]}")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text[:80]}: {error}") from error


def listed(shard: Shard, filters: Filters, wall_ms: int) -> Iterator[Transaction]:
    """The transactions that pass every filter. Without a start a transaction passes every duration, as in Kafka."""
    pattern = pattern_of(filters.pattern)
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
            and (pattern is None or pattern.fullmatch(transaction.transactional_id))
        ):
            yield transaction
