"""Draws the figures of docs/the-system.md and of docs/work-queues.md into docs/figures; `--check` only compares.

The states and their moves come from the coordinator's own table. The charts of the scenarios come from running the
page's programs and tracing their requests (`--scenes`); they are not compared byte by byte, as times differ.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from partita.cli.groups.exchanges import Step, chart
from partita.consumer.reactions import REACTIONS, Reaction
from partita.group.classic.join import JOIN, JOIN_GUARDS, JoinCase
from partita.group.classic.rebalance import ALLOWED_MOVES
from partita.group.state.model import GroupState
from partita.share.partition.model import MOVES, RecordState

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES = DOCS / "figures"
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2937 } .head { font-weight: 600 }
.small { font-size: 12px; fill: #4b5563 }
rect { fill: #eef2f7; stroke: #64748b; rx: 6 } rect.mine { fill: #e3f0e6 }
rect.room { fill: none; stroke-dasharray: 5 4 }
path { fill: none; stroke: #64748b; stroke-width: 1.4 } path.back { stroke-dasharray: 5 4 } svg { background: #ffffff }
@media (prefers-color-scheme: dark) {
  svg { background: #111827 } text { fill: #e5e7eb } .small { fill: #9ca3af } rect { fill: #1f2937; stroke: #94a3b8 }
  rect.mine { fill: #1d3a2a } rect.room { fill: none } path { stroke: #94a3b8 }
}
"""
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" style="fill: #64748b; stroke: none"/></marker></defs>'
)
_BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```python\n(.*?)```", re.S)

PLACES = {
    GroupState.EMPTY: (40, 130),
    GroupState.PREPARING: (330, 130),
    GroupState.COMPLETING: (660, 130),
    GroupState.STABLE: (660, 290),
    GroupState.DEAD: (40, 290),
}
WIDE, HIGH = 170, 44
WHY = {
    (GroupState.EMPTY, GroupState.PREPARING): (["a member joins"], "M210 144 H324", 267, 136),
    (GroupState.PREPARING, GroupState.EMPTY): (["no member is left"], "M330 164 H216", 271, 182),
    (GroupState.PREPARING, GroupState.COMPLETING): (["all have joined,", "or time is up"], "M500 144 H654", 578, 120),
    (GroupState.COMPLETING, GroupState.PREPARING): (["join, leave, silence"], "M660 164 H506", 582, 182),
    (GroupState.COMPLETING, GroupState.STABLE): (["the leader's SyncGroup"], "M760 174 V284", 770, 234),
    (GroupState.STABLE, GroupState.PREPARING): (
        ["join, leave, silence"],
        "M660 306 C520 296 440 260 420 180",
        552,
        250,
    ),
    (GroupState.EMPTY, GroupState.DEAD): (["deleted, or its", "offsets expired"], "M110 174 V284", 120, 226),
    (GroupState.PREPARING, GroupState.DEAD): (["shard", "unloaded"], "M370 174 C350 250 300 300 216 306", 290, 226),
    (GroupState.COMPLETING, GroupState.DEAD): ([], "M680 174 C620 360 350 352 216 320", 0, 0),
    (GroupState.STABLE, GroupState.DEAD): ([], "M720 334 C600 394 280 394 180 340", 0, 0),
}


def states() -> str:
    """The states of a classic group and the moves between them, from the coordinator's table."""
    moves = {(state, to) for state, allowed in ALLOWED_MOVES.items() for to in allowed if to is not state}
    assert moves == WHY.keys(), f"draw what the table says: {moves ^ WHY.keys()}"
    parts = [_box(*place, WIDE, HIGH, [state.value]) for state, place in PLACES.items()]
    for (_, to), (told, path, x, y) in WHY.items():
        parts.append(_arrow(path, is_back=to is GroupState.DEAD))
        parts += [
            f'<text x="{x}" y="{y + 15 * row}" class="small" text-anchor="{"start" if x in (120, 770) else "middle"}">'
            f"{escape(text)}</text>"
            for row, text in enumerate(told)
        ]
    parts.append('<text x="40" y="40" class="head">A group and its states</text>')
    parts.append('<text x="40" y="62" class="small">Dashed: the group is deleted, or its shard is unloaded.</text>')
    parts.append(
        '<text x="40" y="80" class="small">Loading puts a group straight into the state that the log tells.</text>'
    )
    return _svg(930, 390, "States of a consumer group and the moves between them", parts)


