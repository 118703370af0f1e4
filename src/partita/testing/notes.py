"""A broker's notes as lines to read under a failing test."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partita.lazy import later

if TYPE_CHECKING:
    from partita.observe import note_facts
else:
    note_facts = later("partita.observe.note_facts")

_HEAD = frozenset({"held", "note", "seq", "wall_ms"})


def note_lines(notes: Iterable[Mapping[str, Any]], limit: int) -> Iterator[str]:
    """Yield one line per note, oldest first; only the last `limit`, and a line with the number of those before."""
    kept = list(notes)
    if len(kept) > limit:
        yield f"... {len(kept) - limit} earlier notes"
    for note in kept[-limit:]:
        seconds, ms = divmod(note["wall_ms"], 1000)
        at = f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{ms:03}"
        facts = "  ".join(f"{name}={_shown(value)}" for name, value in note.items() if name not in _HEAD)
        yield f"{at}  {note['note']}  {facts}".rstrip()


def account_lines(notes: Iterable[Mapping[str, Any]], limit: int) -> Iterator[str]:
    """Yield why groups rebalanced, one line per rebalance: the last `limit` of them, and advice about the last one."""
    accounts = note_facts.accounts_of_notes(notes)[-limit:]
    for account in accounts:
        seconds, ms = divmod(account.ended_ms, 1000)
        at = f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{ms:03}"
        number = f"{'epoch' if account.is_incremental else 'generation'} {account.generation}"
        yield f"{at}  group {_shown(account.group)}, {number}: {account.headline}"
    if accounts and accounts[-1].advice:
        yield f"              {accounts[-1].advice}"
    if accounts:
        yield ""


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value if value.isprintable() and value else repr(value)
    if isinstance(value, Mapping):
        who = value.get("group_instance_id") or value.get("client_id") or value.get("member_id")
        return f"{value['what']} ({who})" if who else str(value.get("what", dict(value)))
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)
