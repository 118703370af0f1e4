"""What clients were told of their transactions, and what they read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

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
    """True: told committed; False: told aborted; None: told nothing."""
    is_commit_asked: bool = False

    @property
    def values(self) -> list[str]:
        """Of its records."""
        return [value for _, value in self.records]


@dataclass(slots=True, eq=False)
class Reading:
    """What one reader got of one partition, from where on and up to where."""

    life: str
    partition: TopicPartition
    start: int
    position: int
    read: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """Of one run."""

    transactions: list[Told] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    epochs: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """Of producer ids: the transactional id, the last epoch that a client was told, and which client."""
    fenced: list[tuple[str, bool]] = field(default_factory=list)
    """Values of producers that were fenced, and whether they were committed at that moment."""
    plain: list[tuple[TopicPartition, str]] = field(default_factory=list)
    """Records without a transaction that were acknowledged."""

    def begin(self, life: str, transactional_id: str) -> Told:
        """One more transaction."""
        told = Told(len(self.transactions), life, transactional_id)
        self.transactions.append(told)
        return told
