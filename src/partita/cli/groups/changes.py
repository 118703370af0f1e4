"""The changes of a group between two observations, for `partita groups watch`. Pure.

A Partita broker reports every rebalance with its cause (its notes). With any other broker the log of groups says why,
once a difference between two descriptions shows that it is worth a look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partita.explain import Account, explain
from partita.explain.facts import Assigned, Replaced
from partita.observe.kept import Kept
from partita.observe.note_facts import NoteReader
from partita.wording import count

SETTLED = ("Stable", "Empty", "Dead")
"""States in which a rebalance of a group is over."""
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


class LoggedChanges:
    """Rebalances from the log of groups, in the words of `partita groups why`; without it, the differences themselves.

    `explained` reads the accounts of a group; it is asked from a change of the group until its rebalance is over.
    """

    def __init__(self, explained: Callable[[str], Sequence[Account]]) -> None:
        self._explained = explained
        self._waiting: dict[str, list[News]] = {}
        self._shown_ms: dict[str, int] = {}

    def changes(self, before: Look | None, after: Look, wall_ms: int) -> list[News]:
        """Return the news of one group between two looks, the later one at `wall_ms`."""
        group = after.group_id
        since_ms = self._shown_ms.setdefault(group, wall_ms)
        seen = seen_changes(before, after, wall_ms)
        if not seen and group not in self._waiting:
            return []
        waiting = self._waiting.setdefault(group, [])
        waiting += seen
        accounts = self._explained(group)
        news = [News(one.ended_ms, group, _line(one)) for one in accounts if one.ended_ms > since_ms]
        if not news and accounts and after.state not in SETTLED:
            return []
        del self._waiting[group]
        self._shown_ms[group] = max([since_ms, *(one.wall_ms for one in news)])
        return news or waiting


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
