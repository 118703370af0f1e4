"""Requests and answers of a traced group, as lines and as a sequence chart. Pure.

Made from the notes GroupRequest and GroupAnswer of a Partita broker, and MemberGone for the ends of sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Any

from partita.wording import What, printable

TRACED = frozenset({"GroupRequest", "GroupAnswer"})
EVENTS = frozenset({"MemberGone"})
"""Events of the coordinator that a chart shows between requests and answers."""
_TOP, _MARGIN, _LANE, _LETTER, _LINE, _ROW = 76, 92, 330, 6.2, 15, 30
_SHORT = {"PreparingRebalance": "Preparing", "CompletingRebalance": "Completing"}
_PHASES = {
    "Empty": "idle", "Dead": "idle", "PreparingRebalance": "preparing", "Assigning": "preparing",
    "CompletingRebalance": "completing", "Reconciling": "completing", "Stable": "stable",
}  # fmt: skip
_UUID = re.compile(r"-[0-9a-f]{8}-[0-9a-f-]{27}")
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2937; paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
.small { fill: #4b5563 } .head { font-weight: 600 } .title { font: 600 15px system-ui, sans-serif }
line { stroke: #6b7280 } .life { stroke-dasharray: 3 4 }
line.bad { stroke: #b42318; stroke-width: 1.6 } text.bad { fill: #b42318 }
.silence { fill: #b42318; opacity: .16 } .idle { fill: #cbd5e1 } .preparing { fill: #f59e0b }
.completing { fill: #60a5fa } .stable { fill: #34a853 } svg { background: #ffffff }
@media (prefers-color-scheme: dark) {
  svg { background: #111827 } text { fill: #e5e7eb; stroke: #111827 } .small { fill: #9ca3af }
  line.bad { stroke: #f97066 } text.bad { fill: #f97066 } .silence { fill: #f97066 } .idle { fill: #475569 }
}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One request or answer: when, who, its name, and for an answer the error and the state of the group after it.

    `contents` are the lists that the message brings, for a chart. A step without an exchange is an event: `client` is
    the member that it is about.
    """

    wall_ms: int
    exchange: int
    is_answer: bool
    client: str
    api: str
    text: str
    error: str
    state_after: str
    contents: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Clients by the member ids that the step shows to be theirs."""


def step_of(note: Mapping[str, Any]) -> Step:
    """Return the step of a GroupRequest, GroupAnswer or MemberGone note."""
    if note["note"] in EVENTS:
        cause = note["cause"]
        text = f"{cause['client_id']}: {cause['what']}"
        return Step(note["wall_ms"], 0, False, cause["client_id"], note["note"], text, "", "")
    is_answer = note["note"] == "GroupAnswer"
    names = (
        "member_id", "group_instance_id", "generation", "member_epoch", "subscribed_topic_names",
        "subscribed_topic_regex", "owned", "protocol_name", "leader", "members", "assignments", "assignment", "node_id",
        "status", "reason",
    )  # fmt: skip
    facts = [f"{_named(name)} {_listed(note[name])}" for name in names if name in note]
    version = "" if is_answer else f" v{note['version']}"
    member_id = note.get("member_id", "")
    return Step(
        note["wall_ms"], note["exchange"], is_answer, note["client_id"], note["api"],
        f"{note['api']}{version}" + (f": {', '.join(facts)}" if facts else ""),
        note.get("error", ""), note.get("state_after", ""), tuple(_contents(note)),
        {member_id: note["client_id"]} if member_id else {},
    )  # fmt: skip


def _named(field_name: str) -> str:
    return field_name.removesuffix("_name").removesuffix("_id").removesuffix("_topic_names").replace("_", " ")


def _listed(value: Any) -> str:
    return (" ".join(value) or "none") if isinstance(value, list) else str(value)


def _contents(note: Mapping[str, Any]) -> Iterator[str]:
    """The lines below an arrow: what the message is about."""
    if note.get("topics"):
        yield f"topics {_listed(note['topics'])}; protocols {_listed(note['protocols'])}"
    for name in ("generation", "member_epoch", "subscribed_topic_names", "subscribed_topic_regex", "owned"):
        if name in note and note[name] != -1:
            yield f"{_named(name)} {_listed(note[name])}"
    if "leader" in note:
        yield f"leader {note['leader']}"
    if "joined" in note:
        yield f"members {', '.join(note['joined'])}"
    for member_id, share in note.get("shares", {}).items():
        yield f"{member_id}: {'a format of its own' if share is None else _listed(share)}"
    if note.get("offsets"):
        yield f"offsets {', '.join(note['offsets'])}"
    for name in ("share", "assignment", "status"):
        if note.get(name) is not None:
            yield f"{name} {_listed(note[name])}"
    if "node_id" in note:
        yield f"node {note['node_id']}"
    if "reason" in note:
        yield f"reason: {note['reason']}"


def line(step: Step, began_ms: int) -> str:
    """Return one line: seconds since `began_ms`, the exchange's number, direction, name, and the state after it."""
    head = f"{(step.wall_ms - began_ms) / 1000:9.3f}  {step.exchange or '':4}"
    if not step.exchange:
        return f"{head}  {step.text}"
    if not step.is_answer:
        return f"{head}  {step.client} -> {step.text}"
    return f"{head}  {step.client} <- {step.text}  {step.error}  [{step.state_after}]"


