"""Pictures as SVG text: who owned what, lag over time, delays.

Colours are classes of the page's style sheet, so that a picture follows the light or dark scheme. Lines are drawn
first, bars over them, labels last and in bands of their own: no label lies over a line. No difference is told by
colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from partita.demo.story import LagSample, Rebalance, Tenure

WIDTH = 960
LEFT = 92
RIGHT = 24
HEAT_STEPS = 8
HEAT_TOP_MINUTES = 40
FEW_FLIGHTS = 50
"""Cells of fewer flights than this are drawn small: their mean says little."""
HATCH = (
    '<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="7" height="7" class="gap-back"/><rect width="2.4" height="7" class="gap-line"/></pattern>'
)


def text(x: float, y: float, content: str, *, anchor: str = "start", style: str = "label") -> str:
    """One SVG label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, style: str) -> str:
    """One SVG line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def box(x: float, y: float, width: float, height: float, *, style: str, title: str, radius: float = 2) -> str:
    """One SVG rectangle with a tooltip."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{radius}"'
        f' class="{style}"><title>{escape(title)}</title></rect>'
    )


def svg(height: float, parts: Iterable[str], label: str) -> str:
    """A whole picture."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}"'
        f' xmlns="http://www.w3.org/2000/svg"><defs>{HATCH}</defs>{"".join(parts)}</svg>'
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
    """Round values from 0 up to `span` for an axis."""
    step = round_step(span or 1, most)
    return [step * index for index in range(int(span / step + 1e-9) + 1)]


class TimeAxis:
    """Seconds since the start of the demo on a horizontal axis that ends at `end_s`."""

    def __init__(self, end_s: float) -> None:
        self.end_s = max(end_s, 1.0)

    def x(self, at_s: float) -> float:
        """The place of a moment, in pixels."""
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(at_s / self.end_s, 0.0), 1.0)

    def draw(self, top: float, bottom: float) -> list[str]:
        """The grid and its labels."""
        parts = []
        for at_s in ticks(self.end_s, 10):
            parts += [line(self.x(at_s), top, self.x(at_s), bottom, style="grid")]
            parts += [text(self.x(at_s), bottom + 18, f"{at_s:g} s", anchor="middle", style="tick")]
        return parts


def legend(entries: Sequence[tuple[str, str]], y: float) -> list[str]:
    """Squares of a style with their names, in one row."""
    parts, x = [], float(LEFT)
    for name, style in entries:
        parts += [box(x, y - 10, 12, 12, style=style, title=name), text(x + 18, y, name)]
        x += 40 + 8.4 * len(name)
    return parts


def ownership(
    tenures: Sequence[Tenure], rebalances: Sequence[Rebalance], killed: tuple[str, float], end_s: float
) -> str:
    """One row per partition, coloured by the member that owned it; rebalances, the kill and the gap after it marked."""
    members = sorted({t.member for t in tenures})
    styles = {name: f"m{i % 6}" for i, name in enumerate(members)}
    partitions = sorted({t.partition for t in tenures})
    axis, top, row = TimeAxis(end_s), 66.0, 30.0
    bottom = top + row * len(partitions)
    gaps = unread(tenures, killed)
    entries = [*styles.items(), *([("nobody reads", "gap")] if gaps else [])]
    parts = legend(entries, 18) + axis.draw(top, bottom)
    parts += [line(axis.x(mark.at_s), top, axis.x(mark.at_s), bottom, style="rebalance") for mark in rebalances]
    for index, partition in enumerate(partitions):
        parts.append(text(LEFT - 12, top + row * index + 20, f"flights-{partition}", anchor="end"))
    for t in tenures:
        y = top + row * partitions.index(t.partition) + 4
        x, width = axis.x(t.from_s), axis.x(t.to_s) - axis.x(t.from_s)
        title = f"{t.member} owned flights-{t.partition} from {t.from_s:.1f} s to {t.to_s:.1f} s"
        parts.append(box(x, y, width, row - 8, style=styles[t.member], title=title, radius=4))
        if width > 80:
            parts.append(text(x + 8, y + 15.5, t.member, style="on-bar"))
    for partition, from_s, to_s in gaps:
        y = top + row * partitions.index(partition) + 4
        title = f"nobody read flights-{partition} from {from_s:.1f} s to {to_s:.1f} s"
        parts.append(box(axis.x(from_s), y, axis.x(to_s) - axis.x(from_s), row - 8, style="gap", title=title))
    parts += _generations(rebalances, axis, top - 8)
    if killed[0]:
        parts += _kill_mark(axis, killed, band=38, top=top - 2, bottom=bottom)
    return svg(bottom + 30, parts, "Which member owned which partition over time")


def unread(tenures: Sequence[Tenure], killed: tuple[str, float]) -> list[tuple[int, float, float]]:
    """(partition, from, to): when nobody read the partitions that the killed member left behind."""
    name, at_s = killed
    left = [t for t in tenures if t.member == name and t.to_s >= at_s - 0.001]
    following = {
        t.partition: min(n.from_s for n in tenures if n.partition == t.partition and n.from_s > t.from_s)
        for t in left
        if any(n.partition == t.partition and n.from_s > t.from_s for n in tenures)
    }
    return sorted((t.partition, t.to_s, following[t.partition]) for t in left if t.partition in following)


def _generations(rebalances: Sequence[Rebalance], axis: TimeAxis, y: float) -> list[str]:
    """The generation above each rebalance; those too close together share a label, g1-3."""
    clusters: list[list[Rebalance]] = []
    for mark in sorted(rebalances, key=lambda mark: mark.at_s):
        if clusters and axis.x(mark.at_s) - axis.x(clusters[-1][-1].at_s) < 34:
            clusters[-1].append(mark)
        else:
            clusters.append([mark])
    parts = []
    for cluster in clusters:
        first, last = cluster[0].generation, cluster[-1].generation
        x = (axis.x(cluster[0].at_s) + axis.x(cluster[-1].at_s)) / 2
        name = f"g{first}" if first == last else f"g{first}-{last}"
        parts.append(text(x, y, name, anchor="middle", style="mark"))
    return parts


def _kill_mark(axis: TimeAxis, killed: tuple[str, float], *, band: float, top: float, bottom: float) -> list[str]:
    """A thick line; its label has the band above."""
    x = axis.x(killed[1])
    middle = min(max(x, LEFT + 60), WIDTH - RIGHT - 60)
    return [
        line(x, top, x, bottom, style="kill"),
        text(middle, band, f"{killed[0]} killed", anchor="middle", style="kill-label"),
    ]


def lag_over_time(samples: Sequence[LagSample], killed: tuple[str, float], end_s: float) -> str:
    """One line per group: records not yet committed. The second group's line is dashed."""
    groups = sorted({s.group for s in samples})
    highest = max((s.lag for s in samples), default=1) or 1
    step = round_step(highest, 5)
    scale = step * -(-highest // step)
    axis, top, bottom = TimeAxis(end_s), 80.0, 330.0
    parts = axis.draw(top, bottom)
    x = float(LEFT)
    for index, group in enumerate(groups):
        parts += [line(x, 14, x + 26, 14, style=f"lag lag{index % 2}"), text(x + 34, 18, group)]
        x += 60 + 8.4 * len(group)
    parts.append(text(LEFT, 40, "records not yet committed, over seconds since the start", style="tick"))
    for value in ticks(scale, 5):
        y = bottom - (bottom - top) * value / scale
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, style="grid"))
        parts.append(text(LEFT - 10, y + 4, f"{value:,.0f}", anchor="end", style="tick"))
    for index, group in enumerate(groups):
        points = [(axis.x(s.at_s), bottom - (bottom - top) * s.lag / scale) for s in samples if s.group == group]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" class="lag lag{index % 2}"/>')
    if killed[0]:
        parts += _kill_mark(axis, killed, band=top - 12, top=top - 4, bottom=bottom)
    return svg(bottom + 30, parts, "Lag of both groups over time")


