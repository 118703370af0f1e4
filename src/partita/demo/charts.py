"""Pictures as SVG text: who owned what, lag over time, delays. Pure;"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from partita.demo.story import LagSample, Rebalance, Tenure

WIDTH = 960
LEFT = 92
RIGHT = 24
MEMBER_COLOURS = ("#4269d0", "#e8a317", "#3ca951", "#a463f2", "#ff725c", "#6cc5b0")
GROUP_COLOURS = ("#4269d0", "#e4572e")


def text(x: float, y: float, content: str, anchor: str = "start", style: str = "label") -> str:
    """One SVG label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """One SVG line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def box(x: float, y: float, width: float, height: float, colour: str, title: str, radius: float = 2) -> str:
    """One SVG rectangle with a tooltip."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{radius}"'
        f' fill="{colour}"><title>{escape(title)}</title></rect>'
    )


def svg(height: float, parts: Iterable[str], label: str) -> str:
    """A whole picture."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5 x 10^n that cuts `span` into at most `most` pieces."""
    step = 1e-3
    while True:
        for factor in (1, 2, 5):
            if span <= step * factor * most:
                return step * factor
        step *= 10


def ticks(span: float, most: int) -> list[float]:
    """Round values up to `highest` for an axis."""
    step = round_step(span or 1, most)
    return [step * index for index in range(int(span / step + 1e-9) + 1)]


class TimeAxis:
    """Seconds since the start on a horizontal axis."""

    def __init__(self, end_s: float) -> None:
        self.end_s = max(end_s, 1.0)

    def x(self, at_s: float) -> float:
        """The place of a moment, in pixels."""
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(at_s / self.end_s, 0.0), 1.0)

    def draw(self, top: float, bottom: float) -> list[str]:
        """The grid and its labels."""
        parts = []
        for at_s in ticks(self.end_s, 10):
            parts += [line(self.x(at_s), top, self.x(at_s), bottom, "grid")]
            parts += [text(self.x(at_s), bottom + 18, f"{at_s:g} s", "middle", "tick")]
        return parts


def legend(entries: Sequence[tuple[str, str]], y: float) -> list[str]:
    """Coloured squares with names, in one row."""
    parts, x = [], float(LEFT)
    for name, colour in entries:
        parts += [box(x, y - 10, 12, 12, colour, name), text(x + 18, y, name)]
        x += 40 + 7.2 * len(name)
    return parts


def ownership(
    tenures: Sequence[Tenure], rebalances: Sequence[Rebalance], killed: tuple[str, float], end_s: float
) -> str:
    """One row a partition, coloured by the member that owned it; rebalances numbered, the kill marked."""
    members = sorted({t.member for t in tenures})
    colours = {name: MEMBER_COLOURS[i % len(MEMBER_COLOURS)] for i, name in enumerate(members)}
    partitions = sorted({t.partition for t in tenures})
    axis, top, row = TimeAxis(end_s), 62.0, 30.0
    bottom = top + row * len(partitions)
    parts = legend(list(colours.items()), 18) + axis.draw(top, bottom)
    for index, partition in enumerate(partitions):
        parts.append(text(LEFT - 12, top + row * index + 20, f"flights-{partition}", "end"))
    for t in tenures:
        y = top + row * partitions.index(t.partition) + 4
        title = f"{t.member} owned flights-{t.partition} from {t.from_s:.1f} s to {t.to_s:.1f} s"
        parts.append(box(axis.x(t.from_s), y, axis.x(t.to_s) - axis.x(t.from_s), row - 8, colours[t.member], title, 4))
    parts += _rebalance_marks(rebalances, axis, top, bottom)
    if killed[0]:
        x = axis.x(killed[1])
        parts += [
            line(x, top - 14, x, bottom, "kill"),
            text(x, top - 20, f"{killed[0]} killed", "middle", "kill-label"),
        ]
    return svg(bottom + 30, parts, "Which member owned which partition over time")


