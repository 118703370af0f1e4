"""Sticky assignment of 10,000 partitions to 1,000 members: from nothing, and after one member left. CPU time."""

from __future__ import annotations

import time

from harness import left_out, report

MEMBERS, PARTITIONS = 1000, 10_000


def main() -> None:
    from partita.assignors.interface import Subscription, TopicMetadata
    from partita.assignors.sticky import StickyAssignor
    from partita.assignors.user_data import encode_user_data

    topics = {f"topic-{i}": PARTITIONS // 10 for i in range(10)}
    metadata = TopicMetadata(topics)
    names = [f"member-{i:04}" for i in range(MEMBERS)]
    subscriptions = {name: Subscription(topics=tuple(topics)) for name in names}
    runs: list[tuple[float, float]] = []
    for _ in range(7):
        assignor = StickyAssignor()
        assigned = left = again = {}  # giving memory of the last round back is no part of the next
        started = time.process_time()
        assigned = assignor.assign(metadata, subscriptions)
        fresh = time.process_time() - started
        again = {
            name: Subscription(topics=tuple(topics), user_data=encode_user_data(assigned[name], 1))
            for name in names[1:]
        }
        started = time.process_time()
        left = assignor.assign(metadata, again)
        runs.append((fresh * 1000, (time.process_time() - started) * 1000))
        assert all(set(left[name]) >= set(assigned[name]) for name in names[1:]), "somebody lost a partition"
    report(
        "assignors", members=MEMBERS, partitions=PARTITIONS,
        **{"from nothing ms": sorted(r[0] for r in runs)[3], "one left ms": sorted(r[1] for r in runs)[3]},
    )  # fmt: skip
    left_out("assignors", "kafka-python", "about 19 s for the same, too slow for this run")


if __name__ == "__main__":
    main()
