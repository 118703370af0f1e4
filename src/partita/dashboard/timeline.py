"""The timeline of a group as SVG: who read which partition when, hatches without a reader, lag below on the same axis.

Owners have a colour and a pattern, so that the picture can be read without colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from partita.dashboard.charts import nice_top
from partita.dashboard.words import number, span
from partita.observe.history import LagPoint

WIDTH, LEFT, RIGHT = 900, 96, 12
ROW, GAP, HEAD, AXIS, LAG = 22, 5, 30, 26, 74
LABEL_FROM = 46
"""A span of this width or more has its owner's name in it."""
LETTER = 6.9
"""How wide a letter of such a name is at most, nearly always."""
MARK_EVERY = 30
TICKS_MAX = 7
TICKS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800)
OWNERS = 8
"""Number of owners that look different; with more, looks repeat."""
_STROKES = (
    "", "M4 0V8", "M0 4H8", "M2 2h1v1h-1z", "M4 0V8M0 4H8", "M1 0V8M5 0V8", "M0 1H8M0 5H8", "M1 1h1v1h-1zM5 5h1v1h-1z",
)  # fmt: skip
"""None of them is slanted: a slanted hatch means that a partition is not read."""


@dataclass(frozen=True, slots=True)
class Span:
    """A row from one instant to another: read by `owner` (its number), or without a reader (None)."""

    from_ms: int
    to_ms: int
    owner: int | None
    title: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the picture."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A rebalance: its instant, its label such as g12, its link, and its headline."""

    at_ms: int
    label: str
    path: str
    title: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that the picture shows between two instants."""

    from_ms: int
    to_ms: int
    rows: tuple[Row, ...]
    marks: tuple[Mark, ...]
    owners: tuple[tuple[int, str], ...]
    """Those in the picture: the number that chooses the look, and the name."""
    lag: tuple[LagPoint, ...]


def clock(ms: int) -> str:
    """The time of day in UTC: 13:04:05."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S")


