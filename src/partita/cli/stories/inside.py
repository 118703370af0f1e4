"""The part of the demo's report about the protocol: the coordinator, one rebalance, records, three stories."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from partita.cli.groups.exchanges import TRACED, Step, chart, step_of
from partita.cli.groups.log_entries import read_entry
from partita.cli.stories import shown
from partita.demo.story import Inside
from partita.demo.worker import DESK
from partita.pictures.page import wide
from partita.play.player import Player
from partita.play.simulated import Simulator
from partita.play.text import read
from partita.wording import count

STEPS_MAX = 30
STORIES = ("static-restart", "commit-first", "polls")
_APIS = frozenset({"JoinGroup", "SyncGroup", "OffsetCommit"})
_STYLE = "<style>pre { overflow-x: auto; font: 13px/1.5 ui-monospace, monospace; } .chart svg { width: auto; }</style>"


def section(seen: Inside) -> str:
    """The HTML of the part."""
    steps = rebalance(seen.notes)
    kept = sorted([*seen.groups, *seen.offsets], key=lambda record: record.offset)
    records = "\n".join(read_entry(record).line() for record in kept)
    moves = seen.rebalances_by_move
    followed = f"{count(moves, 'rebalance')} followed" if moves else "no rebalance followed"
    parts = [
        f"{_STYLE}<h2>Inside the group</h2>",
        f"<p>The group's id belongs to partition {seen.partition} of the {seen.partitions} of"
        f" <code>__consumer_offsets</code>, so node {seen.node}, which led it, was the group's coordinator. At"
        f" {seen.moved_s:.1f} s node {seen.moved_to} was made its leader: members looked for the coordinator again, and"
        f" {followed}.</p>",
    ]
    if steps:
        parts.append(
            "<h3>One rebalance</h3><p class='note'>JoinGroup and SyncGroup of the members when Spark joined, and the"
            f" commits before.</p>{_drawn(chart(DESK, steps))}"
        )
    parts.append(f"<h3>The last records of the group in its log</h3><pre>{escape(records)}</pre>")
    parts += (f"<h3>{escape(title)}</h3>{content}" for title, content in map(_played, STORIES))
    return "".join(parts)


def rebalance(notes: Sequence[Mapping[str, Any]]) -> list[Step]:
    """The steps of the last rebalance in these notes: its joins, syncs, and what was committed until then."""
    ends = [note["wall_ms"] for note in notes if note["note"] == "Rebalanced" and note["group_id"] == DESK]
    begins = [note["wall_ms"] for note in notes if note["note"] == "RebalanceStarted" and note["group_id"] == DESK]
    if not ends or not begins:
        return []
    traced = (step_of(note) for note in notes if note["note"] in TRACED and note["group_id"] == DESK)
    near = (step for step in traced if begins[-1] - 500 <= step.wall_ms <= ends[-1] + 500)
    wanted = [step for step in near if step.api in _APIS or (step.is_answer and step.error != "NONE")]
    return wanted[-STEPS_MAX:]


def _played(name: str) -> tuple[str, str]:
    """A story of the package, played on the simulator: its title, and what happened."""
    text = (resources.files("partita.play") / "stories" / f"{name}.txt").read_text()
    (story,) = read(text)
    with contextlib.closing(Simulator.of([])) as stage:
        player, telling = Player(story, stage), shown.Telling(stage.began_wall_ms)
        for played in player.play():
            telling.add(played)
    lines = "\n".join(_lines(telling))
    drawn = chart(name, sorted(telling.steps, key=lambda step: step.wall_ms))
    more = f"<details><summary>Requests and answers</summary>{_drawn(drawn)}</details>"
    intro = f"<p class='note'>On the simulator: <code>partita play {name}</code>.</p>"
    return story.name, f"{intro}<pre>{escape(lines)}</pre>{more}"


def _lines(telling: shown.Telling) -> Iterator[str]:
    for played, _ in telling.parts:
        yield played.command.text
        yield from (f"{event.at_ms / 1000:9.3f}  {event.line}" for event in played.events)


def _drawn(picture: str) -> str:
    return f'<div class="chart">{wide(picture)}</div>'
