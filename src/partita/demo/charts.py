"""Pictures as SVG text: who owned which partition, lag over time, delays.

Colours are classes of the page's style sheet, so that a picture follows the light or dark scheme. Lines are drawn
first, bars over them, labels last and in bands of their own: no label lies over a line. No difference is shown by
colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from partita.demo.story import Kill, LagSample, Rebalance, Tenure
from partita.pictures.page import HEAT_STEPS
from partita.pictures.svg import WIDE, Frame, TimeAxis, box, gap_box, legend, line, round_step, svg, text, ticks

HEAT_TOP_MINUTES = 40
FEW_FLIGHTS = 50
"""Cells of fewer flights than this are drawn small: their mean says little."""
GAP_MIN_S = 0.2
"""Shorter gaps between two owners are not worth a bar."""


def ownership(
    tenures: Sequence[Tenure], rebalances: Sequence[Rebalance], kills: Sequence[Kill], end_s: float, frame: Frame = WIDE
) -> str:
    """One row per partition, coloured by the member that owned it; rebalances, kills and the gaps after them marked."""
    styles = {name: f"m{i % 6}" for i, name in enumerate(sorted({t.member for t in tenures}))}
    rows = {partition: i for i, partition in enumerate(sorted({t.partition for t in tenures}))}
    axis, top, row = TimeAxis(end_s, frame), 100.0, 30.0
    bottom = top + row * len(rows)
    gaps = unread(tenures)
    # Names of owners keep clear of these lines.
    kill_lines = sorted(axis.x(at_s) for kill in kills for at_s in (kill.at_s, kill.back_s) if at_s)
    entries = [*styles.items(), *([("nobody reads", "gap")] if gaps else [])]
    parts = legend(entries, 18, frame) + axis.draw(top, bottom)
    parts += [line(axis.x(mark.at_s), top, axis.x(mark.at_s), bottom, style="rebalance") for mark in rebalances]
    for partition, index in rows.items():
        name = f"p{partition}" if frame.is_narrow else f"flights-{partition}"
        parts.append(text(frame.left - 12, top + row * index + 20, name, anchor="end"))
    for t in tenures:
        y = top + row * rows[t.partition] + 4
        x, width = axis.x(t.from_s), axis.x(t.to_s) - axis.x(t.from_s)
        title = f"{t.member} owned flights-{t.partition} from {t.from_s:.1f} s to {t.to_s:.1f} s"
        parts.append(box(x, y, width, row - 8, style=styles[t.member], title=title, radius=4))
        if (place := _free_place(x, x + width, frame.letter * len(t.member) + 8, kill_lines)) is not None:
            parts.append(text(place + 7, y + 15.5, t.member, style="on-bar"))
    for partition, from_s, to_s in gaps:
        y, width = top + row * rows[partition] + 4, axis.x(to_s) - axis.x(from_s)
        title = f"nobody read flights-{partition} from {from_s:.1f} s to {to_s:.1f} s"
        parts.append(gap_box(axis.x(from_s), y, width, row - 8, frame, title))
    parts += _generations(rebalances, axis, top - 8)
    parts += _kill_marks(axis, kills, top=top - 2, bottom=bottom)
    return svg(bottom + 30, parts, "Which member owned which partition over time", frame)


def _free_place(begin: float, end: float, width: float, lines: Sequence[float]) -> float | None:
    """Return where between these lines a label of this width fits into [begin, end]; None if it fits nowhere."""
    edges = [begin, *(x for x in lines if begin < x < end), end]
    return next((a for a, b in pairwise(edges) if b - a >= width), None)


def unread(tenures: Sequence[Tenure]) -> list[tuple[int, float, float]]:
    """Return (partition, from, to) for each time without a reader between two owners."""
    gaps = []
    for partition in sorted({t.partition for t in tenures}):
        mine = sorted((t for t in tenures if t.partition == partition), key=lambda t: t.from_s)
        gaps += [(partition, a.to_s, b.from_s) for a, b in pairwise(mine) if b.from_s - a.to_s >= GAP_MIN_S]
    return gaps


def _generations(rebalances: Sequence[Rebalance], axis: TimeAxis, y: float) -> list[str]:
    """The generation above each rebalance; those too close together share a label, g1-3."""
    clusters: list[list[Rebalance]] = []
    for mark in sorted(rebalances, key=lambda mark: mark.at_s):
        if clusters and axis.x(mark.at_s) - axis.x(clusters[-1][0].at_s) < 46:
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


def _kill_marks(axis: TimeAxis, kills: Sequence[Kill], *, top: float, bottom: float, bands: float = 0) -> list[str]:
    """Return lines for kills and restarts. Each victim's labels have a band of their own above the generations."""
    parts = []
    for i, kill in enumerate(kills):
        band = top - 32 + 16 * (i % 2) + bands
        x, name = axis.x(kill.at_s), f"{kill.who} killed"
        parts.append(line(x, top, x, bottom, style="kill"))
        parts.append(text(max(x + 4, axis.frame.letter * len(name)), band, name, anchor="end", style="kill-label"))
        if kill.back_s:
            x = axis.x(kill.back_s)
            parts.append(line(x, top, x, bottom, style="back"))
            parts.append(text(x - 4, band, f"{kill.who} back", style="back-label"))
    return parts


