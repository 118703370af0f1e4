"""The share coordinator's inputs and its answer.

A request concerns one share partition; wire requests are split before.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from partita.protocol.error_codes import ErrorCode
from partita.share.coordinator.log_records import Record
from partita.share.coordinator.model import KEEP_START, UNKNOWN_COUNT, ShareKey, ShareState, StateBatch


class Initialize(NamedTuple):
    """Begin anew: everything stored before is forgotten. Start offset -1: where the group's setting says."""

    key: ShareKey
    state_epoch: int
    start_offset: int = KEEP_START


class Read(NamedTuple):
    """Request of a leader that begins to serve; its epoch fences older leaders from now on."""

    key: ShareKey
    leader_epoch: int


class Write(NamedTuple):
    """Merge these batches into what is stored."""

    key: ShareKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    completed: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()


class Delete(NamedTuple):
    """Forget the share partition."""

    key: ShareKey


class Summarize(NamedTuple):
    """Ask for epochs, start offset and count without the batches; changes nothing."""

    key: ShareKey


StateRequest: TypeAlias = Initialize | Read | Write | Delete | Summarize


class Outcome(NamedTuple):
    """The answer: an error with its reason, or NONE with the state of a `Read` or a `Summarize`."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state: ShareState | None = None


class Decision(NamedTuple):
    """Append the records, and answer once they are durable."""

    outcome: Outcome
    records: tuple[Record, ...] = ()