def stamp(ms: int) -> str:
    """The date and time in UTC: 2026-01-31 13:04:05 UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def draw(line: Timeline) -> Markup:
    """The picture. Every span, mark and gap has a title for the pointer and for screen readers."""
    rows_height = len(line.rows) * (ROW + GAP)
    lag_height = LAG if len(line.lag) > 1 else 0
    height = HEAD + rows_height + lag_height + AXIS
    parts = [
        Markup(
            '<svg class="timeline" viewBox="0 0 {} {}" role="img" data-from="{}" data-to="{}" data-left="{}" '
            'data-right="{}">'
            "<title>who read what, from {} to {} UTC</title>"
        ).format(
            WIDTH,
            height,
            line.from_ms,
            line.to_ms,
            LEFT / WIDTH,
            1 - RIGHT / WIDTH,
            clock(line.from_ms),
            clock(line.to_ms),
        ),
        _patterns(),
    ]
    for index, row in enumerate(line.rows):
        top = HEAD + index * (ROW + GAP)
        parts += [_span(line, span_, top) + _label(line, span_, row, top) for span_ in row.spans]
    parts += _marks(line, HEAD + rows_height + lag_height)
    parts.append(Markup('<g class="names"><rect class="under" width="{}" height="{}"/>').format(LEFT - 4, height))
    parts += [
        Markup('<text class="end" x="{}" y="{}">{}</text>').format(
            LEFT - 8, HEAD + index * (ROW + GAP) + 15, short(row.name)
        )
        for index, row in enumerate(line.rows)
    ]
    parts.append(Markup("</g>"))
    if lag_height:
        parts.append(_lag(line, HEAD + rows_height, lag_height - 10))
    parts += _axis(line, height)
    return Markup("").join([*parts, Markup("</svg>")])


def short(name: str, most: int = 14) -> str:
    """Return the end of a name, where partitions have their numbers."""
    return name if len(name) <= most else "\N{HORIZONTAL ELLIPSIS}" + name[1 - most :]


def x_of(line: Timeline, at_ms: float) -> float:
    """Return the x coordinate of an instant; those outside lie on the edge."""
    share = (at_ms - line.from_ms) / max(1, line.to_ms - line.from_ms)
    return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, share))


def _patterns() -> Markup:
    made = [
        Markup(
            '<pattern id="own{n}" width="8" height="8" patternUnits="userSpaceOnUse" class="o{n}">'
            '<rect class="base" width="8" height="8"/><path class="over" d="{path}"/></pattern>'
        ).format(n=n, path=_STROKES[n] or "M0 0")
        for n in range(OWNERS)
    ]
    nobody = Markup(
        '<pattern id="nobody" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="under" width="7" height="7"/><rect class="hatch" width="3" height="7"/></pattern>'
    )
    return Markup("<defs>{}{}</defs>").format(Markup("").join(made), nobody)


def _span(line: Timeline, one: Span, top: int) -> Markup:
    left, right = x_of(line, one.from_ms), x_of(line, one.to_ms)
    if one.to_ms < line.from_ms or one.from_ms > line.to_ms:
        return Markup("")
    width = max(1.5 if one.owner is None else 0.5, right - left)
    fill = "nobody" if one.owner is None else f"own{one.owner % OWNERS}"
    kind = "nobody" if one.owner is None else "owned"
    box = Markup(
        '<g><title>{}</title><rect class="{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="2" fill="url(#{})"/>'
    ).format(one.title, kind, left, top, width, ROW, fill)
    return box + Markup("</g>")


def _label(line: Timeline, one: Span, row: Row, top: int) -> Markup:
    """The owner's name, in the first stretch of the span that has room for it beside the row's gaps, else cut."""
    rooms = [room for room in _rooms(line, one, row) if room[1] - room[0] >= LABEL_FROM]
    if not one.label or not rooms:
        return Markup("")
    wanted = LETTER * len(one.label) + 12
    left, right = next((room for room in rooms if room[1] - room[0] >= wanted), max(rooms, key=lambda r: r[1] - r[0]))
    most = int((right - left - 12) / LETTER)
    label = one.label if len(one.label) <= most else one.label[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return Markup(
        '<g><title>{}</title><rect class="plate" x="{:.1f}" y="{}" width="{:.1f}" height="14" rx="3"/>'
        '<text class="label" x="{:.1f}" y="{}">{}</text></g>'
    ).format(one.title, left + 4, top + 4, min(right - left - 8, LETTER * len(label) + 8), left + 8, top + 15, label)


def _rooms(line: Timeline, one: Span, row: Row) -> list[tuple[float, float]]:
    """The stretches of a span, in pixels, that no gap of its row covers."""
    if one.to_ms < line.from_ms or one.from_ms > line.to_ms:
        return []
    rooms, left = [], x_of(line, one.from_ms)
    for gap in sorted((each for each in row.spans if each.owner is None), key=lambda each: each.from_ms):
        if gap.to_ms > one.from_ms and gap.from_ms < one.to_ms:
            rooms.append((left, x_of(line, gap.from_ms)))
            left = max(left, x_of(line, gap.to_ms))
    return [*rooms, (left, x_of(line, one.to_ms))]


def _marks(line: Timeline, bottom: int) -> list[Markup]:
    parts = []
    last = -1000.0
    for mark in line.marks:
        if not line.from_ms <= mark.at_ms <= line.to_ms:
            continue
        x = x_of(line, mark.at_ms)
        label = Markup("")
        if x - last >= MARK_EVERY:
            label = Markup('<text class="middle" x="{:.1f}" y="16">{}</text>').format(x, mark.label)
            last = x
        parts.append(
            Markup(
                '<a href="{}" class="mark"><title>{}</title><line x1="{:.1f}" x2="{:.1f}" y1="20" y2="{}"/>'
                '<circle cx="{:.1f}" cy="22" r="3.5"/>{}</a>'
            ).format(mark.path, mark.title, x, x, bottom, x, label)
        )
    return parts


def _lag(line: Timeline, top: int, height: int) -> Markup:
    most = nice_top(max(point.lag for point in line.lag))
    spots = [(x_of(line, point.at_ms), top + 8 + (height - 8) * (1 - point.lag / most)) for point in line.lag]
    base = top + height
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    return Markup(
        '<g class="lag"><title>lag in records, at most {most}</title><text class="end" x="{lx}" y="{ly}">lag</text>'
        '<text class="end small" x="{lx}" y="{ty}">{most}</text>'
        '<polygon class="area" points="{a:.1f},{base} {curve} {b:.1f},{base}"/>'
        '<polyline class="line" points="{curve}"/></g>'
    ).format(
        most=number(most),
        lx=LEFT - 8,
        ly=top + height,
        ty=top + 14,
        a=spots[0][0],
        b=spots[-1][0],
        base=base,
        curve=curve,
    )


def _axis(line: Timeline, height: int) -> list[Markup]:
    length = line.to_ms - line.from_ms
    every = next((s * 1000 for s in TICKS_S if s * 1000 * TICKS_MAX >= length), length)
    first = -(-line.from_ms // every) * every
    return [
        Markup('<text class="middle" x="{:.1f}" y="{}">{}</text>').format(x_of(line, at_ms), height - 6, clock(at_ms))
        for at_ms in range(first, line.to_ms + 1, every)
    ]


def gap_title(name: str, from_ms: int, to_ms: int | None) -> str:
    """Return the title of a hatched span."""
    if to_ms is None:
        return f"{name}: read by nobody since {clock(from_ms)}"
    return f"{name}: read by nobody for {span(to_ms - from_ms)}, from {clock(from_ms)}"
