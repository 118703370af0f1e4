"""A played story as lines, as a table of who owned what, as JSON and as a page. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from partita.cli.groups.exchanges import EVENTS, TRACED, Step, chart, line, step_of
from partita.cli.groups.timeline import STYLE as TIMELINE_STYLE
from partita.cli.groups.timeline import both_widths
from partita.cli.terminal import table_lines
from partita.observe.note_facts import accounts_of_notes
from partita.pictures.page import STYLE, table, wide
from partita.play.player import Column, Played
from partita.play.stage import GROUP

COLUMNS_MAX = 12
"""So many of the last moments are in the table on a terminal."""
_STYLE = "pre { overflow-x: auto; font: 13px/1.5 ui-monospace, monospace; } .wide svg { width: auto; }"


@dataclass(slots=True)
class Telling:
    """The output of a story that is being played. Requests answered as the last of their kind are left out."""

    began_wall_ms: int
    notes: list[Mapping[str, Any]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    parts: list[tuple[Played, list[str]]] = field(default_factory=list)
    _asked: dict[int, Step] = field(default_factory=dict)
    _last: dict[tuple[str, str], tuple[str, str, str, str]] = field(default_factory=dict)

    def add(self, played: Played) -> list[str]:
        """One more sentence; return its lines."""
        timed = [(event.at_ms, f"{event.at_ms / 1000:9.3f}        {event.line}") for event in played.events]
        self.notes += played.notes
        for note in played.notes:
            if note["note"] in EVENTS and note["group_id"] == GROUP:
                self.steps.append(step_of(note))
            if note["note"] in TRACED:
                for step in self._news(step_of(note)):
                    self.steps.append(step)
                    timed.append((step.wall_ms - self.began_wall_ms, line(step, self.began_wall_ms)))
        lines = [found for _, found in sorted(timed, key=lambda each: each[0])]
        self.parts.append((played, lines))
        return lines

    def _news(self, step: Step) -> Iterator[Step]:
        """The request and the answer once both are known, if they differ from the last ones."""
        if not step.is_answer:
            self._asked[step.exchange] = step
            return
        asked = self._asked.pop(step.exchange, None)
        if asked is None:
            return
        kind, said = (step.client, step.api), (asked.text, step.text, step.error, step.state_after)
        if self._last.get(kind) != said and not (step.api == "Heartbeat" and step.error == "NONE"):
            yield from (asked, step)
        self._last[kind] = said


def owners(columns: Sequence[Column]) -> tuple[list[str], list[list[str]]]:
    """The table of who owned what: its head, and a row for each partition."""
    places = sorted({place for column in columns for place in column.owners})
    head = ["partition", *(f"{column.at_ms / 1000:.1f} s {column.deed}" for column in columns)]
    return head, [[str(place), *(column.owners.get(place, "-") for column in columns)] for place in places]


def owner_lines(columns: Sequence[Column]) -> list[str]:
    """The table as lines; the deeds stand above it, as they are long."""
    head, rows = owners(columns[-COLUMNS_MAX:])
    letters = [f"({number})" for number in range(1, len(head))]
    deeds = [f"  {letter} {deed}" for letter, deed in zip(letters, head[1:], strict=True)]
    return ["who owned what, after", *deeds, *(f"  {row}" for row in table_lines(["partition", *letters], rows))]


def causes(notes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why the group rebalanced, a line for each time."""
    found = [account for account in accounts_of_notes(notes) if account.group == GROUP]
    return [f"{'epoch' if one.is_incremental else 'generation'} {one.generation}: {one.headline}" for one in found]


def as_json(title: str, telling: Telling, columns: Sequence[Column], failed: str) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "story": title,
        "failed": failed or None,
        "sentences": [
            {"line": played.command.line, "text": played.command.text, "at_ms": played.at_ms,
             "events": [event.as_json() for event in played.events]}
            for played, _ in telling.parts
        ],
        "owners": [
            {"at_ms": column.at_ms, "after": column.deed, "owners": {str(p): who for p, who in column.owners.items()}}
            for column in columns
        ],
        "notes": telling.notes,
    }  # fmt: skip


def page(title: str, telling: Telling, columns: Sequence[Column], failed: str) -> str:
    """A page without scripts: timeline, table of owners, sequence chart, and the story line by line."""
    accounts = [account for account in accounts_of_notes(telling.notes) if account.group == GROUP]
    head, rows = owners(columns)
    listed = table([*map(escape, head)], [[*map(escape, row)] for row in rows])
    parts = [f"<h1>{escape(title)}</h1>"]
    if failed:
        parts.append(f'<p class="bad">{escape(failed)}</p>')
    if accounts:
        parts.append(f"<h2>Who read which partition</h2>{both_widths(accounts)}")
        parts.append("<ul>" + "".join(f"<li>{escape(cause)}</li>" for cause in causes(telling.notes)) + "</ul>")
    parts.append(f"<h2>Who owned what</h2>{listed}")
    if telling.steps:
        parts.append(
            f"<h2>Requests and answers</h2>{wide(chart(GROUP, sorted(telling.steps, key=lambda step: step.wall_ms)))}"
        )
    text = "\n".join(told for played, lines in telling.parts for told in (played.command.text, *lines))
    parts.append(f"<h2>Line by line</h2><pre>{escape(text)}</pre>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{TIMELINE_STYLE}{_STYLE}</style></head>"
        f"<body>{''.join(parts)}<footer><p>Made by <code>partita play</code>.</p></footer></body></html>"
    )
