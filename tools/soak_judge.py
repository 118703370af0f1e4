"""The judge of the soak: who reads what, what was done and found, and every promise that was broken. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from support.clients.member import COPIES

EVENTS, FADING, KEYS = "events", "fading", "keys"
Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True, slots=True)
class Cast:
    """One group: its share of all members, and the clients that they take turns with."""

    group: str
    topic: str
    share: float
    clients: tuple[str, ...]
    assignor: str = ""


CASTS = (
    Cast("classic", EVENTS, 0.3, ("partita", "confluent-kafka", "partita/static", "confluent-kafka/static"), "range"),
    Cast("epochs", EVENTS, 0.3, (
        "partita/consumer", "confluent-kafka/consumer", "partita/consumer/static", "confluent-kafka/consumer/static",
    )),
    Cast("copy-readers", EVENTS + COPIES, 0.2, ("partita", "confluent-kafka"), "range"),
    Cast("copiers", EVENTS, 0.2, ("copier", "copier/static")),
)  # fmt: skip


@dataclass
class Ledger:
    """What the clients did and what they were answered. One thread writes each entry."""

    acknowledged: dict[str, dict[Place, bytes]] = field(default_factory=lambda: {EVENTS: {}, FADING: {}})
    keys: dict[bytes, bytes | None] = field(default_factory=dict)
    """The last acknowledged value of each key; None: a tombstone."""
    key_writes: int = 0
    unknown: set[bytes] = field(default_factory=set)
    """Values, or keys, whose producer gave up: they may be there or not."""
    polls: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class Found:
    """All that the logs hold at the end, as a read_committed reader sees them."""

    values: dict[str, dict[Place, bytes]]
    last: dict[bytes, bytes | None]
    """The last value of each key of the compacted topic."""
    key_records: int
    starts: dict[int, int]
    """Where the partitions of the fading topic begin."""


@dataclass
class Seen:
    """What the members of a group were handed: partition, offset, value; what cannot be explained; aborted attempts."""

    records: set[tuple[int, int, str]]
    again: int = 0
    unexplained: int = 0
    aborted: set[str] = field(default_factory=set)


def judge(ledger: Ledger, found: Found, seen: dict[str, Seen], *, is_long: bool) -> list[str]:
    """Every promise that was broken, in words."""
    events, copies = found.values[EVENTS], found.values[EVENTS + COPIES]
    aborted = seen["copiers"].aborted
    counts = {
        "acknowledged events are not in the log": _differ(ledger.acknowledged[EVENTS], events),
        "events are in the log more than once": _twice(events.values()),
        "events are in the log that no producer sent": sum(
            value not in ledger.unknown for place, value in events.items() if place not in ledger.acknowledged[EVENTS]
        ),
        "acknowledged records behind the log start of the fading topic are not there": _differ(
            {at: v for at, v in ledger.acknowledged[FADING].items() if at[1] >= found.starts[at[0]]},
            found.values[FADING],
        ),
        "keys have another value than the last acknowledged": sum(
            found.last.get(key) != value for key, value in ledger.keys.items() if key not in ledger.unknown
        ),
        **_copies(events, copies, aborted),
        **_readers(found, seen, aborted),
    }
    if is_long:
        counts["partitions of the fading topic kept everything"] = sum(not at for at in found.starts.values())
        counts["records of the compacted topic are too many"] = max(0, found.key_records - ledger.key_writes // 2)
    return [f"{count} {words}" for words, count in counts.items() if count]


def _copies(events: dict[Place, bytes], copies: dict[Place, bytes], aborted: set[str]) -> dict[str, int]:
    sources = Counter(value.partition(b"@")[0] for value in copies.values())
    return {
        "events were not copied": sum(value not in sources for value in events.values()),
        "events were copied more than once": sum(times > 1 for times in sources.values()),
        "copies are of no event": len(sources.keys() - set(events.values())),
        "aborted copies are visible": sum(v.decode().partition("@")[2] in aborted for v in copies.values()),
    }


def _readers(found: Found, seen: dict[str, Seen], aborted: set[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for cast in CASTS[:-1]:
        there = {(*place, value.decode()) for place, value in found.values[cast.topic].items()}
        read = seen[cast.group]
        counts[f"records were never seen by {cast.group}"] = len(there - read.records)
        counts[f"records were seen by {cast.group} that are not there"] = len(read.records - there)
        counts[f"aborted records were seen by {cast.group}"] = sum(
            v.partition("@")[2] in aborted for *_, v in read.records
        )
        counts[f"committed records came again to {cast.group}"] = read.unexplained
    return counts


def _differ(acknowledged: dict[Place, bytes], there: dict[Place, bytes]) -> int:
    return sum(there.get(place) != value for place, value in acknowledged.items())


def _twice(values: Iterable[bytes]) -> int:
    return sum(times > 1 for times in Counter(values).values())
