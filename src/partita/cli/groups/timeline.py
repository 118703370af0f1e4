"""The readers of each partition over time, as SVG: bars by owner, hatches for no reader, a mark per rebalance. Pure.

An owner has a colour and a pattern of its own, and its name where it fits: no difference is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from partita.explain import Account
from partita.explain.facts import Partition
from partita.explain.wording import duration, partition_name
from partita.pictures.svg import NARROW, WIDE, Frame, box, gap_box, legend, line, svg, text

ROW, TOP = 30.0, 58.0
ROWS_MAX = 60
COLOURS, PATTERNS = 6, 5
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800)
_MARKS_APART = 34.0
_LETTERS_MAX = 12

STYLE = """
svg .pattern { opacity: .34; } svg .pattern-line { fill: none; stroke: var(--page); stroke-width: 2; }
svg .pattern-dot { fill: var(--page); } svg .mark { font-size: 12px; font-weight: 600; }
svg .on-bar { paint-order: stroke; stroke: none; }
"""


@dataclass(frozen=True, slots=True)
class Span:
    """One owner's time with one partition; an empty owner means that it had no reader."""

    owner: str
    from_ms: int
    to_ms: int


def spans_of(accounts: Sequence[Account], until_ms: int) -> dict[Partition, list[Span]]:
    """Return the owners of each partition with their times, in order; neighbours with the same owner are joined."""
    found: dict[Partition, list[Span]] = {}
    for i, account in enumerate(accounts):
        following = accounts[i + 1] if i + 1 < len(accounts) else None
        gaps = {} if following is None else {gap.partition: gap for gap in following.unread}
        end_ms = until_ms if following is None else following.ended_ms
        for member in account.members:
            for partition in member.partitions:
                gap = gaps.get(partition)
                stop_ms = end_ms if gap is None else max(min(gap.from_ms, end_ms), account.ended_ms)
                spans = found.setdefault(partition, [])
                _append(spans, Span(account.name_of(member.member_id), account.ended_ms, stop_ms))
                if stop_ms < end_ms:
                    spans.append(Span("", stop_ms, end_ms))
        owned = {partition for member in account.members for partition in member.partitions}
        for partition in found.keys() - owned:
            _append(found[partition], Span("", account.ended_ms, end_ms))
    return found


def _append(spans: list[Span], span: Span) -> None:
    """Add a span, or make the last one longer if it is the same owner's."""
    last = spans[-1] if spans else None
    if last is not None and last.owner == span.owner and last.to_ms >= span.from_ms:
        spans[-1] = Span(last.owner, last.from_ms, span.to_ms)
    elif span.to_ms > span.from_ms:
        spans.append(span)


