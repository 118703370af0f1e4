"""Loading a coordinator's log: a million offset commits, and 10,000 groups of three members. CPU time, best of three.

What is replayed are batches as the broker writes them; afterwards the groups' deadlines run, as after an election.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from harness import left_out, report

from partita.group.config import GroupConfig
from partita.group.coordinator import GroupCoordinator
from partita.group.records.log_records import CommittedOffset, group_key, group_value, offset_key, offset_value
from partita.now import Now
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember
from partita.records.builder import build_batch

COMMITS = 1_000_000
GROUPS_WITH_OFFSETS, PARTITIONS = 1000, 100
GROUPS, MEMBERS = 10_000, 3
ROUNDS = 3
NOW_MS = 1_750_000_000_000


def commits() -> Iterator[bytes]:
    """Batches of commits: each group commits all its partitions again and again, ten times in all."""
    keys = [[offset_key(f"group-{g:03}", "topic", p) for p in range(PARTITIONS)] for g in range(GROUPS_WITH_OFFSETS)]
    for turn in range(COMMITS // (GROUPS_WITH_OFFSETS * PARTITIONS)):
        value = offset_value(CommittedOffset(turn * 1000, 5, "", NOW_MS, topic_id=b"the topic's uuid"))
        for group in keys:
            yield build_batch([(NOW_MS, key, value, ()) for key in group])


def groups() -> Iterator[bytes]:
    for number in range(GROUPS):
        members = [
            GroupMetadataValueMember(
                member_id=f"consumer-{number}-{m}-0b3a6c52-6a5c-4f6e-9d6c-0f3c8a1d2e4b", client_id=f"consumer-{m}",
                client_host="/127.0.0.1", rebalance_timeout=300_000, session_timeout=45_000,
                subscription=b"s" * 40, assignment=b"a" * 40,
            )
            for m in range(MEMBERS)
        ]  # fmt: skip
        value = GroupMetadataValue(
            protocol_type="consumer", generation=3, protocol="range", leader=members[0].member_id,
            current_state_timestamp=NOW_MS, members=members,
        )  # fmt: skip
        yield build_batch([(NOW_MS, group_key(f"group-{number}"), group_value(value), ())])


def load(batches: list[bytes]) -> tuple[float, GroupCoordinator]:
    """CPU seconds from nothing until requests could be answered."""
    coordinator = GroupCoordinator(GroupConfig(), lambda prefix: prefix)
    started = time.process_time()
    for batch in batches:
        coordinator.replay_batch(batch)
    coordinator.resume(Now(0, NOW_MS))
    return time.process_time() - started, coordinator


def measure(what: str, batches: list[bytes], groups_expected: int) -> None:
    seconds = []
    for _ in range(ROUNDS):
        took, coordinator = load(batches)
        assert len(coordinator.groups) == groups_expected, len(coordinator.groups)
        seconds.append(took)
    size_mb = sum(map(len, batches)) / 1e6
    report("replay", what=what, log_MB=size_mb, **{"CPU seconds": min(seconds), "worst": max(seconds)})


def main() -> None:
    measure(f"{COMMITS} offset commits", list(commits()), GROUPS_WITH_OFFSETS)
    measure(f"{GROUPS} groups of {MEMBERS} members", list(groups()), GROUPS)
    left_out("replay", "Apache Kafka", "needs a node restarted on a prepared log; not in this run")


if __name__ == "__main__":
    main()