def delay_map(delays: Mapping[tuple[str, int], tuple[int, int]], names: Mapping[str, str]) -> str:
    """Carriers down, scheduled hours across; colour is the mean departure delay, size tells few flights from many."""
    hours = sorted({hour for _, hour in delays})
    carriers = sorted({carrier for carrier, _ in delays}, key=lambda c: -carrier_mean(delays, c))
    left, top, row = 260.0, 84.0, 24.0
    column = (WIDTH - left - 90) / max(len(hours), 1)
    parts = _heat_legend(left)
    for i, hour in enumerate(hours):
        parts.append(text(left + column * i + column / 2, top - 8, f"{hour}h", anchor="middle", style="tick"))
    parts.append(text(WIDTH - 8, top - 8, "mean", anchor="end", style="tick"))
    for index, carrier in enumerate(carriers):
        y = top + row * index
        parts.append(text(left - 10, y + 16, f"{names.get(carrier, carrier)} ({carrier})", anchor="end"))
        parts.append(text(WIDTH - 8, y + 16, f"{carrier_mean(delays, carrier):.1f} min", anchor="end"))
        for position, hour in enumerate(hours):
            if cell := delays.get((carrier, hour)):
                mean = cell[1] / cell[0]
                title = f"{carrier} at {hour}h: {cell[0]:,} flights, mean delay {mean:.1f} min"
                width, height = (column - 2, row - 2) if cell[0] >= FEW_FLIGHTS else (12.0, 12.0)
                x = left + column * position + (column - width) / 2
                parts.append(box(x, y + (row - height) / 2, width, height, style=heat(mean), title=title))
    return svg(top + row * len(carriers) + 8, parts, "Mean departure delay by carrier and scheduled hour")


def _heat_legend(left: float) -> list[str]:
    """The colour scale with its minutes, and what size and blanks mean."""
    step = HEAT_TOP_MINUTES / HEAT_STEPS
    parts = [text(left - 10, 16, "minutes late", anchor="end", style="tick")]
    for index in range(HEAT_STEPS + 1):
        title = f"{step * index:g} minutes and more" if index == HEAT_STEPS else f"{step * index:g} minutes"
        parts.append(box(left + 34 * index, 4, 32, 14, style=f"heat h{index}", title=title))
        name = f"{step * index:g}" + ("+" if index == HEAT_STEPS else "")
        parts.append(text(left + 34 * index + 16, 34, name, anchor="middle", style="tick"))
    x = left + 34 * (HEAT_STEPS + 1) + 24
    parts += [box(x, 5, 12, 12, style="heat h4", title="few flights")]
    parts += [text(x + 20, 16, f"small: under {FEW_FLIGHTS} flights", style="tick")]
    parts += [text(x + 20, 34, "blank: no flight at this hour", style="tick")]
    return parts


def carrier_mean(delays: Mapping[tuple[str, int], tuple[int, int]], carrier: str) -> float:
    """The carrier's mean delay in minutes."""
    cells = [cell for (name, _), cell in delays.items() if name == carrier]
    return sum(cell[1] for cell in cells) / max(sum(cell[0] for cell in cells), 1)


def heat(minutes: float) -> str:
    """The style of a mean delay: h0 up to 2.5 minutes, one more for each 5 minutes, h8 from 37.5 on."""
    place = min(max(minutes / HEAT_TOP_MINUTES, 0.0), 1.0) * HEAT_STEPS
    return f"heat h{int(place + 0.5)}"
