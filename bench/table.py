"""The table of speed: which rows there are, what each is measured against, and the table that `make bench` prints.

Pure: figures in, text out. docs/numbers.md holds the same rows, which tests/unit/test_bench.py compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

OURS = "partita"

Figures = Mapping[str, float]
"""What each one measured of a row: "partita", the peers by name, and the floor."""


def number(value: float) -> str:
    """Three digits that count, with thousands as k and millions as M."""
    for size, letter in ((1e6, " M"), (1e4, " k")):
        if abs(value) >= size:
            scaled = value / (1e6 if letter == " M" else 1e3)
            return f"{scaled:.3g}{letter}" if scaled < 100 else f"{scaled:.0f}{letter}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Goal:
    """What counts as met: its text, and the check, which gives None where a peer that it needs was left out."""

    text: str
    check: Callable[[Row, Figures], bool | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its name, the script that measures it, the unit, and whether less is better."""

    name: str
    script: str
    unit: str
    goals: tuple[Goal, ...]
    less_is_better: bool = False
    floor: str = ""
    """Who shows what this machine can do, mostly a program in C; empty where there is none."""
    also: tuple[str, ...] = ()
    """Figures that are printed as peers and are none: other ways of Partita itself."""

    def times(self, ours: float, other: float) -> float:
        """How many times as good as `other` ours is: above 1 we are better, whatever the unit."""
        return other / ours if self.less_is_better else ours / other

    def peers(self, figures: Figures) -> dict[str, float]:
        """The figures of others, without the floor."""
        return {who: value for who, value in figures.items() if who not in (OURS, self.floor, *self.also)}

    def best_peer(self, figures: Figures) -> tuple[str, float] | None:
        """The peer with the best figure."""
        peers = self.peers(figures)
        best = min if self.less_is_better else max
        return best(peers.items(), key=lambda item: item[1]) if peers else None


def at_most(limit: float) -> Goal:
    """A figure of ours up to the limit."""
    return Goal(f"<= {number(limit)}", lambda row, figures: figures[OURS] <= limit)


def at_least(limit: float) -> Goal:
    """A figure of ours from the limit on."""
    return Goal(f">= {number(limit)}", lambda row, figures: figures[OURS] >= limit)


def of_floor(share: float) -> Goal:
    """So much of what the floor reaches."""

    def check(row: Row, figures: Figures) -> bool | None:
        return row.times(figures[OURS], figures[row.floor]) >= share if row.floor in figures else None

    return Goal(f">= {share:g}x the floor", check)


def of_peer(peer: str, share: float = 1.0) -> Goal:
    """At least so many times as good as this peer."""

    def check(row: Row, figures: Figures) -> bool | None:
        return row.times(figures[OURS], figures[peer]) >= share if peer in figures else None

    return Goal(f">= {share:g}x {peer}", check)


def within(peer: str, times: float = 1.0) -> Goal:
    """Where less is better: at most so many times what this peer takes."""
    return Goal(
        f"<= {times:g}x {peer}",
        lambda row, figures: figures[OURS] <= times * figures[peer] if peer in figures else None,
    )


def of_best(share: float = 1.0) -> Goal:
    """At least so many times as good as the best peer."""

    def check(row: Row, figures: Figures) -> bool | None:
        best = row.best_peer(figures)
        return None if best is None else row.times(figures[OURS], best[1]) >= share

    return Goal(f">= {share:g}x the best peer", check)


KAFKA, KFAKE, NOIDA = "Apache Kafka", "kfake", "noida-db"
CONFLUENT, AIOKAFKA, KAFKA_PYTHON, KCAT, JAVA = "confluent-kafka", "aiokafka", "kafka-python", "kcat", "Java"
CONFLUENT_BATCH, TABLE = "confluent-kafka batch", "partita send_table"
C_ECHO, C_STORE, C_SERVE, C_WALK, C_PACK = "C echo", "C store", "C sendfile", "C walk", "C pack"

