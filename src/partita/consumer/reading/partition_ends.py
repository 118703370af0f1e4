"""Partitions that the application has read to their ends, and the newly reached ends.

The end of a partition is its high watermark in the last answer, or the last stable offset under read_committed. It is
reached when the application's position is there: no fetched records of the partition are left.
(librdkafka: enable.partition.eof.)
"""

from __future__ import annotations

from partita.consumer.group.member import Member
from partita.consumer.partition_state import UNKNOWN
from partita.consumer.subscription import Subscription
from partita.offsets.topic_partition import TopicPartition


class PartitionEnds:
    """`are_reached` gives the present state, `take_news` the ends not reported yet."""

    def __init__(self, subscription: Subscription, *, read_committed: bool) -> None:
        self._subscription = subscription
        self._read_committed = read_committed

    def known(self) -> dict[TopicPartition, int]:
        """The end of every assigned partition for which it is known."""
        states = self._subscription.assignment.items()
        ends = ((tp, state.end(read_committed=self._read_committed)) for tp, state in states)
        return {tp: end for tp, end in ends if end != UNKNOWN}

    def are_reached(self, ends: dict[TopicPartition, int]) -> bool:
        """Does the application stand at or behind these ends in every assigned partition? False without partitions."""
        assigned = self._subscription.assignment
        return bool(assigned) and all(
            tp in ends and (offset := state.next_offset) is not None and offset >= ends[tp]
            for tp, state in assigned.items()
        )

    def take_news(self) -> dict[TopicPartition, int]:
        """Return the ends reached since the last call; a partition is reported again once its end has moved."""
        news = {}
        for tp, end in self.known().items():
            state = self._subscription.assignment[tp]
            offset = state.next_offset
            if offset is not None and offset >= end and state.told_end != end and not state.awaits_callback:
                news[tp] = state.told_end = end
        return news


class ReadToEnd:
    """Ends at which a loop stops: for each partition to the end that the loop saw first."""

    def __init__(self, ends: PartitionEnds, member: Member, subscription: Subscription) -> None:
        self._ends = ends
        self._member = member
        self._subscription = subscription
        self._goals: dict[TopicPartition, int] = {}

    def is_over(self) -> bool | None:
        """True when every assigned partition is read to its goal, else None.

        A member whose group gave it no partition is done, too.
        """
        return self._is_over() or None

    def _is_over(self) -> bool:
        self._goals = self._ends.known() | self._goals
        if not self._subscription.assignment:
            return self._subscription.is_group and self._member.has_final_share
        return self._ends.are_reached(self._goals)
