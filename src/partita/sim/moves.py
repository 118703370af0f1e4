"""Partition moves by rebalances: classic eager, classic cooperative and consumer protocol on one fault-free workload.

Four consumers share twelve partitions with Kafka's default timeouts. Then a fifth joins, one leaves, one crashes, or
all are restarted one after another. `table` counts the partitions that change their owner, those that an owner gives
up and gets back, and for how long they have no reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from partita.sim.clients.consumer import SimConsumer
from partita.sim.fault_plan import CLASSIC, CONSUMER, Plan, draw
from partita.sim.simulation import Simulation
from partita.sim.world.world import Dice, Trace

CLIENTS, PARTITIONS = 4, 12
_BEGINS_MS, _PAUSE_MS, _DOWN_MS, _ENDS_MS = 60_000, 20_000, 5_000, 120_000
"""When the deed begins; between two restarts; how long a restart takes; when the run ends (virtual time)."""
_OWNED = ("a", "r", "l")


@dataclass(slots=True)
class Moves:
    """Results of one deed. Times are in partition-milliseconds: one partition without a reader for a millisecond."""

    changed: int = 0
    """Partitions that got another owner, once for each time."""
    interrupted: int = 0
    """Partitions that an owner had to give up and got back, once for each time."""
    unread_ms: int = 0
    longest_ms: int = 0
    """The longest time that one partition was unread at a stretch."""


@dataclass
class _Ledger:
    """Owners of partitions according to the applications' callbacks."""

    owner: dict[str, str] = field(default_factory=dict)
    owned: dict[str, frozenset[str]] = field(default_factory=dict)
    free_since: dict[str, int] = field(default_factory=dict)

    def owns(self, ms: int, process: str, partitions: Iterable[str], moves: Moves) -> None:
        """The process has these partitions from now on, and no others."""
        now, before = frozenset(partitions), self.owned.get(process, frozenset())
        self.owned[process] = now
        for partition in sorted(before - now):
            self.free_since[partition] = ms
        for partition in sorted(now - before):
            since = self.free_since.pop(partition, ms)
            moves.unread_ms += ms - since
            moves.longest_ms = max(moves.longest_ms, ms - since)
            if partition in self.owner:
                moves.changed += self.owner[partition] != process
                moves.interrupted += self.owner[partition] == process
            self.owner[partition] = process


PROTOCOLS: dict[str, dict[str, object]] = {
    "classic, eager (`range`)": {"protocol": CLASSIC, "assignors": ("range",)},
    "classic, `cooperative-sticky`": {"protocol": CLASSIC, "assignors": ("cooperative-sticky",)},
    "consumer (`uniform`)": {"protocol": CONSUMER},
}
"""A compared variant: its readable name, and the settings of the plan."""


def _joins(simulation: Simulation) -> None:
    simulation.start(CLIENTS)


def _leaves(simulation: Simulation) -> None:
    _of(simulation, 1).close()
    simulation.replaces_closed = False


def _crashes(simulation: Simulation) -> None:
    client = _of(simulation, 1)
    simulation.world.saw("r", client.name, "nothing")
    client.kill(quietly=True)


def _restarts(simulation: Simulation) -> None:
    simulation.replaces_closed = False
    for number in range(CLIENTS):
        simulation.world.after(number * _PAUSE_MS, _restart, simulation, number)


def _restart(simulation: Simulation, number: int) -> None:
    _of(simulation, number).close()
    simulation.world.after(_DOWN_MS, simulation.start, number)


def _of(simulation: Simulation, number: int) -> SimConsumer:
    return next(c for c in simulation.clients if not c.is_over and c.name.startswith(f"c{number}."))


DEEDS: dict[str, Callable[[Simulation], None]] = {
    "a member joins": _joins,
    "a member leaves": _leaves,
    "a member crashes": _crashes,
    "rolling restart of all": _restarts,
}


def plan(of: dict[str, object]) -> Plan:
    """The shape of all runs: Kafka's defaults, a quiet network, no faults."""
    calm = replace(
        draw(Dice("moves")), clients=CLIENTS, partitions=(PARTITIONS,), commit="auto", static=False, session_ms=45_000,
        heartbeat_ms=3_000, max_poll_ms=300_000, max_poll_records=500, work_ms=0, callback_ms=0,
        initial_delay_ms=3_000, records_per_second=1, delay_ms=1, slow_up=False, slow_down=False, sync_ms=0, load_ms=0,
        cleans=False, join_version=9, faults=(), stranger_ms=0, keeper_ms=0, retention_ms=604_800_000,
    )  # fmt: skip
    spoken = replace(calm, **of)  # type: ignore[arg-type]  # fields of the plan
    return replace(spoken, heartbeat_ms=5_000) if spoken.protocol == CONSUMER else spoken


def measure(of: dict[str, object], deed: Callable[[Simulation], None]) -> Moves:
    """One run: settle, do it, and count until the group has settled again."""
    trace = Trace(keep_all=True)
    simulation = Simulation(1, plan(of), trace)
    simulation.is_producing = False
    simulation.world.run(_BEGINS_MS)
    deed(simulation)
    simulation.world.run(_BEGINS_MS + _ENDS_MS)
    ledger, moves = _Ledger(), Moves()
    for ms, _, name, what in trace.events_of(*_OWNED):
        partitions = () if what == "nothing" else what.split()
        ledger.owns(ms, name.partition(".")[0], partitions, moves if ms >= _BEGINS_MS else Moves())
    assert not ledger.free_since, f"nobody reads {sorted(ledger.free_since)} in the end"
    return moves


def table() -> Iterator[str]:
    """The comparison as a table in Markdown, one line at a time."""
    yield "| what happens | protocol | another owner | given up and got back | unread, in partition-seconds | longest |"
    yield "|---|---|---:|---:|---:|---:|"
    for what, deed in DEEDS.items():
        for protocol, of in PROTOCOLS.items():
            moves = measure(of, deed)
            unread, longest = f"{moves.unread_ms / 1000:.1f}", f"{moves.longest_ms / 1000:.1f} s"
            yield f"| {what} | {protocol} | {moves.changed} | {moves.interrupted} | {unread} | {longest} |"
