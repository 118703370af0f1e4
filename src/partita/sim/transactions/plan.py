"""The faults of a simulation of transactions, drawn from its seed, and the shape of the run."""

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
    "refuse_append",
    "jump_clock",
    "turn_clock_back",
    "jump_days",
    "compact",
    "delete_records",
    "delete_topic",
    "add_partition",
    "forge_marker",
    "change_level",
)


@dataclass(frozen=True)
class Plan(FaultPlan):
    """The whole configuration of a run, drawn from its seed and printed with it. Times are milliseconds."""

    writers: int
    ids: int
    """Transactional ids that the writers share; fewer than writers, so that they fence each other."""
    copiers: int
    group_protocol: str
    """Of the copiers' group: classic or consumer; none where each copier has its partition for itself."""
    readers: int
    level: int
    """Of the feature transaction.version."""
    old_clients: float
    """Share of clients that know nothing of transaction version 2."""
    records_max: int
    pause_ms: int
    linger_ms: int
    transaction_ms: int
    """The transactions' timeout."""
    delay_ms: int
    slow_up: bool
    slow_down: bool
    sync_ms: int
    marker_delay_ms: int
    marker_loss: float
    """Share of markers that are refused, or whose answers are lost."""
    first_epoch: int
    """The epoch that transactional ids begin with."""


def draw(dice: Dice) -> Plan:
    """A plan; most clusters are at transaction version 2, with clients of both kinds."""
    writers = dice.choice((1, 2, 3, 4, 5))
    kinds = draw_kinds(dice, KINDS)
    return Plan(
        writers=writers,
        ids=max(1, writers - dice.choice((0, 1, 2))),
        copiers=dice.choice((0, 1, 2)),
        group_protocol=dice.choice(("none", "classic", "consumer")),
        readers=dice.choice((1, 2)),
        level=dice.choice((2, 2, 2, 2, 1, 0)),
        old_clients=dice.choice((0.0, 0.3, 1.0)),
        records_max=dice.choice((1, 4, 8)),
        pause_ms=dice.choice((0, 20, 300)),
        linger_ms=dice.choice((0, 5)),
        transaction_ms=dice.choice((2_000, 6_000)),
        delay_ms=dice.choice((1, 5, 50)),
        slow_up=dice.chance(0.1),
        slow_down=dice.chance(0.1),
        sync_ms=dice.choice((0, 0, 5, 100)),
        marker_delay_ms=dice.choice((0, 5, 2_000)),
        marker_loss=dice.choice((0.0, 0.2)),
        first_epoch=dice.choice((-1, -1, 32_763)),
        faults=draw_rates(dice, kinds, (1_500, 5_000, 15_000)),
    )
