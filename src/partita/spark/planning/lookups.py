"""What planning needs to ask of a cluster, as a protocol, so that the plan can be tested without one.

`broker_link.ClusterLookups` asks real brokers; the engine simulator has a log in memory. All calls block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from partita.spark.options import TopicSelection
from partita.spark.planning.commits import Committed
from partita.spark.planning.starts import ClusterView
from partita.spark.positions import TopicPartition


class CommitRefused(Exception):
    """The group did not take the offsets; the message says why and what to do."""


class Lookups(Protocol):
    """Questions to the cluster. Errors that a retry did not cure are raised."""

    def view(self, selection: TopicSelection, attempt: int) -> ClusterView:
        """The selected topics that exist, with earliest and latest offsets. `attempt` > 0: wait a little first."""
        ...

    def at_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each timestamp; None where there is none."""
        ...

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where each leader epoch ended; partitions for which the cluster cannot tell are left out."""
        ...

    def record_bytes(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """The average size of a record from these offsets on."""
        ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        """What the group has committed; partitions without are left out."""
        ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Commit as a group without members. Raises CommitRefused."""
        ...
