"""10,000 partitions of ten topics for 1,000 members: sticky from nothing and after one left, and range. CPU time.

Java are Kafka's own classes, after their compiler has seen the same work sixty times.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import peers
from harness import ROUNDS, Medians, left_out, row, row_is_wanted, wanted
from table import JAVA, KAFKA_PYTHON, OURS

MEMBERS, PARTITIONS, TOPICS = 1000, 10_000, 10
EACH = 5
"""Assignments in a round."""
ROWS = ("sticky, all new", "sticky, one leaves", "range")
NAMES = [f"member-{i:04}" for i in range(MEMBERS)]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU milliseconds, and what the work returned."""
    began = time.process_time()
    result = work()
    return (time.process_time() - began) * 1000, result


def ours_of_range() -> list[float]:
    """Range alone, many times."""
    from partita.assignors.interface import Subscription, TopicMetadata
    from partita.assignors.range import RangeAssignor

    topics = {f"topic-{i}": PARTITIONS // TOPICS for i in range(TOPICS)}
    subscriptions = {name: Subscription(topics=tuple(topics)) for name in NAMES}
    runs = []
    for _ in range(ROUNDS * EACH):
        took, assigned = timed(partial(RangeAssignor().assign, TopicMetadata(topics), subscriptions))
        assert len(assigned) == MEMBERS
        runs.append(took)
    return runs


def ours_of_sticky() -> list[list[float]]:
    """Sticky from nothing, and after one left, many times."""
    from partita.assignors.interface import Subscription, TopicMetadata
    from partita.assignors.sticky import StickyAssignor
    from partita.assignors.user_data import encode_user_data

    topics = {f"topic-{i}": PARTITIONS // TOPICS for i in range(TOPICS)}
    metadata = TopicMetadata(topics)
    subscriptions = {name: Subscription(topics=tuple(topics)) for name in NAMES}
    runs = []
    for _ in range(ROUNDS * EACH):
        left = None  # giving memory of the last round back is no part of the next
        assignor = StickyAssignor()
        fresh, assigned = timed(partial(assignor.assign, metadata, subscriptions))
        again = {
            name: Subscription(topics=tuple(topics), user_data=encode_user_data(assigned[name], 1))
            for name in NAMES[1:]
        }
        leaving, left = timed(partial(assignor.assign, metadata, again))
        assert all(set(left[name]) >= set(assigned[name]) for name in NAMES[1:]), "somebody lost a partition"
        runs.append((fresh, leaving))
    return [[run[i] for run in runs] for i in range(2)]


def kafka_python() -> dict[str, float]:
    """Range, and sticky from nothing once, which takes many seconds."""
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    class Cluster:
        """All that its assignors ask of a cluster."""

        def topics(self) -> list[str]:
            return topics

        def partitions_for_topic(self, topic: str) -> set[int]:
            return set(range(PARTITIONS // TOPICS))

    topics = [f"topic-{i}" for i in range(TOPICS)]
    figures = {}
    for name, assignor in (("range", RangePartitionAssignor()), ("sticky, all new", StickyPartitionAssignor())):
        metadata = assignor.metadata(topics)
        members = [SimpleNamespace(member_id=n, group_instance_id=None, metadata=metadata) for n in NAMES]
        figures[name], assigned = timed(partial(assignor.assign, Cluster(), members))
        assert len(assigned) == MEMBERS
    return figures


def java() -> list[float]:
    """Medians of the rows. Raises PeerUnavailable."""
    command = peers.java_clients("assign", str(MEMBERS), str(PARTITIONS), str(TOPICS))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(figure) for figure in done.stdout.split()]


def main() -> None:
    ours = ours_of_sticky() if any(map(row_is_wanted, ROWS[:2])) else []
    figures = {name: Medians({OURS: runs}, EACH) for name, runs in zip(ROWS, ours, strict=False)}
    if row_is_wanted(ROWS[2]):
        figures[ROWS[2]] = Medians({OURS: ours_of_range()}, EACH)
    if wanted(JAVA):
        try:
            for name, value in zip(ROWS, java(), strict=True):
                if name in figures:
                    figures[name][JAVA] = value
        except peers.PeerUnavailable as reason:
            left_out("assignors", JAVA, str(reason))
    if wanted(KAFKA_PYTHON):
        try:
            for name, value in kafka_python().items():
                if name in figures:
                    figures[name][KAFKA_PYTHON] = value
        except ImportError as reason:
            left_out("assignors", KAFKA_PYTHON, str(reason))
    for name, found in figures.items():
        row(name, found)


if __name__ == "__main__":
    main()
