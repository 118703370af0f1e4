"""What crosses the coordinator's border: requests in; records, replies and notes out.

Named tuples, not frozen dataclasses: as immutable, and half the price to make, which a heartbeat feels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from partita.group.notes import Note
from partita.protocol.primitives import Structure

Token: TypeAlias = object
"""Whom a reply is for. Opaque: the shell makes it, the coordinator hands it back exactly once."""


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


class Job(Protocol):
    """Work to be done beside the event loop (`partita.group.consumer_group.jobs`); it touches nothing that changes."""

    @property
    def group_id(self) -> str: ...

    def run(self) -> object:
        """The outcome, which goes back to `partita.group.coordinator.GroupCoordinator.job_done`."""


class Step(NamedTuple):
    """What one input led to. Append `records` as one batch (then `marker`); release `replies` once they are durable."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    notes: tuple[Note, ...] = ()
    producer: Producer | None = None
    marker: Marker | None = None
    jobs: tuple[Job, ...] = ()
    """To be run once the records are appended; each outcome is brought back."""


NOTHING = Step()


class Handover(NamedTuple):
    """What a shard that is unloaded in order tells whoever loads it next, besides its log."""

    silences: Mapping[tuple[str, str], int]
    """Of (group id, member id): for how many milliseconds nothing was heard of that member."""
    generations: Mapping[str, int]
    """Of group ids: the highest generation that a client may have been told, where the log does not say it."""


NO_HANDOVER = Handover({}, {})
