"""Decision tables of EndTxn: state of the transactional id by request. (§9)

One table for each transaction version; every cell is a verb. Mirrors endTransaction of Kafka's TransactionCoordinator.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from partita.transactions.model import State


class Verb(Enum):
    """Action for an EndTxn."""

    DECIDE = "decide"
    """Write the decision; the markers follow."""
    REPEAT = "repeat"
    """The request is a repetition: answer with the current producer id and epoch, write nothing."""
    INVALID = "invalid"
    """Refuse with INVALID_TXN_STATE."""
    WAIT = "wait"
    """Refuse with CONCURRENT_TRANSACTIONS: the same end is in progress."""
    FENCED = "fenced"
    """Refuse with PRODUCER_FENCED."""
    NEVER = "never"
    """Impossible: a guard has answered."""


class Case(Enum):
    """Relation of the epoch of a version 2 request to the stored one."""

    CURRENT = "current"
    REPEAT = "repeat"
    """The previous epoch, or that of the previous producer id: an end that was already accepted."""


DECIDE, REPEAT, INVALID, WAIT, FENCED, NEVER = Verb
Row: TypeAlias = tuple[Verb, ...]

# fmt: off
END_V1: dict[State, Row] = {
    #                           COMMIT   ABORT
    State.EMPTY:               (INVALID, INVALID),
    State.ONGOING:             (DECIDE,  DECIDE),
    State.PREPARE_COMMIT:      (WAIT,    INVALID),
    State.PREPARE_ABORT:       (INVALID, WAIT),
    State.COMPLETE_COMMIT:     (REPEAT,  INVALID),
    State.COMPLETE_ABORT:      (INVALID, REPEAT),
    State.DEAD:                (NEVER,   NEVER),
    State.PREPARE_EPOCH_FENCE: (NEVER,   NEVER),
}  # TX-F01 to F06
END_V2: dict[State, Row] = {
    #                           COMMIT   COMMIT   ABORT    ABORT
    #                           CURRENT  REPEAT   CURRENT  REPEAT
    State.EMPTY:               (INVALID, FENCED,  DECIDE,  FENCED),
    State.ONGOING:             (DECIDE,  FENCED,  DECIDE,  FENCED),
    State.PREPARE_COMMIT:      (FENCED,  WAIT,    FENCED,  INVALID),
    State.PREPARE_ABORT:       (FENCED,  INVALID, FENCED,  WAIT),
    State.COMPLETE_COMMIT:     (INVALID, REPEAT,  DECIDE,  INVALID),
    State.COMPLETE_ABORT:      (INVALID, INVALID, DECIDE,  REPEAT),
    State.DEAD:                (NEVER,   NEVER,   NEVER,   NEVER),
    State.PREPARE_EPOCH_FENCE: (NEVER,   NEVER,   NEVER,   NEVER),
}  # TX-G01 to G06
# fmt: on


def end_v1(state: State, *, committed: bool) -> Verb:
    """Return the verb for an end of version 1, whose epoch is the stored one."""
    return END_V1[state][not committed]


def end_v2(state: State, case: Case, *, committed: bool) -> Verb:
    """Return the verb for an end of version 2."""
    return END_V2[state][2 * (not committed) + (case is Case.REPEAT)]