def lag_over_time(samples: Sequence[LagSample], kills: Sequence[Kill], end_s: float, frame: Frame = WIDE) -> str:
    """The records that the group has not committed yet, over time."""
    highest = max((s.lag for s in samples), default=1) or 1
    step = round_step(highest, 5)
    # The axis ends at a round value, at or above the highest sample.
    scale = step * -(-highest // step)
    axis, top, bottom = TimeAxis(end_s, frame), 56.0, 300.0
    parts = axis.draw(top, bottom)
    for value in ticks(scale, 5):
        y = bottom - (bottom - top) * value / scale
        parts.append(line(frame.left, y, frame.width - frame.right, y, style="grid"))
        parts.append(text(frame.left - 8, y + 4, thousands(value), anchor="end", style="tick"))
    path = " ".join(f"{axis.x(s.at_s):.1f},{bottom - (bottom - top) * s.lag / scale:.1f}" for s in samples)
    parts.append(f'<polyline points="{path}" class="lag"/>')
    parts += _kill_marks(axis, kills, top=top - 4, bottom=bottom, bands=8)
    return svg(bottom + 30, parts, "Lag of the group over time", frame)


def thousands(value: float) -> str:
    """A number for a narrow axis: 12k for 12,000."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def delay_map(delays: Mapping[tuple[str, int], tuple[int, int]], names: Mapping[str, str], frame: Frame = WIDE) -> str:
    """Draw carriers down, scheduled hours across; colour is the mean departure delay, small cells have few flights."""
    hours = sorted({hour for _, hour in delays})
    carriers = sorted({carrier for carrier, _ in delays}, key=lambda c: -carrier_mean(delays, c))
    left, right, row = (34.0, 56.0, 24.0) if frame.is_narrow else (260.0, 90.0, 24.0)
    parts, top = _heat_legend(frame, 8.0 if frame.is_narrow else left)
    column = (frame.width - left - right) / max(len(hours), 1)
    every = 3 if frame.is_narrow else 1
    for i, hour in enumerate(hours):
        if i % every == 0 and not (frame.is_narrow and i > len(hours) - every):
            parts.append(text(left + column * i + column / 2, top - 8, f"{hour}h", anchor="middle", style="tick"))
    parts.append(text(frame.width - 8, top - 8, "mean", anchor="end", style="tick"))
    for index, carrier in enumerate(carriers):
        y = top + row * index
        name = carrier if frame.is_narrow else f"{names.get(carrier, carrier)} ({carrier})"
        unit = "" if frame.is_narrow else " min"
        parts.append(text(left - 8, y + 16, name, anchor="end"))
        parts.append(text(frame.width - 8, y + 16, f"{carrier_mean(delays, carrier):.1f}{unit}", anchor="end"))
        for position, hour in enumerate(hours):
            if cell := delays.get((carrier, hour)):
                mean = cell[1] / cell[0]
                title = f"{carrier} at {hour}h: {cell[0]:,} flights, mean delay {mean:.1f} min"
                width, height = (column - 2, row - 2) if cell[0] >= FEW_FLIGHTS else (12.0, 12.0)
                x = left + column * position + (column - width) / 2
                parts.append(box(x, y + (row - height) / 2, width, height, style=heat(mean), title=title))
    return svg(top + row * len(carriers) + 8, parts, "Mean departure delay by carrier and scheduled hour", frame)


def _heat_legend(frame: Frame, left: float) -> tuple[list[str], float]:
    """Draw the colour scale with its minutes, the meaning of size and blanks; return it and where the map may begin."""
    step, y = HEAT_TOP_MINUTES / HEAT_STEPS, 20.0 if frame.is_narrow else 0.0
    parts = [text(left, 16, "minutes late") if y else text(left - 10, 16, "minutes late", anchor="end", style="tick")]
    for index in range(HEAT_STEPS + 1):
        title = f"{step * index:g} minutes and more" if index == HEAT_STEPS else f"{step * index:g} minutes"
        parts.append(box(left + 34 * index, y + 4, 32, 14, style=f"heat h{index}", title=title))
        name = f"{step * index:g}" + ("+" if index == HEAT_STEPS else "")
        parts.append(text(left + 34 * index + 16, y + 34, name, anchor="middle", style="tick"))
    x, y = (left, 66.0) if frame.is_narrow else (left + 34 * (HEAT_STEPS + 1) + 24, 5.0)
    parts += [box(x, y, 12, 12, style="heat h4", title="few flights")]
    parts += [text(x + 20, y + 11, f"small: under {FEW_FLIGHTS} flights", style="tick")]
    parts += [
        text(
            x + (220 if frame.is_narrow else 20), y + (11 if frame.is_narrow else 29), "blank: no flight", style="tick"
        )
    ]
    return parts, 116.0 if frame.is_narrow else 84.0


def carrier_mean(delays: Mapping[tuple[str, int], tuple[int, int]], carrier: str) -> float:
    """The carrier's mean delay in minutes."""
    cells = [cell for (name, _), cell in delays.items() if name == carrier]
    return sum(cell[1] for cell in cells) / max(sum(cell[0] for cell in cells), 1)


def heat(minutes: float) -> str:
    """Return the style of a mean delay: h0 up to 2.5 minutes, one more for each 5 minutes, h8 from 37.5 on."""
    place = min(max(minutes / HEAT_TOP_MINUTES, 0.0), 1.0) * HEAT_STEPS
    return f"heat h{int(place + 0.5)}"