RECORD_PLACES = {
    RecordState.AVAILABLE: (40, 60),
    RecordState.ACQUIRED: (560, 60),
    RecordState.ACKNOWLEDGED: (560, 230),
    RecordState.ARCHIVED: (40, 230),
    RecordState.ARCHIVING: (300, 300),
}
RECORD_PATHS = {
    (RecordState.AVAILABLE, RecordState.ACQUIRED): ("M210 72 H554", 382, 64),
    (RecordState.ACQUIRED, RecordState.AVAILABLE): ("M560 96 H216", 388, 114),
    (RecordState.ACQUIRED, RecordState.ACKNOWLEDGED): ("M645 104 V224", 672, 168),
    (RecordState.ACQUIRED, RecordState.ARCHIVED): ("M580 104 C520 190 400 250 216 252", 440, 268),
    (RecordState.AVAILABLE, RecordState.ARCHIVED): ("M125 104 V224", 290, 168),
    (RecordState.ACQUIRED, RecordState.ARCHIVING): ("M580 104 C540 200 520 320 476 322", 630, 310),
    (RecordState.ARCHIVING, RecordState.ARCHIVED): ("M300 322 C240 322 200 300 170 280", 140, 334),
}


def share_record() -> str:
    """The states of a record in a share group and the moves between them, from the table of the share partition."""
    moves = {(state, to): why for state, following in MOVES.items() for to, why in following.items()}
    assert moves.keys() == RECORD_PATHS.keys(), f"draw what the table says: {moves.keys() ^ RECORD_PATHS.keys()}"
    final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
    parts = [
        _box(*place, WIDE, HIGH, [state.name], style="mine" if state in final else "")
        for state, place in RECORD_PLACES.items()
    ]
    for pair, (path, x, y) in RECORD_PATHS.items():
        parts.append(_arrow(path))
        parts.append(f'<text x="{x}" y="{y}" class="small" text-anchor="middle">{escape(moves[pair])}</text>')
    parts.append('<text x="40" y="34" class="head">A record of a share group</text>')
    return _svg(770, 360, "States of a record in a share group and the moves between them", parts)


STEPS: tuple[tuple[str, str], ...] = (
    ("poll(timeout)", "shell/delivery.py"),
    ("Raise what went wrong; call on_revoked, on_assigned, callbacks of commits", "shell/driver.py"),
    ("Records in the buffer? Hand out up to max_poll_records", "reading/fetch_buffer.py"),
    ("Before they are returned: ask for more, if nothing of that broker is left", "reading/fetching.py"),
    ("Nothing there? Wait for the I/O thread, or until time is up; then look again", "shell/waiting.py"),
)
MEANWHILE: tuple[tuple[str, str], ...] = (
    ("Find the coordinator", "coordinator.py"),
    ("Join, sync, heartbeats; commits that are due", "group/"),
    ("Positions: committed offset, else auto_offset_reset", "reading/positions.py"),
    ("Fetch: one request per broker, sessions", "reading/fetching.py"),
    ("Answers: check the position, keep the bytes", "reading/fetch_answer.py"),
)


def one_poll() -> str:
    """What one call of poll does, and what the I/O thread does meanwhile."""
    parts = [
        '<text x="30" y="40" class="head">Your thread: one call of poll</text>',
        '<text x="610" y="40" class="head">The consumer\'s I/O thread: all the time</text>',
    ]
    for row, (text, place) in enumerate(STEPS):
        y = 60 + row * 84
        parts.append(_box(30, y, 520, 56, [text, place], style="mine"))
        if row:
            parts.append(_arrow(f"M290 {y - 28} V{y - 4}"))
    for row, (text, place) in enumerate(MEANWHILE):
        y = 60 + row * 84
        parts.append(_box(610, y, 340, 56, [text, place]))
        if row:
            parts.append(_arrow(f"M780 {y - 28} V{y - 4}"))
    parts.append(_arrow("M610 424 C580 424 580 270 556 262"))
    parts.append(_arrow("M30 424 C6 400 6 200 24 172", is_back=True))
    parts.append('<text x="560" y="468" class="small">fetched bytes go into the buffer and wake waiting polls</text>')
    return _svg(990, 490, "One call of poll, and the I/O thread beside it", parts)


