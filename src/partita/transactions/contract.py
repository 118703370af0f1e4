"""The coordinator's inputs (requests) and outputs (records, replies, orders, notes).

A request concerns one transactional id; wire requests for several are split before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from partita.expressions import Matches
from partita.protocol.error_codes import ErrorCode
from partita.transactions.model import NO_EPOCH, NO_PRODUCER_ID, TopicPartition, Transaction
from partita.transactions.notes import Note

Token: TypeAlias = object
"""The addressee of a reply. Opaque: the shell creates it, the coordinator returns it exactly once."""


class InitProducer(NamedTuple):
    """InitProducerId with a transactional id; producer id and epoch are both -1 or both set."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


class AddPartitions(NamedTuple):
    """AddPartitionsToTxn or AddOffsetsToTxn of one transaction; `version` is 2 if the request's version implies it."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    version: int = 0


class VerifyPartitions(NamedTuple):
    """Verification that the partitions belong to the producer's open transaction; changes nothing."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]


class EndTransaction(NamedTuple):
    """EndTxn; `version` is 2 from its version 5 on."""

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    version: int = 0


Request: TypeAlias = InitProducer | AddPartitions | VerifyPartitions | EndTransaction


class Outcome(NamedTuple):
    """The answer to a request. `verdicts` lists the partitions that a verification did not find."""

    code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    verdicts: Mapping[TopicPartition, ErrorCode] | None = None


class Record(NamedTuple):
    """One record of `__transaction_state`; without a value it is a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The answer to one token."""

    token: Token
    outcome: Outcome


class Move:
    """A change that waits for its record: `coordinator.stored` applies it, `coordinator.refused` drops it."""

    __slots__ = ("after", "on_stored", "token")

    def __init__(self, after: Transaction, token: Token | None, on_stored: Outcome) -> None:
        self.after = after
        self.token = token
        self.on_stored = on_stored

    @property
    def transactional_id(self) -> str:
        """The id that the move belongs to."""
        return self.after.transactional_id


class Write(NamedTuple):
    """Order to append the record and then report the move as stored, once it is durable, or as refused."""

    record: Record
    move: Move


class SendMarkers(NamedTuple):
    """Order to write the markers of a transaction, retrying each partition until done, and report each one."""

    transaction: Transaction
    """The decided transaction, in PrepareCommit or PrepareAbort."""
    partitions: tuple[TopicPartition, ...]


class Step(NamedTuple):
    """Result of one input. Replies and orders may be sent at once: the state behind them is durable."""

    writes: tuple[Write, ...] = ()
    replies: tuple[Reply, ...] = ()
    orders: tuple[SendMarkers, ...] = ()
    notes: tuple[Note, ...] = ()


NOTHING = Step()


class Described(NamedTuple):
    """One transactional id for DescribeTransactions; of a refused one only the code counts."""

    code: ErrorCode
    transaction: Transaction | None = None
    partitions: tuple[TopicPartition, ...] = ()
    """In a decided transaction the partitions without marker yet."""


class Filters(NamedTuple):
    """Filters of ListTransactions; empty and None match all."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    open_longer_than_ms: int = -1
    matches: Matches | None = None
    """Predicate from `partita.transactions.describe.pattern_of`."""
