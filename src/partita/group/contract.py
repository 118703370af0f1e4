"""The coordinator's inputs (requests) and outputs (records, replies, notes, jobs).

Named tuples rather than frozen dataclasses: equally immutable and half as expensive to create, which matters on the
heartbeat path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from partita.group.notes import Note
from partita.protocol.primitives import Structure

Token: TypeAlias = object
"""The addressee of a reply. Opaque: the shell creates it, the coordinator returns it exactly once."""


class GroupRequest(NamedTuple):
    """One request about one group (see `requests` for those whose wire form holds several)."""

    message: Structure
    version: int
    client_id: str = ""
    client_host: str = ""
    transaction_open: bool = True
    """TxnOffsetCommit only: the producer's transaction includes this offsets partition."""
    may_see: Callable[[str], bool] | None = None
    """ConsumerGroupHeartbeat only: topics that a regular expression may match for this client; None: all of them."""


class Record(NamedTuple):
    """One record of `__consumer_offsets`; without a value it is a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The answer to one token."""

    token: Token
    message: Structure


class Producer(NamedTuple):
    """The producer whose transactional batch the records of a step belong to."""

    producer_id: int
    producer_epoch: int


class Marker(NamedTuple):
    """The end of a transaction, to be appended as a control batch of its own."""

    producer: Producer
    coordinator_epoch: int
    committed: bool


class Lane(NamedTuple):
    """Jobs with a common limit: at most `most` unfinished at a time, and of user code at most one per group."""

    name: str
    most: int = 16
    is_users: bool = False


STATES = Lane("questions to the share coordinator")
"""The shell asks these itself and runs none of them."""


class Job(Protocol):
    """Work to run outside the event loop (`ComputeTarget`, `MatchExpressions`); it shares no mutable state."""

    @property
    def group_id(self) -> str: ...

    @property
    def lane(self) -> Lane: ...

    def run(self) -> object:
        """Return the outcome, to be passed to `partita.group.coordinator.GroupCoordinator.job_done`."""


class Step(NamedTuple):
    """Result of one input. Append `records` as one batch (then `marker`); release `replies` once they are durable."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    notes: tuple[Note, ...] = ()
    producer: Producer | None = None
    marker: Marker | None = None
    jobs: tuple[Job, ...] = ()
    """To be run once the records are appended; each outcome is passed to `job_done`."""


NOTHING = Step()


class Handover(NamedTuple):
    """State that a cleanly unloaded shard passes to the next load, in addition to its log."""

    silences: Mapping[tuple[str, str], int]
    """By (group id, member id): for how many milliseconds the member was silent."""
    generations: Mapping[str, int]
    """By group id: the highest generation that a client may know, where it is not in the log."""


NO_HANDOVER = Handover({}, {})