def threads() -> str:
    """The threads and connections of a consumer and of the broker it talks to."""
    parts = [
        '<text x="30" y="34" class="head">A program with a consumer</text>',
        '<text x="640" y="34" class="head">A broker process</text>',
        '<rect class="room" x="20" y="48" width="430" height="290"/>',
        '<rect class="room" x="630" y="48" width="340" height="290"/>',
        _box(40, 70, 180, 60, ["your thread", "poll, commit, your code"], style="mine"),
        _box(250, 70, 180, 60, ["the core", "rules, behind one lock"]),
        _box(250, 180, 180, 60, ["I/O thread", "one event loop"]),
        _arrow("M220 100 H244"), _arrow("M340 180 V136"),
        '<text x="40" y="170" class="small">Heartbeats and fetches</text>',
        '<text x="40" y="187" class="small">never wait for your code.</text>',
        _box(650, 70, 300, 44, ["connection: frames in, answers in order"]),
        _box(650, 130, 140, 50, ["partition logs", "produce, fetch"]),
        _box(810, 130, 140, 50, ["shards of groups", "the coordinator"]),
        _box(650, 200, 300, 44, ["one event loop, all nodes"]),
        _box(650, 264, 300, 50, ["upkeep threads", "sync, compaction, retention"]),
        _arrow("M430 195 C480 195 490 86 644 86"), _arrow("M430 220 C560 220 580 102 644 102"),
        '<text x="460" y="78" class="small">one connection per broker</text>',
        '<text x="460" y="250" class="small">one more for the group:</text>',
        '<text x="460" y="267" class="small">a fetch that waits holds</text>',
        '<text x="460" y="284" class="small">up no heartbeat</text>',
    ]  # fmt: skip
    return _svg(990, 360, "Threads and connections of a consumer and a broker", parts)


BRANCHES = {
    "no member id": (JoinCase.NEEDS_ID, JoinCase.NEW, JoinCase.RETURNING),
    "an id that was issued|not used before": (JoinCase.PENDING,),
    "the id of a member": (JoinCase.LEADER, JoinCase.CHANGED, JoinCase.UNCHANGED),
}
REQUESTS = {
    "FindCoordinator": ("1 Find the coordinator", "the answer names a node: connect to it"),
    "JoinGroup": ("2 Join", "after commit and on_revoked; the answer says who leads"),
    "SyncGroup": ("3 Sync", "the leader has assigned; the answer is this member's share"),
    "OffsetFetch": ("4 After the join", "on_assigned; committed offsets become positions"),
    "Heartbeat": ("5 Stay", "all the time; an error in its answer begins a rebalance"),
}
LINE = 19


def _label(x: int, y: int, text: str, style: str = "") -> str:
    return f'<text x="{x}" y="{y}"{f" class={chr(34)}{style}{chr(34)}" if style else ""}>{escape(text)}</text>'


def join_branches() -> str:
    """The guards of JoinGroup, three branches by member id, and the verb of each case in each state."""
    states = list(JOIN)
    parts = [_label(20, 34, "The first that holds answers", "head")]
    parts.append(_label(620, 34, "Verb in each state of the group", "head"))
    for number, (guard, error) in enumerate(JOIN_GUARDS):
        parts.append(_label(20, 60 + LINE * 2 * number, guard.__name__.replace("_", " "), "small"))
        parts.append(_label(32, 60 + LINE * 2 * number + 16, error.name))
    places = {state: 620 + 145 * index for index, state in enumerate(states)}
    parts += [_label(x, 60, state.value, "small") for state, x in places.items()]
    y = 76
    for branch, cases in BRANCHES.items():
        middle = y + LINE * 2 * len(cases) // 2
        parts.append(_box(300, middle - 22, 160, 44, branch.split("|")))
        parts.append(_arrow(f"M274 {middle} H294"))
        for case in cases:
            parts += [_label(490, y + 24, case.name, "head"), _arrow(f"M460 {middle} L484 {y + 20}")]
            parts += [_label(x, y + 24, JOIN[state][case].__name__) for state, x in places.items()]
            y += LINE * 2
        y += 14
    return _svg(1_190, max(y, 70 + LINE * 2 * len(JOIN_GUARDS)), "The branches of JoinGroup", parts)