ROWS: tuple[Row, ...] = (
    Row("start, process", "start", "ms", (within("import asyncio", 1.5),), True, "C echo", also=("import asyncio",)),
    Row("start, in process", "start", "ms", (at_most(2),), True),
    Row("idle memory", "start", "MB", (at_most(30),), True, "C echo"),
    Row("heartbeats 100 x 1", "heartbeats", "1/CPU-s", (of_floor(0.75),), floor=C_ECHO),
    Row("heartbeats 1 x 200", "heartbeats", "1/CPU-s", (of_best(2),), floor=C_ECHO),
    Row("heartbeats 100 x 16", "heartbeats", "1/CPU-s", (of_best(2),), floor=C_ECHO),
    Row("100 members joined", "groups", "ms", (within(KAFKA), within(KFAKE, 1.1)), True, C_ECHO),
    Row("500 members joined", "groups", "ms", (within(KAFKA), within(KFAKE, 1.1)), True, C_ECHO),
    Row("one of 500 leaves", "groups", "ms", (within(KAFKA), within(KFAKE, 1.1)), True, C_ECHO),
    Row("100 joined, beating", "groups", "ms", (within(KAFKA), within(KFAKE, 1.1)), True),
    Row("500 joined, beating", "groups", "ms", (within(KAFKA), within(KFAKE, 1.1)), True),
    Row("one of 500 leaves, beating", "groups", "ms", (within(KAFKA), within(KFAKE, 1.1)), True),
    Row("848, 50 members", "convergence", "ms", (within(KAFKA, 1.02),), True),
    Row("848, 500 members", "convergence", "ms", (within(KAFKA, 1.02),), True),
    Row("848, one of 500 leaves", "convergence", "ms", (within(KAFKA, 1.02),), True),
    Row("produce 100 B", "produce_fetch", "MB/CPU-s", (of_floor(0.9), of_best()), floor=C_STORE),
    Row("produce 1 KB", "produce_fetch", "MB/CPU-s", (of_floor(0.9), of_best()), floor=C_STORE),
    Row("produce 100 B, memory", "produce_fetch", "MB/CPU-s", (of_best(),)),
    Row("produce 1 KB, memory", "produce_fetch", "MB/CPU-s", (of_best(),)),
    Row("fetch 1 MB", "produce_fetch", "MB/CPU-s", (of_peer(KAFKA),), floor=C_SERVE),
    Row("fetch 16 MB", "produce_fetch", "MB/CPU-s", (of_peer(KAFKA),), floor=C_SERVE),
    Row("100 B to Arrow", "consume", "1/CPU-s", (at_least(20e6),), floor=C_WALK),
    Row("100 B as records", "consume", "1/CPU-s", (at_least(3e6),), floor=C_WALK),
    Row("100 B to Arrow, elapsed", "consume", "1/s", (of_peer(CONFLUENT, 12),), floor=C_WALK),
    Row("1 KB to Arrow", "consume", "1/CPU-s", (of_peer(KCAT),), floor=C_WALK),
    Row("sticky, all new", "assignors", "ms", (within(JAVA, 2),), True),
    Row("sticky, one leaves", "assignors", "ms", (within(JAVA, 2),), True),
    Row("range", "assignors", "ms", (at_most(4),), True),
    Row("sent one by one", "send", "1/s", (of_peer(CONFLUENT),), floor=C_PACK, also=("partita asyncio",)),
    Row("sent one by one, CPU", "send", "1/CPU-s", (of_peer(CONFLUENT, 0.85),), also=("partita asyncio",)),
    Row("sent at once", "send", "1/CPU-s", (at_least(2e6),), also=(TABLE,)),
    Row("close after a fetch", "close", "ms", (at_most(10),), True),
    Row("a group in a test", "close", "ms", (at_most(8),), True),
    Row("first record, process", "client_costs", "CPU-ms", (at_most(200),), True),
    Row("1,000 partitions at rest", "client_costs", "% of a core", (at_most(0.4),), True),
    Row("TLS produce", "tls", "MB/CPU-s", (of_peer(KAFKA),)),
    Row("TLS fetch", "tls", "MB/CPU-s", (of_peer(KAFKA),)),
)  # fmt: skip

BY_NAME = {row.name: row for row in ROWS}


def is_met(row: Row, figures: Figures, rounds: Sequence[Figures] = ()) -> bool | None:
    """Whether every goal is met in every round; None if one cannot be judged and none is missed.

    A peer that was measured only once has that figure in every round.
    """
    if OURS not in figures:
        return None
    checks = [goal.check(row, {**figures, **each}) for each in rounds or (figures,) for goal in row.goals]
    return False if False in checks else None if None in checks else True


HEAD = ("what", "unit", "Partita", "peers in the same run", "times the best peer", "times the floor", "goal", "met")


def spread(rounds: Sequence[Figures]) -> str:
    """The least and the largest figure of ours in any round; empty where there was one round."""
    ours = [each[OURS] for each in rounds if OURS in each]
    return f" ({number(min(ours))} to {number(max(ours))})" if len(ours) > 1 else ""


def line(row: Row, figures: Figures, rounds: Sequence[Figures] = ()) -> tuple[str, ...]:
    """The cells of one row."""
    ours = figures.get(OURS)
    best = row.best_peer(figures)
    others = {**row.peers(figures), **{who: figures[who] for who in row.also if who in figures}}
    floor = figures.get(row.floor)
    met = {True: "yes", False: "**no**", None: "not judged"}[is_met(row, figures, rounds)]
    return (
        row.name,
        row.unit,
        "-" if ours is None else number(ours) + spread(rounds),
        ", ".join(f"{who} {number(value)}" for who, value in others.items()) or "-",
        "-" if best is None or ours is None else f"{row.times(ours, best[1]):.2f}",
        "-" if floor is None or ours is None else f"{row.times(ours, floor):.2f} ({row.floor} {number(floor)})",
        " and ".join(goal.text for goal in row.goals),
        met,
    )


def table(measured: Mapping[str, Figures], rounds: Mapping[str, Sequence[Figures]] | None = None) -> str:
    """The rows that were measured, as a Markdown table; with the rounds of those that have some."""
    lines = [HEAD, ("---",) * len(HEAD)]
    lines += [line(row, measured[row.name], (rounds or {}).get(row.name, ())) for row in ROWS if row.name in measured]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


SHORT = ("idle memory", "heartbeats 100 x 1", "produce 100 B", "fetch 16 MB", "100 B to Arrow", "sent one by one, CPU")
"""The rows that the README shows."""


def short_table(text: str) -> str:
    """The README's rows of a table: name, unit, and the figures of Partita and its peers."""
    lines = [line.strip("|").split("|")[:4] for line in text.splitlines()]
    shown = [cells for i, cells in enumerate(lines) if i < 2 or cells[0].strip() in SHORT]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in shown)


def chosen(words: Iterable[str]) -> list[Row]:
    """The rows that the words pick: by script or by a part of the row's name; all of them without a word.

    Raises ValueError for a word that picks none.
    """
    found: list[Row] = []
    words = list(words)
    for word in words:
        picked = [row for row in ROWS if word == row.script or word.lower() in row.name.lower()]
        if not picked:
            raise ValueError(f"{word}: no such row or script; there are {', '.join(BY_NAME)}")
        found += picked
    return [row for row in ROWS if row in found or not words]
