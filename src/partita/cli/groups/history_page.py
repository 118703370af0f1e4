"""The history of a group as steps, and as one self-contained HTML page. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from partita.cli.records.formats import iso_time
from partita.demo.charts import WIDE, TimeAxis, box, legend, line, svg, text
from partita.demo.report import STYLE, table
from partita.demo.story import Tenure
from partita.group.records.read_back import LogRecord, group_records, name_of, owners_of
from partita.spark.reading.group_rows import Rebalances

ROW, TOP, LABEL_MAX, NAME_MAX = 30.0, 40.0, 12, 20
MEMBER_ID = re.compile(r"(.+)-([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Step:
    """One logged state of a group and what changed with it. `owners` maps topic-partition to the member's name."""

    group: str
    generation: int
    at_ms: int
    members: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    owners: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


def steps_of(records: Iterable[LogRecord]) -> list[Step]:
    """Every state of a classic group among these records, in their order; timestamps are in milliseconds."""
    rebalances, steps = Rebalances(), []
    for record in group_records(records):
        change = next(rebalances.rows(record), None)
        if record.value is None:
            continue
        names = tuple(sorted(name_of(member) for member in record.value.members))
        steps.append(
            Step(
                group=record.group,
                generation=record.value.generation,
                at_ms=record.place["logTimestamp"],
                members=names,
                added=names if change is None else tuple(change["added"]),
                removed=() if change is None else tuple(change["removed"]),
                moved=() if change is None else tuple(change["moved"]),
                owners={f"{topic}-{p}": name for (topic, p), name in sorted(owners_of(record.value).items())},
            )
        )
    return steps


def tenures_of(steps: Sequence[Step]) -> dict[str, list[Tenure]]:
    """Who held each partition from when to when, in seconds since the first step; neighbours are joined."""
    begin_ms, end_ms = steps[0].at_ms, max(steps[-1].at_ms, steps[0].at_ms + 1000)
    found: dict[str, list[Tenure]] = {}
    for i, step in enumerate(steps):
        until_ms = steps[i + 1].at_ms if i + 1 < len(steps) else end_ms + (end_ms - begin_ms) // 20
        from_s, to_s = (step.at_ms - begin_ms) / 1000, (until_ms - begin_ms) / 1000
        for partition, name in step.owners.items():
            held = found.setdefault(partition, [])
            if held and held[-1].member == name and held[-1].to_s == from_s:
                from_s_before = held.pop().from_s
                held.append(Tenure(name, 0, from_s_before, to_s))
            else:
                held.append(Tenure(name, 0, from_s, to_s))
    return found


def history_page(group: str, steps: Sequence[Step]) -> str:
    """The page: who held which partition over time, and one row per step."""
    rows = [
        (_time(s.at_ms), str(s.generation), *map(_names, (s.members, s.added, s.removed)), escape(", ".join(s.moved)))
        for s in steps
    ]  # fmt: skip
    head = ("time", "generation", "members", "added", "removed", "moved")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Group {escape(group)}</title><style>{STYLE}</style></head><body><h1>Group {escape(group)}</h1>"
        f'<p class="lead">{len(steps)} logged states from {iso_time(steps[0].at_ms)} to {iso_time(steps[-1].at_ms)}. '
        "Compaction of the log removes old ones, so the history may have gaps.</p>"
        f'<h2>Who held which partition</h2><div class="wide">{ownership_of(steps)}</div>'
        f'<h2>Step by step</h2><div class="wide">{table(head, rows, frozenset({1}))}</div></body></html>'
    )


def ownership_of(steps: Sequence[Step]) -> str:
    """One row per partition, coloured by the member that held it."""
    tenures = tenures_of(steps)
    members = sorted({tenure.member for some in tenures.values() for tenure in some})
    styles = {name: f"m{i % 6}" for i, name in enumerate(members)}
    names = {name: _short(name) for name in members}
    axis = TimeAxis(max((tenure.to_s for some in tenures.values() for tenure in some), default=1.0))
    bottom = TOP + ROW * len(tenures)
    parts = legend([(names[name], style) for name, style in styles.items()], 18) + axis.draw(TOP, bottom)
    marks = [(step.at_ms - steps[0].at_ms) / 1000 for step in steps]
    parts += [line(axis.x(at_s), TOP, axis.x(at_s), bottom, style="rebalance") for at_s in marks]
    for row, (partition, some) in enumerate(sorted(tenures.items(), key=_by_number)):
        y = TOP + ROW * row + 4
        shown = partition if len(partition) <= LABEL_MAX else "…" + partition[-LABEL_MAX + 1 :]
        parts.append(text(WIDE.left - 12, y + 16, shown, anchor="end"))
        for tenure in some:
            x, width = axis.x(tenure.from_s), axis.x(tenure.to_s) - axis.x(tenure.from_s)
            title = f"{tenure.member} held {partition} from {tenure.from_s:.1f} s to {tenure.to_s:.1f} s"
            parts.append(
                box(axis.x(tenure.from_s), y, width, ROW - 8, style=styles[tenure.member], title=title, radius=4)
            )
            if width > 8.4 * len(names[tenure.member]) + 16:
                parts.append(text(x + 8, y + 15.5, names[tenure.member], style="on-bar"))
    return svg(bottom + 30, parts, "Which member held which partition over time")


def _by_number(entry: tuple[str, object]) -> tuple[str, int]:
    topic, _, number = entry[0].rpartition("-")
    return topic, int(number)


def _short(name: str) -> str:
    """A name that fits. A member id is a client id and 36 random characters, the first of which tell members apart."""
    found = MEMBER_ID.fullmatch(name)
    return _cut(name) if found is None else f"{_cut(found[1])}-{found[2]}"


def _cut(name: str) -> str:
    return name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"


def _names(members: Sequence[str]) -> str:
    """Short names for a cell of the table; the full one appears under the mouse."""
    return ", ".join(f'<span title="{escape(name)}">{escape(_short(name))}</span>' for name in members)


def _time(at_ms: int) -> str:
    return f'<span style="white-space:nowrap">{iso_time(at_ms)}</span>'
