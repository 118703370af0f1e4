"""The questions of planning to its own group, as a protocol, so that a plan can be tested without a group.

`partita.spark.cluster.group_members.GroupMembers` holds real memberships; the tests have a group in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from partita.spark.planning.lookups import Committed
from partita.spark.settings.positions import TopicPartition


@dataclass(frozen=True, slots=True)
class Holding:
    """The partitions that the group has given to this query, each with the number of its tenure.

    The number grows each time a partition is gained; the same number means that no other member had it in between.
    `is_settled` is false while a rebalance is under way: then nothing may be planned.
    """

    tenures: Mapping[TopicPartition, int] = field(default_factory=dict)
    generation: int = -1
    is_settled: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """A commit that the group refused. `is_fenced`: these partitions are no longer this query's."""

    partitions: frozenset[TopicPartition]
    reason: str
    is_fenced: bool = False


class Membership(Protocol):
    """This query in its group. Every call blocks. Heartbeats go on between the calls."""

    def take_part(self) -> Holding:
        """Give up revoked partitions, receive assigned ones, and return those held now."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> tuple[Refusal, ...]:
        """Commit for held partitions with this membership's epoch. Returns the refusals."""
        ...

    def leave(self) -> None:
        """Leave the group, so that its partitions go to others at once."""
        ...
