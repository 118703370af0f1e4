"""The plan of a simulation of groups: each run draws a few kinds of fault, their rates, and the shape of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from partita.sim.world.faults import EVERYWHERE, FaultPlan, draw_kinds, draw_rates
from partita.sim.world.world import Dice

KINDS = (
    *EVERYWHERE,
    "pause_client",
    "close_client",
    "twin_client",
    "crash_broker",
    "move_shard",
    "fail_append",
    "fill_disk",
    "add_partition",
    "elect_leader",
)


CLASSIC, CONSUMER, MIXED = PROTOCOLS = ("classic", "consumer", "mixed")


@dataclass(frozen=True)
class Plan(FaultPlan):
    """The whole configuration of a run, drawn from its seed and printed with it."""

    clients: int
    partitions: tuple[int, ...]
    assignors: tuple[str, ...]
    commit: str
    static: bool
    session_ms: int
    heartbeat_ms: int
    max_poll_ms: int
    max_poll_records: int
    work_ms: int
    callback_ms: int
    initial_delay_ms: int
    records_per_second: int
    delay_ms: int
    slow_up: bool
    slow_down: bool
    sync_ms: int
    load_ms: int
    cleans: bool
    join_version: int
    stranger_ms: int = 0
    """The mean milliseconds between two requests that say what is no longer true; 0: none come."""
    keeper_ms: int = 0
    """The mean milliseconds between two deeds of a client that keeps and deletes offsets by itself; 0: none."""
    retention_ms: int = 604_800_000
    """How long offsets of a group without members are kept."""
    protocol: str = CLASSIC
    """Protocol of the members: classic, consumer (KIP-848), or mixed."""
    changes_ms: tuple[int, ...] = ()
    """mixed: when the fleet begins to change over to the consumer protocol, and back; none: each process speaks one."""
    interval_ms: int = 1_000
    """The least time between two targets of a KIP-848 group."""
    server_assignor: str = "uniform"
    solve_ms: int = 0
    """How long the assignor of a KIP-848 group takes at most, beside the event loop; 0: a heartbeat waits for it."""

    @property
    def eager(self) -> bool:
        """Do members give up everything before they rejoin?"""
        return self.assignors[0] != "cooperative-sticky"

    def speaks(self, ms: int, dice: Dice) -> str:
        """The protocol of a process that starts at this virtual time."""
        if self.protocol != MIXED:
            return self.protocol
        if not self.changes_ms:
            return dice.choice((CLASSIC, CONSUMER))
        return CONSUMER if sum(ms >= change for change in self.changes_ms) % 2 else CLASSIC


def draw(dice: Dice) -> Plan:
    """A plan; about half of the runs have static members, some have cooperative assignors."""
    static = dice.chance(0.4)
    work_ms = dice.choice((0, 20, 200, 2_000))
    session_ms = dice.choice((6_000, 8_000, 10_000))
    return Plan(
        clients=dice.choice((1, 2, 2, 3, 3, 4, 6)),
        partitions=dice.choice(((1,), (3,), (4,), (2, 3), (7,))),
        assignors=dice.choice((("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",), ("range", "sticky"))),
        commit=dice.choice(("auto", "sync", "async", "done")),
        static=static,
        session_ms=session_ms,
        heartbeat_ms=dice.choice((1_000, 2_000)),
        max_poll_ms=dice.choice((8_000, 15_000)),
        max_poll_records=dice.choice((1, 5, 50)),
        work_ms=work_ms,
        callback_ms=dice.choice((0, 5, 500)),
        initial_delay_ms=dice.choice((0, 500, 3_000)),
        records_per_second=dice.choice((1, 5, 20)),
        delay_ms=dice.choice((1, 5, 50)),
        slow_up=dice.chance(0.1),
        slow_down=dice.chance(0.1),
        sync_ms=dice.choice((0, 0, 5, 100, 1_000)),
        load_ms=dice.choice((0, 10, 1_000)),
        cleans=dice.chance(0.5),
        join_version=dice.choice((9, 9, 9, 8, 7, 6, 5) if static else (9, 9, 9, 5, 4, 3, 2)),
        faults=draw_rates(dice, draw_kinds(dice, KINDS), (3_000, 10_000, 30_000)),
        stranger_ms=dice.choice((0, 500, 3_000)),
        keeper_ms=dice.choice((0, 0, 300, 1_000)),
        retention_ms=dice.choice((604_800_000, 8_000, 20_000)),
    )


def with_protocol(plan: Plan, protocol: str, dice: Dice) -> Plan:
    """The plan with members of another protocol; one for the classic protocol stays as it is."""
    if protocol == CLASSIC:
        return plan
    changes = dice.choice(((), (20_000,), (0, 30_000), (15_000, 45_000)))
    return replace(
        plan,
        protocol=protocol,
        changes_ms=changes if protocol == MIXED else (),
        interval_ms=dice.choice((0, 500, 1_000)),
        server_assignor=dice.choice(("uniform", "uniform", "range")),
        solve_ms=dice.choice((0, 0, 50, 3_000)),
    )
