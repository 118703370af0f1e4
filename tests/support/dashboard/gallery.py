"""A cluster in which something of everything goes on, for pictures and for the browser."""

from __future__ import annotations

from dataclasses import replace

from partita.observe.seen import NodeSeen, TransactionSeen
from support.dashboard.story import PARTITIONS
from support.dashboard.world import FakeCluster, member

STEPS = 16
PAYMENTS = [("payments", number) for number in range(3)]


def gallery() -> FakeCluster:
    """Two and a half minutes: the workers of the story, a group that falls behind, an abandoned one, quiet ones."""
    world = FakeCluster()
    world.observed.nodes[2] = NodeSeen(2, "broker-2", 9092, "b", 53, world.now_ms)
    world.observed.controller_id = 1
    for step in range(STEPS):
        for number, key in enumerate(PARTITIONS):
            world.log(*key, 5_000 + step * 100 + number)
        for key in PAYMENTS:
            world.log(*key, 9_000 + step * 400)
        world.log("audit.log", 0, 1_200)
        _groups(world, step)
        world.look()
        world.pass_s(10)
    now = world.observed.seen_ms
    world.observed.transactions = {
        "billing-1": TransactionSeen("billing-1", 1, "Ongoing", 4_001, 3, 60_000, now - 2_300, (("payments", 0),)),
        "billing-2": TransactionSeen("billing-2", 2, "Ongoing", 4_002, 7, 60_000, now - 47_000, (("payments", 1),)),
        "export": TransactionSeen("export", 1, "CompleteCommit", 4_003, 1, 60_000, now - 900_000),
    }
    world.observed.topics["audit.log"] = replace(world.observed.topics["audit.log"], retention_ms=2 * 3_600_000)
    return world


def _groups(world: FakeCluster, step: int) -> None:
    dead = 6 <= step < 8
    done = {key: 5_000 + step * 100 - (30 if not dead or key[1] < 4 else 100 * (step - 5)) for key in PARTITIONS}
    alive = [member("worker-1", *PARTITIONS[:2]), member("worker-2", *PARTITIONS[2:4])]
    if not 7 <= step < 11:
        alive.append(member("worker-3", *PARTITIONS[4:]))
    else:
        alive = [member("worker-1", *PARTITIONS[:3]), member("worker-2", *PARTITIONS[3:])]
    world.group("workers", done, alive)
    slow = {key: 9_000 + step * (400 if key[1] else 150) for key in PAYMENTS}
    world.group("billing", slow, [member("till-1", *PAYMENTS[:1]), member("till-2", *PAYMENTS[1:], instance="till-2")])
    world.group("audit", {("audit.log", 0): 700})
    for number in range(1, 9):
        ends = {key: 9_000 + step * 400 - number for key in PAYMENTS}
        world.group(f"team-{number}.reports", ends, [member(f"report-{number}", *PAYMENTS)])
