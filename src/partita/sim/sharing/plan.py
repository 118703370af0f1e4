"""The faults of a simulation of share groups, drawn from its seed, and the shape of the run."""

from __future__ import annotations

from dataclasses import dataclass

from partita.sim.world.faults import EVERYWHERE, FaultPlan, draw_kinds, draw_rates
from partita.sim.world.world import Dice

KINDS = (
    *EVERYWHERE,
    "pause_client",
    "twin_client",
    "crash_broker",
    "move_states",
    "move_offsets",
    "move_data",
)


@dataclass(frozen=True)
class Plan(FaultPlan):
    """The whole configuration of a run, drawn from its seed and printed with it. Times are milliseconds."""

    members: int
    limit: int
    """How often a record is delivered."""
    locks: int
    """Most records of a partition in flight."""
    lock_ms: int
    records_max: int
    """Of one fetch."""
    is_exact: bool
    stalls: float
    """Share of records that a member keeps until its locks end."""
    gives_back: float
    rejects: float
    snapshot_every: int
    delay_ms: int
    sync_ms: int


def draw(dice: Dice) -> Plan:
    """A plan; locks are short beside the times of faults."""
    kinds = draw_kinds(dice, KINDS)
    return Plan(
        members=dice.choice((1, 2, 3, 5)),
        limit=dice.choice((2, 3, 5)),
        locks=dice.choice((100, 2_000)),
        lock_ms=dice.choice((1_000, 3_000)),
        records_max=dice.choice((1, 5, 500)),
        is_exact=dice.chance(0.5),
        stalls=dice.choice((0.0, 0.2)),
        gives_back=dice.choice((0.0, 0.3)),
        rejects=dice.choice((0.0, 0.2)),
        snapshot_every=dice.choice((0, 3, 500)),
        delay_ms=dice.choice((1, 5, 50)),
        sync_ms=dice.choice((0, 0, 5, 100)),
        faults=draw_rates(dice, kinds, (1_500, 5_000, 15_000)),
    )