def timeline(accounts: Sequence[Account], frame: Frame = WIDE) -> str:
    """The picture of these rebalances, oldest first. At most 60 partitions have a row."""
    begin_ms = accounts[0].began_ms or accounts[0].ended_ms
    end_ms = max(accounts[-1].ended_ms, begin_ms + 1000)
    end_ms += max((end_ms - begin_ms) // 12, 500)
    rows = dict(sorted(spans_of(accounts, end_ms).items())[:ROWS_MAX])
    owners = sorted({span.owner for spans in rows.values() for span in spans if span.owner})
    axis = _Axis(begin_ms, end_ms, frame)
    names = _legend_rows(owners, any(not s.owner for spans in rows.values() for s in spans), frame)
    top = TOP + 22 * (len(names) - 1)
    bottom = top + ROW * max(len(rows), 1)
    parts = [part for i, row in enumerate(names) for part in _legend(row, 18 + 22 * i, owners, frame)]
    parts += axis.draw(top, bottom)
    for index, (partition, spans) in enumerate(rows.items()):
        parts += _row(partition, spans, top + ROW * index, axis, owners)
    parts += _marks(accounts, axis, top, bottom)
    return svg(bottom + 30, [_patterns(frame), *parts], "Who read which partition over time", frame)


class _Axis:
    def __init__(self, begin_ms: int, end_ms: int, frame: Frame) -> None:
        self.begin_ms, self.end_ms, self.frame = begin_ms, end_ms, frame

    def x(self, at_ms: float) -> float:
        """Return the x coordinate of a moment, in pixels."""
        frame, share = self.frame, (at_ms - self.begin_ms) / (self.end_ms - self.begin_ms)
        return frame.left + (frame.width - frame.left - frame.right) * min(max(share, 0.0), 1.0)

    def draw(self, top: float, bottom: float) -> Iterator[str]:
        """The grid with the time of day in UTC."""
        most = 4 if self.frame.is_narrow else 8
        span_s = (self.end_ms - self.begin_ms) / 1000
        step_s = next((step for step in _STEPS_S if span_s / step <= most), _STEPS_S[-1])
        form = "%H:%M:%S" if step_s < 60 else "%H:%M" if step_s < 86400 else "%d %b"
        first = -(-self.begin_ms // (step_s * 1000)) * step_s * 1000
        for at_ms in range(first, self.end_ms, step_s * 1000):
            yield line(self.x(at_ms), top, self.x(at_ms), bottom, style="grid")
            label = datetime.fromtimestamp(at_ms / 1000, UTC).strftime(form)
            yield text(self.x(at_ms), bottom + 18, label, anchor="middle", style="tick")


def _legend_rows(owners: Sequence[str], has_gaps: bool, frame: Frame) -> list[list[str]]:
    """The names of the legend, in rows that fit the width."""
    rows: list[list[str]] = [[]]
    x = 0.0
    for name in [*owners[:24], *([""] if has_gaps else [])]:
        width = 34 + frame.letter * len(name or "nobody reads")
        if x + width > frame.width - (16 if frame.is_narrow else frame.left) and rows[-1]:
            rows.append([])
            x = 0.0
        rows[-1].append(name)
        x += width
    return rows


def _legend(names: Sequence[str], y: float, owners: Sequence[str], frame: Frame) -> list[str]:
    entries = [(name or "nobody reads", f"m{owners.index(name) % COLOURS}" if name else "gap") for name in names]
    parts = legend(entries, y, frame)
    x = float(8 if frame.is_narrow else frame.left)
    for name in names:
        if name:
            parts.append(_patterned(x, y - 10, 12, 12, owners.index(name), frame))
        x += 34 + frame.letter * len(name or "nobody reads")
    return parts


def _patterned(x: float, y: float, width: float, height: float, owner: int, frame: Frame) -> str:
    """The pattern of an owner over its bar; the first owner has none."""
    number = owner % (PATTERNS + 1)
    if not number:
        return ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="2" class="pattern"'
        f' fill="url(#p{number}-{frame.width})" pointer-events="none"/>'
    )


def _patterns(frame: Frame) -> str:
    shapes = (
        '<path d="M0 8L8 0M-2 2L2 -2M6 10L10 6" class="pattern-line"/>',
        '<circle cx="4" cy="4" r="2" class="pattern-dot"/>',
        '<path d="M0 4H8" class="pattern-line"/>',
        '<path d="M0 0L8 8M0 8L8 0" class="pattern-line"/>',
        '<path d="M4 0V8" class="pattern-line"/>',
    )
    return "<defs>" + "".join(
        f'<pattern id="p{i}-{frame.width}" width="8" height="8" patternUnits="userSpaceOnUse">{shape}</pattern>'
        for i, shape in enumerate(shapes, 1)
    ) + "</defs>"  # fmt: skip


def _row(partition: Partition, spans: Sequence[Span], y: float, axis: _Axis, owners: Sequence[str]) -> Iterator[str]:
    frame, name = axis.frame, partition_name(partition)
    most = 5 if frame.is_narrow else _LETTERS_MAX
    shown = name if len(name) <= most else "…" + name[-most + 1 :]
    yield text(frame.left - 8, y + 20, shown, anchor="end")
    for span in spans:
        x, width = axis.x(span.from_ms), axis.x(span.to_ms) - axis.x(span.from_ms)
        length = duration(span.to_ms - span.from_ms)
        if not span.owner:
            yield gap_box(x, y + 4, width, ROW - 8, frame, f"nobody read {name} for {length}")
            continue
        owner = owners.index(span.owner)
        title = f"{span.owner} read {name} for {length}"
        yield box(x, y + 4, width, ROW - 8, style=f"m{owner % COLOURS}", title=title, radius=3)
        yield _patterned(x, y + 4, width, ROW - 8, owner, frame)
        letters = frame.letter * len(span.owner)
        if width > letters + 16:
            yield box(x + 4, y + 8, letters + 6, ROW - 16, style=f"m{owner % COLOURS}", title=title, radius=2)
            yield text(x + 7, y + 19.5, span.owner, style="on-bar")


def _marks(accounts: Sequence[Account], axis: _Axis, top: float, bottom: float) -> Iterator[str]:
    """A line for each rebalance, and its generation above where there is room."""
    last_x = -_MARKS_APART
    for account in accounts:
        x = axis.x(account.ended_ms)
        title = escape(f"generation {account.generation}: {account.headline}")
        yield f"<g><title>{title}</title>{line(x, top - 4, x, bottom, style='rebalance')}</g>"
        if x - last_x >= _MARKS_APART:
            yield text(x, top - 9, f"g{account.generation}", anchor="middle", style="mark")
            last_x = x


def both_widths(accounts: Sequence[Account]) -> str:
    """The picture twice, for a desk and for a phone; the style sheet shows one of them."""
    return (
        f'<div class="on-desk">{timeline(accounts, WIDE)}</div><div class="on-phone">{timeline(accounts, NARROW)}</div>'
    )


def counts_by_name(accounts: Sequence[Account]) -> Mapping[str, int]:
    """Return how often each cause occurred, the most frequent one first."""
    found: dict[str, int] = {}
    for account in accounts:
        found[account.cause.what.value] = found.get(account.cause.what.value, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))
