"""The faults of a simulation of streams groups, drawn from its seed, and the shape of the run."""

from __future__ import annotations

from dataclasses import dataclass

from partita.sim.world.faults import EVERYWHERE, FaultPlan, draw_kinds, draw_rates
from partita.sim.world.world import Dice

KINDS = (
    *EVERYWHERE,
    "close_client",
    "pause_client",
    "twin_client",
    "stray_client",
    "crash_broker",
    "move_shard",
    "fail_append",
    "fill_disk",
    "grow_topic",
    "delete_topic",
)
LARGE = 260
"""Partitions with which two subtopologies have more tasks than are assigned on the event loop."""


@dataclass(frozen=True)
class Plan(FaultPlan):
    """The whole configuration of a run, drawn from its seed and printed with it. Times are milliseconds."""

    members: int
    threads: int
    """Members of one process."""
    static: bool
    partitions: int
    is_uneven: bool
    """Whether the sources differ at first."""
    standbys: int
    session_ms: int
    rebalance_ms: int
    heartbeat_ms: int
    interval_ms: int
    """Least time between two targets."""
    initial_delay_ms: int
    revoke_ms: int
    """How long a member takes at most to give a task up."""
    misses: float
    """Share of answers that a member does not get."""
    solve_ms: int
    """How long a target takes at most that is computed beside the event loop."""
    load_ms: int
    cleans: bool
    delay_ms: int
    sync_ms: int


def draw(dice: Dice) -> Plan:
    """A plan; sessions are short beside the times of faults."""
    kinds = draw_kinds(dice, KINDS)
    session_ms = dice.choice((2_000, 6_000))
    return Plan(
        members=dice.choice((1, 2, 3, 5)),
        threads=dice.choice((1, 1, 2)),
        static=dice.chance(0.4),
        partitions=dice.choice((1, 2, 3, 5, 5, LARGE)),
        is_uneven=dice.chance(0.2),
        standbys=dice.choice((0, 1, 1, 2)),
        session_ms=session_ms,
        rebalance_ms=dice.choice((1_000, 5_000)),
        heartbeat_ms=dice.choice((200, 700)),
        interval_ms=dice.choice((0, 0, 1_000)),
        initial_delay_ms=dice.choice((0, 0, 1_500)),
        revoke_ms=dice.choice((0, 500, 2_000)),
        misses=dice.choice((0.0, 0.0, 0.1)),
        solve_ms=dice.choice((1, 300, 3_000)),
        load_ms=dice.choice((0, 0, 1_000)),
        cleans=dice.chance(0.5),
        delay_ms=dice.choice((1, 5, 50)),
        sync_ms=dice.choice((0, 0, 5, 100)),
        faults=draw_rates(dice, kinds, (1_500, 5_000, 15_000)),
    )
