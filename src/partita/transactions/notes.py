"""Facts for log, dashboard and trace: what happened to a transactional id, and why.

Values only; each output renders them in one place of its own. `as_json` names the kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class TransactionEnded(NamedTuple):
    """A transaction is decided; `by` is "producer", "timeout", "successor" or "restore".

    The successor is the next process with the same id; a restore aborts what was open when a copy was made.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """The epoch that goes into the markers."""
    committed: bool
    partitions: int
    by: str
    open_ms: int
    wall_ms: int


class TransactionalIdsExpired(NamedTuple):
    """Transactional ids were idle for longer than transactional.id.expiration.ms and are forgotten."""

    ids: int
    wall_ms: int


class TransactionRefused(NamedTuple):
    """A new transactional id found no room: the broker holds `ids_max` already. At most one such note per second."""

    transactional_id: str
    ids_max: int
    wall_ms: int


class TransactionsLoaded(NamedTuple):
    """A shard was replayed. `decided`: these get their markers again. `skipped` counts records of unknown kinds."""

    transactional_ids: int
    decided: int
    skipped: int
    wall_ms: int


Note: TypeAlias = TransactionEnded | TransactionalIdsExpired | TransactionRefused | TransactionsLoaded


def as_json(note: Note) -> dict[str, Any]:
    """The note as plain values, with its kind under `note`."""
    return {"note": type(note).__name__, **note._asdict()}
