"""The states of a transactional producer and the moves between them.

Mirrors TransactionManager.State of Kafka 4.3. (transactions.md 20.1)
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """States of a transactional producer."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


S = State
MOVES: dict[State, frozenset[State]] = {
    S.UNINITIALIZED: frozenset({S.INITIALIZING, S.FATAL_ERROR}),
    S.INITIALIZING: frozenset({S.READY, S.UNINITIALIZED, S.FATAL_ERROR}),
    S.READY: frozenset({S.IN_TRANSACTION, S.FATAL_ERROR}),
    S.IN_TRANSACTION: frozenset({S.COMMITTING, S.ABORTING, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.COMMITTING: frozenset({S.READY, S.INITIALIZING, S.ABORTABLE_ERROR, S.FATAL_ERROR}),
    S.ABORTING: frozenset({S.READY, S.INITIALIZING, S.FATAL_ERROR}),
    S.ABORTABLE_ERROR: frozenset({S.ABORTING, S.FATAL_ERROR}),
    S.FATAL_ERROR: frozenset(),
}
"""Each state and those that may follow it. From committing and aborting to initializing: the epoch is raised."""

OPEN = frozenset({S.IN_TRANSACTION, S.ABORTABLE_ERROR})
"""A transaction is open, and `abort_transaction` may end it."""
