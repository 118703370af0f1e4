"""Records the answers that clients got about their transactions, and the records they read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from partita.producer.delivery import Delivery
from partita.protocol.error_codes import ErrorCode

TopicPartition: TypeAlias = tuple[str, int]


@dataclass(slots=True, eq=False)
class Told:
    """One transaction as its producer knows it. Values are "<number>.<place>"."""

    number: int
    life: str
    transactional_id: str
    records: list[tuple[TopicPartition, str]] = field(default_factory=list)
    """In the order they were sent in."""
    offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """Of groups: what it commits."""
    producer: tuple[int, int] | None = None
    """Producer id and epoch at its begin."""
    outcome: bool | None = None
    """True: reported committed; False: reported aborted; None: no report."""
    is_commit_asked: bool = False
    ends_before: int = 0
    """How many ends the coordinator had decided when it began."""
    ends_asked: int | None = None
    """How many when its own end was first asked for."""

    @property
    def values(self) -> list[str]:
        """Of its records."""
        return [value for _, value in self.records]


@dataclass(slots=True, eq=False)
class Reading:
    """Records that one reader got from one partition, and their range of offsets."""

    life: str
    partition: TopicPartition
    start: int
    position: int
    read: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A record without a transaction, and the error that is due for it; NONE for one that the broker has to take."""

    life: str
    where: TopicPartition
    value: str
    refusal: ErrorCode
    delivery: Delivery


@dataclass(slots=True)
class Ledger:
    """Of one run."""

    transactions: list[Told] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    epochs: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """By producer id: the transactional id, the newest epoch that a client received, and that client."""
    fenced: list[tuple[str, bool]] = field(default_factory=list)
    """Values of producers that were fenced, and whether they were committed at that moment."""
    plain: list[tuple[TopicPartition, str]] = field(default_factory=list)
    """Records without a transaction that were acknowledged."""
    bursts: list[Sent] = field(default_factory=list)
    """In the order they were sent in."""
    ends: list[tuple[int, int]] = field(default_factory=list)
    """Producer id and epoch of each end that the coordinator decided, in their order."""
    unanswered: set[tuple[int, int]] = field(default_factory=set)
    """Producer ids and epochs of which a request to end a transaction got no answer."""

    def begin(self, life: str, transactional_id: str) -> Told:
        """One more transaction."""
        told = Told(len(self.transactions), life, transactional_id, ends_before=len(self.ends))
        self.transactions.append(told)
        return told

    def ask_end(self, told: Told, *, commit: bool) -> None:
        """The producer asks for the end of the transaction."""
        told.is_commit_asked |= commit
        if told.ends_asked is None:
            told.ends_asked = len(self.ends)

    def was_ended_by_another(self, told: Told) -> bool:
        """Whether a request to end an earlier transaction of this epoch came late, and ended this one.

        Before version 2 of transactions, which gives each of them an epoch of its own, no broker can tell. (KIP-890)
        """
        ends = self.ends[told.ends_before : told.ends_asked]
        return told.producer in self.unanswered and told.producer in ends