# -- chart -------------------------------------------------------------------------------------------------------------


def chart(group_id: str, steps: Sequence[Step], title: str = "") -> str:
    """A sequence chart as SVG: a lane for each client, and the coordinator with the phases of the group as a bar.

    Below an arrow stands what its message brings; a member whose session ends has a shade over its silence.
    """
    clients = list(dict.fromkeys(step.client for step in steps))
    lanes = {client: _MARGIN + _LANE * place for place, client in enumerate(clients)}
    coordinator = _MARGIN + _LANE * len(clients)
    names = {member_id: client for step in steps for member_id, client in step.names.items()}
    rows = [_Row(step, _texts(step, names)) for step in steps]
    y = _TOP
    for row in rows:
        row.y = y + 18
        y += _ROW + _LINE * len(row.lines)
    width, height = coordinator + 130, y + 12
    shown = title or f"group {printable(group_id)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{_safe(shown)}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#6b7280"/></marker></defs>',
        f'<text x="12" y="24" class="title">{_safe(shown)}</text>',
    ]
    for name, x in [*lanes.items(), ("coordinator", coordinator)]:
        parts.append(f'<text x="{x}" y="54" text-anchor="middle" class="head">{_safe(name)}</text>')
        parts.append(f'<line class="life" x1="{x}" y1="62" x2="{x}" y2="{height - 8}"/>')
    parts += _silences(rows, lanes)
    parts += _phases(rows, coordinator, height - 8)
    began = steps[0].wall_ms if steps else 0
    for row in rows:
        parts += _drawn(row, lanes[row.step.client], coordinator, began)
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass
class _Row:
    """A step, the lines below its arrow, and where the arrow is."""

    step: Step
    lines: list[str]
    y: int = 0


def _texts(step: Step, names: Mapping[str, str]) -> list[str]:
    """The contents with members by their names, wrapped to the lane."""
    found = []
    for text in step.contents:
        for member_id, client in names.items():
            text = text.replace(member_id, client)
        found += wrap(_UUID.sub("-\u2026", printable(text)), int((_LANE - 30) / _LETTER))
    return found


def _silences(rows: Iterable[_Row], lanes: Mapping[str, int]) -> Iterator[str]:
    """From the last sign of a member to the end of its session."""
    last: dict[str, int] = {}
    for row in rows:
        client = row.step.client
        if row.step.text.endswith(What.EXPIRED):
            x, since = lanes[client], last.get(client, 62)
            yield f'<rect class="silence" x="{x - 9}" y="{since}" width="18" height="{row.y - since}"/>'
        last[client] = row.y


def _phases(rows: Iterable[_Row], x: int, bottom: int) -> Iterator[str]:
    """The states of the group as a bar, each named where it begins."""
    state, since = "", 62
    for row in [*rows, None]:
        after = "" if row is None else row.step.state_after
        if row is not None and (not after or after == state):
            continue
        until = bottom if row is None else row.y
        if state:
            style = _PHASES.get(state, "idle")
            yield f'<rect class="{style}" x="{x - 5}" y="{since}" width="10" height="{until - since}"/>'
            yield f'<text x="{x + 12}" y="{since + 4}" class="small">{_safe(_SHORT.get(state, state))}</text>'
        state, since = after, until


def _drawn(row: _Row, client: int, coordinator: int, began_ms: int) -> Iterator[str]:
    step, y = row.step, row.y
    yield f'<text x="12" y="{y + 4}" class="small">{(step.wall_ms - began_ms) / 1000:.3f} s</text>'
    if not step.exchange:
        yield f'<text x="{client}" y="{y + 5}" text-anchor="middle" class="bad head">\u2715</text>'
        yield f'<text x="{client + 14}" y="{y + 4}" class="bad">{_safe(step.text)}</text>'
        return
    start, end = (coordinator - 6, client) if step.is_answer else (client, coordinator - 6)
    is_bad = step.is_answer and step.error != "NONE"
    style = ' class="bad"' if is_bad else ""
    name = step.text.partition(":")[0]
    label = f"{name} {step.error}" if is_bad else f"{name} answered" if step.is_answer else name
    yield f'<line{style} x1="{start}" y1="{y}" x2="{end}" y2="{y}" marker-end="url(#tip)"/>'
    yield f'<text{style} x="{client + 14}" y="{y - 5}"><title>{_safe(step.text)}</title>{_safe(label)}</text>'
    for number, text in enumerate(row.lines):
        yield f'<text x="{client + 14}" y="{y + 14 + _LINE * number}" class="small">{_safe(text)}</text>'


def _safe(text: str) -> str:
    return escape(printable(text))
