"""The changes of a group between two observations, for `partita groups watch`. Pure.

A Partita broker reports every rebalance with its cause (its notes). For any other broker only the difference between
two descriptions is visible, so the text says what changed, not why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from partita.cli.terminal import count


@dataclass(frozen=True, slots=True)
class Look:
    """One group at one moment. `members` maps member id to client id; `lag` is None if nothing is committed."""

    group_id: str
    state: str
    members: Mapping[str, str]
    lag: int | None


@dataclass(frozen=True, slots=True)
class News:
    """One line of the history: the time in ms, the group, and what happened."""

    wall_ms: int
    group_id: str
    text: str


def seen_changes(before: Look | None, after: Look, wall_ms: int) -> list[News]:
    """What differs between two observations: members that joined or left, and a new state."""
    if before is None:
        return []
    came = [f"{client} joined" for member, client in after.members.items() if member not in before.members]
    went = [f"{client} left" for member, client in before.members.items() if member not in after.members]
    moved = [f"{before.state} -> {after.state}"] if before.state != after.state else []
    parts = [*came, *went, *moved]
    return [News(wall_ms, after.group_id, ", ".join(parts))] if parts else []


def told_changes(notes: Iterable[Mapping[str, Any]]) -> list[News]:
    """The completed rebalances among a broker's notes, with their causes and the duration of each phase."""
    found = []
    for note in notes:
        if note["note"] != "Rebalanced":
            continue
        causes = ", ".join(_cause(cause) for cause in note["causes"]) or "no cause given"
        took = f"join {note['join_phase_ms']} ms, sync {note['sync_phase_ms']} ms"
        text = f"generation {note['generation']}, {count(note['members'], 'member')}: {causes} ({took})"
        found.append(News(note["wall_ms"], note["group_id"], text))
    return found


def _cause(cause: Mapping[str, Any]) -> str:
    who = cause["group_instance_id"] or cause["client_id"] or cause["member_id"]
    return f"{who}: {cause['what']}" if who else str(cause["what"])
