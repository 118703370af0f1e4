"""The questions of planning to a cluster, as a protocol, so that a plan can be tested without one.

`partita.spark.cluster.cluster_lookups.ClusterLookups` asks real brokers; the tests have a log in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from partita.spark.planning.starts import ClusterView
from partita.spark.settings.options import TopicSelection
from partita.spark.settings.positions import TopicPartition


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed offset of a group. `leader_epoch` is -1 when unknown."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class CommitRefused(Exception):
    """The group refused the offsets; the message gives the reason and the remedy.

    `lacks_right`: retrying is of no use until an administrator allows it.
    """

    def __init__(self, message: str, *, lacks_right: bool = False) -> None:
        super().__init__(message)
        self.lacks_right = lacks_right


class Lookups(Protocol):
    """Questions to the cluster. Every call blocks. Errors that a retry did not cure are raised."""

    def view(
        self, selection: TopicSelection, *, pause_ms: int = 0, news: Mapping[TopicPartition, int] | None = None
    ) -> ClusterView:
        """The selected topics that exist, with earliest and latest offsets, as they are after `pause_ms`.

        The pause ends early when a partition of `news` has a record at or after its offset.
        """
        ...

    def topic_ids(self, topics: Collection[str]) -> dict[str, bytes]:
        """Return the current ids of these topics, without those that the cluster does not show or has no ids for."""
        ...

    def topic_names(self) -> dict[bytes, str]:
        """Return the names of all topics by their ids."""
        ...

    def deleted(self, topics: Collection[str]) -> set[str]:
        """Return those of these topics that the cluster says do not exist. One it refuses to show may exist."""
        ...

    def at_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each timestamp (milliseconds); None where there is none."""
        ...

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where each leader epoch ended; partitions for which the cluster does not know it are left out."""
        ...

    def record_bytes(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """The average size in bytes of a record from these offsets on."""
        ...

    def record_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the timestamp (milliseconds) of the first record at or after each offset, if it can be found quickly.

        Raises nothing: partitions without an answer are left out.
        """
        ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Return the group's committed offsets; partitions without one are left out."""
        ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Commit for a group that has no members. Raises CommitRefused."""
        ...