def client_flow() -> str:
    """A consumer's requests on its way into a group, and its reactions to each error."""
    parts = [_label(30, 30, "What a consumer asks", "head"), _label(440, 30, "and does about an answer", "head")]
    y, before = 48, 0
    for number, (api, (title, told)) in enumerate(REQUESTS.items()):
        lines = list(reactions(api))
        high = max(60, LINE * len(lines) + 10)
        parts.append(_box(30, y + high // 2 - 26, 370, 52, [f"{title}: {api}", told]))
        if number:
            parts.append(_arrow(f"M215 {before} V{y + high // 2 - 32}"))
        parts += [_label(440, y + 20 + LINE * row, line, "small") for row, line in enumerate(lines)]
        before = y + high // 2 + 26
        y += high + 16
    return _svg(1_080, y, "A consumer's way into a group", parts)


def reactions(api: str) -> Iterator[str]:
    """What the consumer does about the errors of an API, a line for each verb."""
    row = REACTIONS[api]
    verbs: dict[Reaction, list[str]] = {}
    for code, verb in row.named.items():
        verbs.setdefault(verb, []).append(code.name)
    for verb, names in verbs.items():
        yield f"{', '.join(names)}: {verb.value}"
    if row.retriable is row.final:
        yield f"other errors: {row.final.value}"
    else:
        yield f"other retriable errors: {row.retriable.value}"
        yield f"other errors: {row.final.value}"


def _svg(width: int, height: int, label: str, parts: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
    return "\n".join([f'{head}aria-label="{label}">', f"<style>{STYLE}</style>", TIP, *parts, "</svg>"]) + "\n"


def _box(x: int, y: int, wide: int, high: int, lines: Sequence[str], style: str = "") -> str:
    first = y + high // 2 + 5 - 9 * (len(lines) - 1)
    texts = "".join(
        f'<text x="{x + wide // 2}" y="{first + 18 * row}" text-anchor="middle"{" class=small" if row else ""}>'
        f"{escape(line)}</text>".replace("class=small", 'class="small"')
        for row, line in enumerate(lines)
    )
    kind = f' class="{style}"' if style else ""
    return f'<rect{kind} x="{x}" y="{y}" width="{wide}" height="{high}"/>{texts}'


def _arrow(path: str, *, is_back: bool = False) -> str:
    return f'<path{" class=" + chr(34) + "back" + chr(34) if is_back else ""} d="{path}" marker-end="url(#tip)"/>'


TITLES = {
    "first-member": "The first member of a group",
    "newcomer": "A consumer comes",
    "close": "A consumer closes",
    "crash": "A consumer crashes",
    "commit-first": "Offsets are reported before a rebalance",
}


def scene(name: str, steps: Sequence[Step]) -> str:
    """A chart of these steps."""
    return chart("G", steps, TITLES[name])


def scenes() -> dict[str, Sequence[Step]]:
    """Run the page's programs; return what they traced."""
    text = (DOCS / "the-system.md").read_text()
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in _BLOCK.finditer(text):
        if not block[1]:
            exec(compile(block[2], "docs/the-system.md", "exec"), namespace)
    found: dict[str, Sequence[Step]] = namespace["scenes"]
    return found


def main() -> int:
    """Draw, or with `--check` compare; with `--scenes` run the page and draw its scenes too."""
    drawn = {"group-states.svg": states(), "one-poll.svg": one_poll(), "threads.svg": threads()}
    drawn |= {
        "join-branches.svg": join_branches(),
        "client-flow.svg": client_flow(),
        "share-record.svg": share_record(),
    }
    if "--check" in sys.argv:
        stale = [name for name, text in drawn.items() if (FIGURES / name).read_text() != text]
        print("\n".join(f"docs/figures/{name} is stale" for name in stale))
        return int(bool(stale))
    if "--scenes" in sys.argv:
        drawn |= {f"scene-{name}.svg": scene(name, steps) for name, steps in scenes().items()}
    FIGURES.mkdir(exist_ok=True)
    for name, text in drawn.items():
        (FIGURES / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
