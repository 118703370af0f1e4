"""The pictures of a comparison as SVG: who read what when, messages against group size, committed offsets, one join."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import log10

from partita.designs.compare import TITLES, Run
from partita.designs.journal import Journal, Span
from partita.designs.measure import COORDINATOR, READS, WRITES, two_readers, unread
from partita.pictures.svg import WIDE, box, gap_box, line, svg, text, ticks

WIDTH, LEFT, RIGHT = WIDE.width, WIDE.left, WIDE.right
ROWS_MAX = 5
ROW, HEAD, FOOT = 22.0, 42.0, 24.0
BEFORE_S = 0.6
SHOWN_S_MAX = 12.0
STYLE = """
table { font-size: .88rem; } th.number { white-space: normal; } td:first-child { min-width: 9rem; }
svg .twice { fill: url(#twice); stroke: var(--bad); stroke-width: 1.5; }
svg .twice-back { fill: var(--page); opacity: .55; }
svg .twice-line { fill: var(--bad); } svg .cause { stroke: var(--bad); stroke-width: 2; }
svg .healed { stroke: var(--good); stroke-width: 2; stroke-dasharray: 5 3; }
svg .cause-label { fill: var(--bad); font-weight: 600; }
svg .healed-label { fill: var(--good); font-weight: 600; } svg .head { font-weight: 600; font-size: 14px; }
svg .failed { stroke: var(--bad); stroke-width: 2; } svg .went { fill: var(--good); }
svg .line0, svg .line1, svg .line2, svg .line3, svg .line4 { fill: none; stroke-width: 2.4; }
svg .line0 { stroke: var(--m0); } svg .line1 { stroke: var(--m1); stroke-dasharray: 7 4; }
svg .line2 { stroke: var(--m2); stroke-dasharray: 2 3; } svg .line3 { stroke: var(--m3); stroke-dasharray: 9 3 2 3; }
svg .line4 { stroke: var(--m5); } svg .read-mark { stroke: var(--m0); }
svg .write-mark { stroke: var(--m1); stroke-width: 1.6; }
@media (max-width: 640px) { .wide svg { width: 780px; }
  .wide:has(svg)::before { content: "swipe the picture for the rest \\2192"; position: sticky; left: 0; display: block;
    color: var(--soft); font-size: .8rem; } }
svg .event-mark { fill: var(--bad); } svg .group-mark { stroke: var(--m2); stroke-width: 1.6; }
"""
TWICE = (
    '<defs><pattern id="twice" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    '<rect width="6" height="6" class="twice-back"/><rect width="3" height="6" class="twice-line"/></pattern></defs>'
)


class Clock:
    """Seconds since the cause on a horizontal axis."""

    def __init__(self, from_s: float, to_s: float) -> None:
        self.from_s = from_s
        self.to_s = max(to_s, from_s + 0.5)

    def x(self, at_s: float) -> float:
        """Return the x coordinate of a moment."""
        share = (at_s - self.from_s) / (self.to_s - self.from_s)
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0)


def timelines(runs: Sequence[Run], label: str) -> str:
    """One picture per design over the same time: a row for each partition that changed, coloured by its reader."""
    clock = Clock(-BEFORE_S, min(SHOWN_S_MAX, max(shown_until(run.journal) for run in runs)))
    rows = shown_partitions([run.journal for run in runs])
    parts, top = [TWICE, *_legend()], 34.0
    for run in runs:
        its, height = _timeline(run, clock, top, rows)
        parts += its
        top += height
    for at_s in ticks(clock.to_s, 10):
        parts.append(text(clock.x(at_s), top + 2, f"{at_s:g} s", anchor="middle", style="tick"))
    return svg(top + 12, parts, label)


def shown_until(journal: Journal) -> float:
    """The last moment worth showing: a little after the last change, or the end where it never settled."""
    moments = [s for span in journal.spans() for s in (span.from_s, span.to_s) if s < journal.end_s - 0.01]
    moments += [at_s for at_s, _ in journal.marks]
    last = max([*moments, journal.healed_s]) + 0.8
    # A partition without a reader up to the end: the group never settled.
    has_gaps = any(gaps and gaps[-1][1] >= journal.end_s - 0.01 for gaps in unread(journal, journal.spans()).values())
    return (journal.end_s if has_gaps else min(last, journal.end_s)) - journal.cause_s


def _legend() -> list[str]:
    parts, x = [], 8.0
    for name, style in (("read by one member", "m0"), ("read by two members", "twice"), ("without a reader", "gap")):
        square = gap_box(x, 6, 14, 12, WIDE, name) if style == "gap" else box(x, 6, 14, 12, style=style, title=name)
        parts += [square, text(x + 20, 17, name)]
        x += 50 + 7.2 * len(name)
    parts += [text(x, 17, "●", style="went"), text(x + 14, 17, "attempt to share")]
    parts += [*_cross(x + 146, 12), text(x + 156, 17, "attempt failed")]
    return parts


def _cross(x: float, y: float) -> list[str]:
    size = 4
    return [
        line(x - size, y - size, x + size, y + size, style="failed"),
        line(x - size, y + size, x + size, y - size, style="failed"),
    ]


def shown_partitions(journals: Sequence[Journal]) -> list[int]:
    """Return the partitions to show of all designs, so that rows can be compared.

    Those that two members read in one of them come first, then those without a reader, by the longest time in any.
    """
    double: set[int] = set()
    gaps: dict[int, float] = {}
    readers: dict[int, int] = {}
    for journal in journals:
        spans = journal.spans()
        double.update(partition for partition, _, _ in two_readers(spans, journal.cause_s))
        for p, its in unread(journal, spans).items():
            gaps[p] = max(gaps.get(p, 0.0), round(sum(b - a for a, b in its), 1))
            changed = {s.member for s in spans if s.partition == p and s.to_s > journal.cause_s}
            readers[p] = max(readers.get(p, 0), len(changed))
    order = sorted(gaps, key=lambda p: (p not in double, -gaps[p], -readers[p], p))
    return sorted(order[:ROWS_MAX])


def _timeline(run: Run, clock: Clock, top: float, rows: Sequence[int]) -> tuple[list[str], float]:
    journal, zero = run.journal, run.journal.cause_s
    bottom = top + HEAD + ROW * len(rows)
    parts = [text(8, top + 16, f"Design {TITLES[run.design]}", style="head")]
    parts += [text(WIDTH - RIGHT, top + 16, summary(run), anchor="end", style="tick")]
    spans = [span for span in journal.spans() if span.to_s - zero > clock.from_s and span.from_s - zero < clock.to_s]
    for at_s in ticks(clock.to_s, 10):
        parts.append(line(clock.x(at_s), top + HEAD, clock.x(at_s), bottom, style="grid"))
    members = sorted({span.member for span in journal.spans()})
    for index, partition in enumerate(rows):
        y = top + HEAD + ROW * index
        parts.append(text(LEFT - 12, y + 15, f"partition {partition}", anchor="end", style="tick"))
        for from_s, to_s in unread(journal, journal.spans()).get(partition, ()):
            parts.append(_bar(clock, from_s - zero, to_s - zero, y, "gap", f"nobody reads partition {partition}"))
        for span in (s for s in spans if s.partition == partition):
            parts += _reader(clock, span, zero, y, f"m{members.index(span.member) % 6}")
        for number, from_s, to_s in two_readers(spans, zero):
            if number == partition:
                title = f"two members read partition {partition}"
                parts.append(_bar(clock, from_s - zero, to_s - zero, y, "twice", title))
    if journal.end_s - zero < clock.to_s - 0.3:
        parts.append(text(clock.x(journal.end_s - zero) + 8, bottom - ROW * len(rows) / 2 + 5, "settled", style="tick"))
    parts += _marks(journal, clock, top + HEAD - 5, bottom)
    parts += _attempts(journal, clock, bottom + 9)
    return parts, bottom - top + FOOT + 6


def _bar(clock: Clock, from_s: float, to_s: float, y: float, style: str, what: str) -> str:
    title = f"{what} from {from_s:.2f} s to {to_s:.2f} s"
    if style == "gap":
        return gap_box(clock.x(from_s), y + 3, clock.x(to_s) - clock.x(from_s), ROW - 6, WIDE, title)
    return box(clock.x(from_s), y + 3, clock.x(to_s) - clock.x(from_s), ROW - 6, style=style, title=title)


def _reader(clock: Clock, span: Span, zero: float, y: float, style: str) -> list[str]:
    from_s, to_s = span.from_s - zero, span.to_s - zero
    what = f"{span.member} reads partition {span.partition}"
    parts = [_bar(clock, from_s, to_s, y, style, what)]
    if clock.x(to_s) - clock.x(from_s) > 46:
        parts.append(text(clock.x(from_s) + 6, y + 15.5, span.member, style="on-bar"))
    return parts


def _marks(journal: Journal, clock: Clock, top: float, bottom: float) -> list[str]:
    parts: list[str] = []
    for number, (at_s, what) in enumerate(journal.marks):
        style = "cause" if number == 0 else "healed"
        x = clock.x(at_s - journal.cause_s)
        parts.append(line(x, top, x, bottom, style=style))
        # A label at the right edge is written to the left of its line.
        far = x > WIDTH - 160
        parts.append(
            text(x + (-5 if far else 5), top + 1, what, anchor="end" if far else "start", style=f"{style}-label tick")
        )
    return parts


def _attempts(journal: Journal, clock: Clock, y: float) -> list[str]:
    """Return a dot for each attempt to share the partitions; a cross where it failed."""
    parts = []
    for fact in journal.facts:
        at_s = fact.at_s - journal.cause_s
        if fact.event == "attempt" and 0 <= at_s <= clock.to_s:
            parts.append(f'<circle cx="{clock.x(at_s):.1f}" cy="{y:.1f}" r="2.6" class="went"/>')
        elif fact.event in ("failed", "gave_up") and 0 <= at_s <= clock.to_s:
            parts += _cross(clock.x(at_s), y)
    for frame in journal.frames:
        at_s = frame.at_s - journal.cause_s
        if frame.name == "join" and journal.design not in ("1", "2") and 0 <= at_s <= clock.to_s:
            parts.append(f'<circle cx="{clock.x(at_s):.1f}" cy="{y:.1f}" r="2.6" class="went"/>')
    return parts


def summary(run: Run) -> str:
    """Return the main figures of a picture."""
    found = run.measures
    if found is None:
        return run.remark
    settled = "never settled" if found.settled_ms is None else f"settled after {found.settled_ms / 1000:.1f} s"
    parts = [settled, f"{found.twice:,} records twice"]
    parts += [f"{found.orphans} partitions without an owner"] if found.orphans else []
    parts += [f"offset back by {found.back:,}"] if found.back else []
    parts += ["the machine was too busy"] if run.is_busy else []
    return ", ".join(parts)


def messages(run: Run) -> int:
    """Return the messages that one join cost on the wire: events, reads, writes and group requests."""
    found = run.measures
    assert found is not None, "only runs with measures are counted"
    return found.notifications + found.coordinator_events + found.zk_reads + found.zk_writes + found.group_requests


def herd(runs: Sequence[Run]) -> str:
    """Messages for one join against the size of the group, both axes logarithmic, a line for each design."""
    counted = [run for run in runs if run.measures is not None]
    sizes = sorted({run.members for run in counted})
    most = max((messages(run) for run in counted), default=10)
    top, bottom, left, right = 40.0, 330.0, 70.0, WIDTH - 340.0
    tens = max(2, len(str(most)))

    def x(size: int) -> float:
        low, high = log10(sizes[0]), log10(sizes[-1])
        return left + (right - left) * ((log10(size) - low) / (high - low) if high > low else 0.5)

    def y(count: float) -> float:
        return bottom - (bottom - top) * log10(max(count, 1)) / tens

    parts = [text(left, 22, "messages for one join, counted on the wire", style="tick")]
    for power in range(tens + 1):
        parts += [line(left, y(10**power), right, y(10**power), style="grid")]
        parts += [text(left - 8, y(10**power) + 4, f"{10**power:,}", anchor="end", style="tick")]
    for size in sizes:
        parts += [line(x(size), top, x(size), bottom, style="grid")]
        parts += [text(x(size), bottom + 20, f"{size} members", anchor="middle", style="tick")]
    taken: list[float] = []
    for number, design in enumerate(sorted({run.design for run in counted}, key=list(TITLES).index)):
        its = sorted((run.members, messages(run)) for run in counted if run.design == design)
        points = " ".join(f"{x(size):.1f},{y(count):.1f}" for size, count in its)
        parts.append(f'<polyline points="{points}" class="line{number}"/>')
        for size, count in its:
            title = f"design {design}, {size} members: {count:,} messages"
            parts.append(
                f'<circle cx="{x(size):.1f}" cy="{y(count):.1f}" r="4" class="m{(0, 1, 2, 3, 5)[number]}">'
                f"<title>{escape(title)}</title></circle>"
            )
        # Designs that end close together would print their labels over one another: push later ones down.
        label_y = y(its[-1][1]) + 4
        while any(abs(label_y - other) < 17 for other in taken):
            label_y += 17
        taken.append(label_y)
        parts.append(text(right + 12, label_y, f"{its[-1][1]:,} in {TITLES[design]}"))
    return svg(bottom + 36, parts, "Messages for one join against the number of members")


def offsets(runs: Sequence[Run]) -> str:
    """The committed offset of one partition of the member that was cut off, in every design, since the cause."""
    top, bottom = 50.0, 270.0
    lines: list[tuple[str, list[tuple[float, int]]]] = []
    for run in runs:
        partition = told_partition(run.journal)
        its = [(c.at_s, c.offset) for c in run.journal.commits if c.partition == partition]
        base = max((offset for at_s, offset in its if at_s < run.journal.cause_s), default=0)
        lines.append(
            (run.design, [(at_s - run.journal.cause_s, o - base) for at_s, o in its if at_s >= run.journal.cause_s])
        )
    drawn = [(design, points) for design, points in lines if points]
    clock = Clock(0.0, max((at_s for _, points in drawn for at_s, _ in points), default=1.0))
    low = min((0, *(o for _, points in drawn for _, o in points)))
    high = max((o for _, points in drawn for _, o in points), default=1)

    def y(offset: float) -> float:
        return bottom - (bottom - top) * (offset - low) / max(high - low, 1)

    parts, x = [], float(LEFT)
    for number, (design, points) in enumerate(drawn):
        parts += [line(x, 14, x + 26, 14, style=f"line{number}"), text(x + 34, 18, f"design {design}")]
        x += 130
        path = f"{clock.x(points[0][0]):.1f},{y(points[0][1]):.1f}"
        for (_, before), (at_s, offset) in pairwise(points):
            path += f" {clock.x(at_s):.1f},{y(before):.1f} {clock.x(at_s):.1f},{y(offset):.1f}"
            if offset < before:
                parts.append(text(clock.x(at_s) + 6, y(offset) + 4, f"back by {before - offset}", style="cause-label"))
        parts.append(f'<polyline points="{path}" class="line{number}"/>')
    parts.append(text(LEFT, 40, "records of one partition committed since the cause", style="tick"))
    for value in ticks(max(high, 1), 4):
        parts += [line(LEFT, y(value), WIDTH - RIGHT, y(value), style="grid")]
        parts += [text(LEFT - 10, y(value) + 4, f"{value:,.0f}", anchor="end", style="tick")]
    for at_s in ticks(clock.to_s, 10):
        parts.append(text(clock.x(at_s), bottom + 20, f"{at_s:g} s", anchor="middle", style="tick"))
    return svg(bottom + 30, parts, "The committed offset of one partition over time in every design")


def told_partition(journal: Journal) -> int:
    """Return the partition whose committed offset fell the furthest, else one that changed hands."""
    fell: dict[int, int] = {}
    latest: dict[int, int] = {}
    for commit in journal.commits:
        if commit.at_s >= journal.cause_s:
            step = latest.get(commit.partition, commit.offset) - commit.offset
            fell[commit.partition] = max(fell.get(commit.partition, 0), step)
        latest[commit.partition] = commit.offset
    deepest = max(fell, key=lambda p: (fell[p], -p), default=0)
    return deepest if fell.get(deepest) else (shown_partitions([journal]) or [0])[0]


def one_join(runs: Sequence[Run]) -> str:
    """Every frame of one join as a tap saw it: a row for each member, a mark for each frame."""
    clock = Clock(0.0, max(((run.measures and run.measures.settled_ms) or 500) / 1000 for run in runs) + 0.1)
    parts, top = [*_join_legend()], 34.0
    for run in runs:
        journal = run.journal
        seen = [f for f in journal.frames if 0 <= f.at_s - journal.cause_s <= clock.to_s]
        rows = sorted({frame.member for frame in seen if _mark_of(frame.name)})
        parts.append(text(8, top + 16, f"Design {TITLES[run.design]}", style="head"))
        parts.append(text(WIDTH - RIGHT, top + 16, f"{messages(run):,} messages", anchor="end", style="tick"))
        for index, member in enumerate(rows):
            y = top + 26 + 16 * index
            parts.append(text(LEFT - 8, y + 10, member.replace(COORDINATOR, "coord. "), anchor="end", style="tick"))
            parts.append(line(LEFT, y + 7, WIDTH - RIGHT, y + 7, style="grid"))
            for frame in (f for f in seen if f.member == member):
                at = clock.x(frame.at_s - journal.cause_s)
                mark = _mark_of(frame.name)
                if mark == "event-mark":
                    parts.append(f'<circle cx="{at:.1f}" cy="{y + 7:.1f}" r="4" class="event-mark"/>')
                elif mark:
                    parts.append(line(at, y + 1, at, y + 13, style=mark))
        top += 40 + 16 * len(rows)
    for at_s in ticks(clock.to_s, 8):
        parts.append(text(clock.x(at_s), top + 6, f"{at_s * 1000:g} ms", anchor="middle", style="tick"))
    return svg(top + 16, parts, "Every message of one join in every design")


def _mark_of(name: str) -> str:
    if name in READS:
        return "read-mark"
    if name in WRITES:
        return "write-mark"
    if name in ("event", "told"):
        return "event-mark"
    return "group-mark" if name in ("join", "sync", "heartbeat", "find", "leave", "beat") else ""


def _join_legend() -> list[str]:
    parts, x = [], 8.0
    for name, style in (
        ("reads ZooKeeper", "read-mark"),
        ("writes to ZooKeeper", "write-mark"),
        ("asks the coordinator", "group-mark"),
    ):
        parts += [line(x + 4, 6, x + 4, 18, style=style), text(x + 14, 17, name)]
        x += 40 + 7.4 * len(name)
    parts += [f'<circle cx="{x + 4:.1f}" cy="12" r="4" class="event-mark"/>', text(x + 14, 17, "is told of a change")]
    return parts
