"""The changes of a group between two observations, for `partita groups watch`. Pure.

A Partita broker reports every rebalance with its cause (its notes). For any other broker only the difference between
two descriptions is visible, so the text says what changed, not why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from partita.explain import Account, explain
from partita.explain.facts import Assigned, Replaced
from partita.observe.kept import Kept
from partita.observe.note_facts import NoteReader
from partita.wording import count

REBALANCES_KEPT = 50
"""Rebalances kept for each group, to recognise repeated ones."""


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
    """Return the differences between two observations: members that joined or left, and a new state."""
    if before is None:
        return []
    came = [f"{client} joined" for member, client in after.members.items() if member not in before.members]
    went = [f"{client} is gone" for member, client in before.members.items() if member not in after.members]
    moved = [f"{before.state} -> {after.state}"] if before.state != after.state else []
    parts = [*came, *went, *moved]
    return [News(wall_ms, after.group_id, ", ".join(parts))] if parts else []


class ToldChanges:
    """Rebalances from a broker's notes, one line each, in the words of `partita groups why`."""

    def __init__(self) -> None:
        self._reader = NoteReader()
        self._kept = Kept(generations_max=REBALANCES_KEPT)

    def changes(self, notes: Iterable[Mapping[str, Any]]) -> list[News]:
        """Return the rebalances that end with these notes, which follow those of the last call."""
        touched: dict[str, int] = {}
        for note in notes:
            for fact in self._reader.read(note):
                self._kept.add(fact)
                if isinstance(fact, Assigned | Replaced):
                    touched.setdefault(fact.group, fact.at_ms)
        return [
            News(account.ended_ms, group, _line(account))
            for group, since_ms in touched.items()
            for account in explain(self._kept.of(group))
            if account.ended_ms >= since_ms
        ]


def _line(account: Account) -> str:
    number = f"{'epoch' if account.is_incremental else 'generation'} {account.generation}"
    took = ", ".join(f"{phase.name} {phase.ms} ms" for phase in account.phases if phase.name in ("join", "sync"))
    line = f"{number}, {count(len(account.members), 'member')}: {account.headline.removesuffix('.')}"
    return f"{line} ({took})" if took else line
