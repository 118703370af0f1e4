"""What crosses the coordinator's border: requests in; records, replies, orders and notes out.

A request is about one transactional id; whatever holds several is split before it comes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from partita.expressions import Matches
from partita.protocol.error_codes import ErrorCode
from partita.transactions.model import NO_EPOCH, NO_PRODUCER_ID, TopicPartition, Transaction
from partita.transactions.notes import Note

Token: TypeAlias = object
"""Whom a reply is for. Opaque: the shell makes it, the coordinator hands it back exactly once."""


class InitProducer(NamedTuple):
    """InitProducerId with a transactional id; producer id and epoch are both -1 or both given."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


class AddPartitions(NamedTuple):
    """AddPartitionsToTxn or AddOffsetsToTxn of one transaction; `version` is 2 where the request's version says so."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    version: int = 0


class VerifyPartitions(NamedTuple):
    """Whether the partitions belong to the producer's open transaction; nothing is changed."""

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
    """The answer to a request. `verdicts` name the partitions that a verification did not find."""

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
    """A change that waits for its record: `coordinator.stored` makes it true, `coordinator.refused` drops it."""

    __slots__ = ("after", "on_stored", "token")

    def __init__(self, after: Transaction, token: Token | None, on_stored: Outcome) -> None:
        self.after = after
        self.token = token
        self.on_stored = on_stored

    @property
    def transactional_id(self) -> str:
        """Whose move it is."""
        return self.after.transactional_id


class Write(NamedTuple):
    """Append the record; then tell the coordinator that the move is stored, once it is durable, or refused."""

    record: Record
    move: Move


class SendMarkers(NamedTuple):
    """Write the end of a transaction into these partitions, each until it is done, and say so of each."""

    transaction: Transaction
    """As decided: PrepareCommit or PrepareAbort."""
    partitions: tuple[TopicPartition, ...]


class Step(NamedTuple):
    """What one input led to. Replies and orders may go at once: what they rest on is durable."""

    writes: tuple[Write, ...] = ()
    replies: tuple[Reply, ...] = ()
    orders: tuple[SendMarkers, ...] = ()
    notes: tuple[Note, ...] = ()


NOTHING = Step()


class Described(NamedTuple):
    """One transactional id as DescribeTransactions tells it; of a refused one only the code counts."""

    code: ErrorCode
    transaction: Transaction | None = None
    partitions: tuple[TopicPartition, ...] = ()
    """In a decided transaction those that have no marker yet."""


class Filters(NamedTuple):
    """Which transactional ids ListTransactions is to tell; empty and None ask for all."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    open_longer_than_ms: int = -1
    matches: Matches | None = None
    """Of `partita.transactions.describe.pattern_of`."""
