"""The data of a transaction's rules: states and moves, the application's calls, requests to coordinators, offsets.

Mirrors TransactionManager.State of Kafka 4.3. (transactions.md 20.1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from partita.protocol.primitives import Request


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


GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators, by their numbers in FindCoordinator."""


class CallKind(Enum):
    """The calls of the application; the value is the method's name."""

    INIT = "init_transactions"
    SEND_OFFSETS = "send_offsets_to_transaction"
    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


class Member(NamedTuple):
    """The consuming member: without generation and member id nothing excludes a replaced consumer. (KIP-447)"""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


NOBODY = Member("")


class TxnOffset(NamedTuple):
    """The next offset to read of a partition, the leader epoch of the record before it (-1: unknown), a note."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Offsets = Mapping[tuple[str, int], TxnOffset]


@dataclass(slots=True, eq=False)
class Call:
    """One call of the application under way; `callbacks` are called when it is done."""

    kind: CallKind
    is_done: bool = False
    error: Exception | None = None
    callbacks: list[Callable[[], object]] = field(default_factory=list)
    offsets: dict[tuple[str, int], TxnOffset] = field(default_factory=dict)
    """Offsets of `send_offsets_to_transaction` that are not committed yet."""
    member: Member = NOBODY


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """One request to a coordinator. `version_max` None: the highest common one; `call` is the one it works for."""

    message: Request[Any]
    key: str
    key_type: int = TRANSACTION
    version_max: int | None = None
    version_min: int = 0
    call: Call | None = None

    @property
    def api(self) -> str:
        """The name of the API."""
        return type(self.message).__name__.removesuffix("Request")