def _rebalance_marks(rebalances: Sequence[Rebalance], axis: TimeAxis, top: float, bottom: float) -> list[str]:
    parts, last = [], -100.0
    for mark in rebalances:
        x = axis.x(mark.at_s)
        parts.append(line(x, top - 4, x, bottom, "rebalance"))
        if x - last > 22:
            parts.append(text(x, top - 8, f"g{mark.generation}", "middle", "mark"))
            last = x
    return parts


def lag_over_time(samples: Sequence[LagSample], killed: tuple[str, float], end_s: float) -> str:
    """One line a group: records not yet committed."""
    groups = sorted({s.group for s in samples})
    highest = max((s.lag for s in samples), default=1) or 1
    axis, top, bottom = TimeAxis(end_s), 40.0, 300.0
    marks = ticks(highest, 5)
    scale = max(marks[-1], highest)
    parts = legend([(g, GROUP_COLOURS[i % 2]) for i, g in enumerate(groups)], 18) + axis.draw(top, bottom)
    for value in marks:
        y = bottom - (bottom - top) * value / scale
        parts += [line(LEFT, y, WIDTH - RIGHT, y, "grid"), text(LEFT - 10, y + 4, f"{value:,.0f}", "end", "tick")]
    for index, group in enumerate(groups):
        points = [(axis.x(s.at_s), bottom - (bottom - top) * s.lag / scale) for s in samples if s.group == group]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = GROUP_COLOURS[index % 2]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2"/>')
    if killed[0]:
        x = axis.x(killed[1])
        parts += [
            line(x, top - 6, x, bottom, "kill"),
            text(x + 6, top + 6, f"{killed[0]} killed", "start", "kill-label"),
        ]
    return svg(bottom + 30, parts, "Lag of both groups over time")


def delay_map(delays: Mapping[tuple[str, int], tuple[int, int]], names: Mapping[str, str]) -> str:
    """Carriers down, scheduled hours across; colour is the mean departure delay, flights in the tooltip."""
    hours = sorted({hour for _, hour in delays})
    carriers = sorted({carrier for carrier, _ in delays}, key=lambda c: -carrier_mean(delays, c))
    left, top, row = 260.0, 34.0, 24.0
    column = (WIDTH - left - 90) / max(len(hours), 1)
    parts = [text(left + column * i + column / 2, top - 8, f"{h}h", "middle", "tick") for i, h in enumerate(hours)]
    parts.append(text(WIDTH - 8, top - 8, "mean", "end", "tick"))
    for index, carrier in enumerate(carriers):
        y = top + row * index
        parts.append(text(left - 10, y + 16, f"{names.get(carrier, carrier)} ({carrier})", "end"))
        parts.append(text(WIDTH - 8, y + 16, f"{carrier_mean(delays, carrier):.1f} min", "end"))
        for position, hour in enumerate(hours):
            if cell := delays.get((carrier, hour)):
                mean = cell[1] / cell[0]
                title = f"{carrier} at {hour}h: {cell[0]:,} flights, mean delay {mean:.1f} min"
                parts.append(box(left + column * position + 1, y + 1, column - 2, row - 2, heat(mean), title, 2))
    return svg(top + row * len(carriers) + 8, parts, "Mean departure delay by carrier and scheduled hour")


def carrier_mean(delays: Mapping[tuple[str, int], tuple[int, int]], carrier: str) -> float:
    """The carrier's mean delay in minutes."""
    cells = [cell for (name, _), cell in delays.items() if name == carrier]
    return sum(cell[1] for cell in cells) / max(sum(cell[0] for cell in cells), 1)


def heat(minutes: float) -> str:
    """Pale for punctual, dark red for 40 minutes and more."""
    stops = ((255, 247, 236), (253, 212, 158), (252, 141, 89), (215, 48, 31), (127, 0, 0))
    place = min(max(minutes / 40, 0.0), 1.0) * (len(stops) - 1)
    index = min(int(place), len(stops) - 2)
    rest = place - index
    mixed = (round(a + (b - a) * rest) for a, b in zip(stops[index], stops[index + 1], strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
