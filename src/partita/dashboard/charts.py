"""Pictures as SVG: the curve in a row, and lag over time. They need no script and no style of their own."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from partita.dashboard.words import number, span
from partita.explain.account import Phase
from partita.observe.history import LagPoint

SPARK_WIDTH, SPARK_HEIGHT = 120, 26
CHART_WIDTH, CHART_HEIGHT = 900, 190
LEFT, BOTTOM, TOP = 64, 22, 8
GRID_LINES = 4


def sparkline(points: Sequence[tuple[int, int]], since_ms: int, until_ms: int) -> Markup:
    """Return a small curve of (time, lag), scaled to its own maximum; its title gives the range."""
    if len(points) < 2:
        return Markup('<svg class="spark" viewBox="0 0 {} {}" aria-hidden="true"></svg>').format(
            SPARK_WIDTH, SPARK_HEIGHT
        )
    top = max(1, max(lag for _, lag in points))
    length = max(1, until_ms - since_ms)
    spots = [(SPARK_WIDTH * (at - since_ms) / length, 2 + (SPARK_HEIGHT - 4) * (1 - lag / top)) for at, lag in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    base = SPARK_HEIGHT - 1
    area = f"{spots[0][0]:.1f},{base} {line} {spots[-1][0]:.1f},{base}"
    title = f"lag over {span(points[-1][0] - points[0][0])}: from {number(points[0][1])} to {number(points[-1][1])}"
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" role="img"><title>{title}</title>'
        '<polygon class="area" points="{area}"/><polyline class="line" points="{line}"/>'
        '<circle class="dot" cx="{x}" cy="{y}" r="2"/></svg>'
    ).format(
        w=SPARK_WIDTH, h=SPARK_HEIGHT, title=title, area=area, line=line,
        x=f"{spots[-1][0]:.1f}", y=f"{spots[-1][1]:.1f}",
    )  # fmt: skip


def lag_chart(points: Sequence[LagPoint], marks: Sequence[tuple[int, str]] = ()) -> Markup:
    """Lag over time with a grid; `marks` are instants with their titles, such as rebalances."""
    if len(points) < 2:
        return Markup('<p class="soft">The curve begins with the second look.</p>')
    begin, end = points[0].at_ms, points[-1].at_ms
    top = nice_top(max(point.lag for point in points))
    height, width = CHART_HEIGHT - BOTTOM - TOP, CHART_WIDTH - LEFT - 6

    def x(at_ms: int) -> str:
        return f"{LEFT + width * (at_ms - begin) / max(1, end - begin):.1f}"

    def y(lag: float) -> str:
        return f"{TOP + height * (1 - lag / top):.1f}"

    parts = [Markup('<svg class="chart" viewBox="0 0 {} {}" role="img"><title>lag in records</title>').format(
        CHART_WIDTH, CHART_HEIGHT)]  # fmt: skip
    for step in range(GRID_LINES + 1):
        value = top * step / GRID_LINES
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" class="end">{}</text>'
            ).format(LEFT, LEFT + width, y(value), y(value), LEFT - 8, float(y(value)) + 4, number(value))
        )
    line = " ".join(f"{x(point.at_ms)},{y(point.lag)}" for point in points)
    parts.append(Markup('<polygon class="area" points="{},{} {} {},{}"/>').format(LEFT, y(0), line, LEFT + width, y(0)))
    parts.append(Markup('<polyline class="line" points="{}"/>').format(line))
    for at_ms, title in marks:
        if begin <= at_ms <= end:
            parts.append(
                Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"><title>{3}</title></line>').format(
                    x(at_ms), TOP, y(0), title
                )
            )
    for share in (0, 0.5, 1):
        label = "now" if share == 1 else f"{span((end - begin) * (1 - share))} ago"
        anchor = ("start", "middle", "end")[round(share * 2)]
        parts.append(
            Markup('<text x="{}" y="{}" class="{}">{}</text>').format(
                LEFT + width * share, CHART_HEIGHT - 4, anchor, label
            )
        )
    return Markup("").join([*parts, Markup("</svg>")])


def nice_top(value: float) -> int:
    """The next round number, from which quarters are easy to read."""
    size = 4
    while size < value:
        for factor in (1, 2, 5, 10):
            if size * factor >= value:
                return size * factor
        size *= 10
    return size


def phase_bar(phases: Sequence[Phase]) -> Markup:
    """Return the phases of a rebalance one behind the other, drawn to their lengths."""
    total = sum(phase.ms for phase in phases)
    if not total:
        return Markup("")
    parts = []
    left = 0.0
    for index, phase in enumerate(phases):
        width = CHART_WIDTH * phase.ms / total
        label = f"{phase.name} {span(phase.ms)}"
        parts.append(
            Markup(
                '<g class="o{}"><title>{}</title><rect class="base" x="{:.1f}" width="{:.1f}" height="8"/>'
                '<text x="{:.1f}" y="24">{}</text></g>'
            ).format(index, label, left, max(2, width - 2), left, label if width > 7 * len(label) else "")
        )
        left += width
    return Markup('<svg class="phases" viewBox="0 0 {} 30" role="img">{}</svg>').format(
        CHART_WIDTH, Markup("").join(parts)
    )
