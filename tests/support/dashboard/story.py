"""A group's history as facts: three workers join, one is killed and comes back, another one is added."""

from __future__ import annotations

from partita.explain.facts import Assigned, Committed, Fact, Member, Partition, Sure, ToldCause
from partita.wording import What
from support.dashboard.world import START_MS

SECOND = 1_000
PARTITIONS: list[Partition] = [("orders", number) for number in range(6)]


def worker(name: str, *partitions: int, joined_ms: int | None = None) -> Member:
    """A worker that holds these partitions of orders."""
    return Member(
        f"{name}-5d0f6c1e-0000-4000-8000-000000000000", name, None, "/10.0.0.7", 10_000, 300_000, ("orders",),
        tuple(PARTITIONS[number] for number in partitions), joined_ms,
    )  # fmt: skip


def cause(what: What, name: str) -> ToldCause:
    """What the coordinator says of a worker."""
    return ToldCause(what, worker(name).member_id, None, name)


def generation(number: int, at_s: float, took_s: float, what: ToldCause, *members: Member) -> Assigned:
    """A complete rebalance `at_s` seconds after the start."""
    at_ms = START_MS + int(at_s * SECOND)
    began_ms = at_ms - int(took_s * SECOND)
    return Assigned(
        "workers", at_ms, Sure.TOLD, number, members, "range", members[0].member_id if members else None,
        at_ms - 60, began_ms, (what,), place=f"note {number}",
    )  # fmt: skip


def commits(name_by_partition: dict[int, tuple[float, float]]) -> list[Fact]:
    """A commit each second of each partition, from and to these seconds."""
    return [
        Committed("workers", START_MS + int(second * SECOND), PARTITIONS[number], int(second * 10))
        for number, (begin, end) in name_by_partition.items()
        for second in (begin, end)
    ]


def story() -> list[Fact]:
    """All of it, 150 seconds long. worker-3 is killed at 60 s; its session expires ten seconds later."""
    return [
        generation(1, 5, 3, cause(What.JOINED, "worker-1"), worker("worker-1", 0, 1, 2, 3, 4, 5)),
        generation(
            2, 20, 1.2, cause(What.JOINED, "worker-2"), worker("worker-1", 0, 1, 2), worker("worker-2", 3, 4, 5)
        ),
        generation(
            3, 32, 0.8, cause(What.JOINED, "worker-3"),
            worker("worker-1", 0, 1), worker("worker-2", 2, 3), worker("worker-3", 4, 5),
        ),
        *commits({number: (33, 60) for number in range(6)}),
        *commits({number: (61, 68) for number in range(4)}),
        generation(
            4, 72, 1.9, cause(What.EXPIRED, "worker-3"),
            worker("worker-1", 0, 1, 2), worker("worker-2", 3, 4, 5),
        ),
        *commits({number: (73, 110) for number in range(6)}),
        generation(
            5, 112, 0.5, cause(What.JOINED, "worker-3"),
            worker("worker-1", 0, 1), worker("worker-2", 2, 3), worker("worker-3", 4, 5),
        ),
        *commits({number: (113, 149) for number in range(6)}),
    ]  # fmt: skip
