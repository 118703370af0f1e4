"""Events of transactional ids and their causes, for log, dashboard and trace.

Plain values; each output renders them in one place. The shell adds the kind.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class TransactionEnded(NamedTuple):
    """A transaction was decided; `by` is "producer", "timeout", "successor" or "restore".

    The successor is the next process with the same id; a restore aborts transactions that were open in the copy.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """The producer epoch of the markers."""
    committed: bool
    partitions: int
    by: str
    open_ms: int
    wall_ms: int


class TransactionalIdsExpired(NamedTuple):
    """Transactional ids were idle for longer than transactional.id.expiration.ms and were removed."""

    ids: int
    wall_ms: int


class TransactionRefused(NamedTuple):
    """A new transactional id was refused: the broker already has `ids_max`. At most one such note per second."""

    transactional_id: str
    ids_max: int
    wall_ms: int


class TransactionsLoaded(NamedTuple):
    """A shard was replayed. `decided` ids get their markers again. `skipped` counts records of unknown kinds."""

    transactional_ids: int
    decided: int
    skipped: int
    wall_ms: int


Note: TypeAlias = TransactionEnded | TransactionalIdsExpired | TransactionRefused | TransactionsLoaded
