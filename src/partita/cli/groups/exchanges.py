"""Requests and answers of a traced group, as lines and as a sequence chart. Pure.

Made from the notes GroupRequest and GroupAnswer of a Partita broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from partita.wording import printable

TRACED = frozenset({"GroupRequest", "GroupAnswer"})
_ROW, _LANE, _TOP, _MARGIN = 26, 260, 64, 110
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2937 } .small { fill: #4b5563 } .head { font-weight: 600 }
line { stroke: #6b7280 } .life { stroke-dasharray: 3 4 }
line.bad { stroke: #b42318 } text.bad { fill: #b42318 }
svg { background: #ffffff }
@media (prefers-color-scheme: dark) {
  svg { background: #111827 } text { fill: #e5e7eb } .small { fill: #9ca3af }
  line.bad { stroke: #f97066 } text.bad { fill: #f97066 }
}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One request or answer: when, who, its name, and for an answer the error and the state of the group after it."""

    wall_ms: int
    exchange: int
    is_answer: bool
    client: str
    api: str
    text: str
    error: str
    state_after: str


def step_of(note: Mapping[str, Any]) -> Step:
    """Return the step of a GroupRequest or GroupAnswer note."""
    is_answer = note["note"] == "GroupAnswer"
    names = (
        "member_id", "group_instance_id", "generation", "protocol_name", "leader", "members", "assignments", "node_id",
        "reason",
    )  # fmt: skip
    facts = [f"{name.removesuffix('_name').removesuffix('_id')} {note[name]}" for name in names if name in note]
    version = "" if is_answer else f" v{note['version']}"
    return Step(
        note["wall_ms"], note["exchange"], is_answer, note["client_id"], note["api"],
        f"{note['api']}{version}" + (f": {', '.join(facts)}" if facts else ""),
        note.get("error", ""), note.get("state_after", ""),
    )  # fmt: skip


def line(step: Step, began_ms: int) -> str:
    """Return one line: seconds since `began_ms`, the exchange's number, direction, name, and the state after it."""
    head = f"{(step.wall_ms - began_ms) / 1000:9.3f}  {step.exchange:4}"
    if not step.is_answer:
        return f"{head}  {step.client} -> {step.text}"
    return f"{head}  {step.client} <- {step.text}  {step.error}  [{step.state_after}]"


def chart(group_id: str, steps: Sequence[Step]) -> str:
    """A sequence chart as SVG: one lane for each client and one for the coordinator, one row for each step."""
    clients = list(dict.fromkeys(step.client for step in steps))
    places = {client: _MARGIN + _LANE * place for place, client in enumerate(clients)}
    coordinator = _MARGIN + _LANE * len(clients)
    width, height = coordinator + _MARGIN + 150, _TOP + _ROW * (len(steps) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="Requests of group {_safe(group_id)}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#6b7280"/></marker></defs>',
        f'<text x="12" y="20" class="head">group {_safe(group_id)}</text>',
    ]
    for name, x in [*places.items(), ("coordinator", coordinator)]:
        parts.append(f'<text x="{x}" y="44" text-anchor="middle" class="head">{_safe(name)}</text>')
        parts.append(f'<line class="life" x1="{x}" y1="52" x2="{x}" y2="{height - 8}"/>')
    began = steps[0].wall_ms if steps else 0
    for row, step in enumerate(steps):
        parts += _arrow(step, places[step.client], coordinator, _TOP + _ROW * row + _ROW // 2, began)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arrow(step: Step, client: int, coordinator: int, y: int, began_ms: int) -> list[str]:
    start, end = (coordinator, client) if step.is_answer else (client, coordinator)
    is_bad = step.is_answer and step.error != "NONE"
    style = ' class="bad"' if is_bad else ""
    label = _short(f"{step.text} {step.error}" if is_bad else step.text, coordinator - client)
    parts = [
        f'<text x="12" y="{y + 4}" class="small">{(step.wall_ms - began_ms) / 1000:.3f} s</text>',
        f'<line{style} x1="{start}" y1="{y}" x2="{end}" y2="{y}" marker-end="url(#tip)"/>',
        f'<text{style} x="{(start + end) // 2}" y="{y - 4}" text-anchor="middle"><title>{_safe(step.text)}</title>'
        f"{_safe(label)}</text>",
    ]
    if step.state_after:
        parts.append(f'<text x="{coordinator + 10}" y="{y + 4}" class="small">{_safe(step.state_after)}</text>')
    return parts


def _short(text: str, width: int) -> str:
    fits = max(8, (width - 20) // 6)
    return text if len(text) <= fits else text[: fits - 1] + "\u2026"


def _safe(text: str) -> str:
    return escape(printable(text))
