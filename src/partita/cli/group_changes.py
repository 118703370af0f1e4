"""What changed in a group between two looks: the news of `partita groups watch`. Pure;

A Partita broker tells every rebalance with its cause (its notes). Of any other broker only the difference between two
descriptions can be seen; then the news says what was seen, not why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Look:
    """One group at one moment: member id -> client id, and the summed lag (None: nothing committed)."""

    group_id: str
    state: str
    members: Mapping[str, str]
    lag: int | None


@dataclass(frozen=True, slots=True)
class News:
    """One line of the history: when, which group, what."""

    wall_ms: int
    group_id: str
    text: str


def seen_changes(before: Look | None, after: Look, wall_ms: int) -> list[News]:
    """What two looks tell: members that came or went, and a new state."""
    if before is None:
        return []
    came = [f"{client} joined" for member, client in after.members.items() if member not in before.members]
    went = [f"{client} gone" for member, client in before.members.items() if member not in after.members]
    moved = [f"{before.state} -> {after.state}"] if before.state != after.state else []
    parts = [*came, *went, *moved]
    return [News(wall_ms, after.group_id, ", ".join(parts))] if parts else []


def told_changes(notes: Iterable[Mapping[str, Any]]) -> list[News]:
    """The completed rebalances among a broker's notes, with their causes and how long each phase took."""
    found = []
    for note in notes:
        if note["note"] != "Rebalanced":
            continue
        causes = ", ".join(_cause(cause) for cause in note["causes"]) or "no cause told"
        took = f"join {note['join_phase_ms']} ms, sync {note['sync_phase_ms']} ms"
        text = f"generation {note['generation']}, {note['members']} members: {causes} ({took})"
        found.append(News(note["wall_ms"], note["group_id"], text))
    return found


def _cause(cause: Mapping[str, Any]) -> str:
    who = cause["group_instance_id"] or cause["client_id"] or cause["member_id"]
    return f"{who}: {cause['what']}" if who else str(cause["what"])
