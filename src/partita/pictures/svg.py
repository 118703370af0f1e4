"""SVG as text: labels, lines, boxes, axes and legends in two widths.

Colours are classes of the page's style sheet, so that a picture follows the light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture: `left` and `right` are margins, `letter` is the width of a letter, all in pixels."""

    width: int
    left: int
    right: int
    letter: float
    ticks: int
    is_narrow: bool = False


WIDE = Frame(960, 92, 24, 8.4, 10)
NARROW = Frame(480, 44, 12, 8.8, 6, is_narrow=True)
"""For screens of a phone: fewer pixels across, so that letters keep their size."""


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


def svg(height: float, parts: Iterable[str], label: str, frame: Frame = WIDE) -> str:
    """A whole picture."""
    hatch = (
        f'<pattern id="hatch{frame.width}" width="7" height="7" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><rect width="7" height="7" class="gap-back"/>'
        '<rect width="2.4" height="7" class="gap-line"/></pattern>'
    )
    return (
        f'<svg viewBox="0 0 {frame.width} {height:.0f}" role="img" aria-label="{escape(label)}"'
        f' xmlns="http://www.w3.org/2000/svg"><defs>{hatch}</defs>{"".join(parts)}</svg>'
    )


def gap_box(x: float, y: float, width: float, height: float, frame: Frame, title: str) -> str:
    """A hatched rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" class="gap"'
        f' fill="url(#hatch{frame.width})"><title>{escape(title)}</title></rect>'
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

    def __init__(self, end_s: float, frame: Frame = WIDE) -> None:
        self.end_s = max(end_s, 1.0)
        self.frame = frame

    def x(self, at_s: float) -> float:
        """The place of a moment, in pixels."""
        frame = self.frame
        return frame.left + (frame.width - frame.left - frame.right) * min(max(at_s / self.end_s, 0.0), 1.0)

    def draw(self, top: float, bottom: float) -> list[str]:
        """The grid and its labels."""
        parts = []
        for at_s in ticks(self.end_s, self.frame.ticks):
            parts += [line(self.x(at_s), top, self.x(at_s), bottom, style="grid")]
            parts += [text(self.x(at_s), bottom + 18, f"{at_s:g} s", anchor="middle", style="tick")]
        return parts


def legend(entries: Sequence[tuple[str, str]], y: float, frame: Frame = WIDE) -> list[str]:
    """Squares of a style with their names, in one row."""
    parts, x = [], float(8 if frame.is_narrow else frame.left)
    for name, style in entries:
        if style == "gap":
            parts.append(gap_box(x, y - 10, 12, 12, frame, name))
        else:
            parts.append(box(x, y - 10, 12, 12, style=style, title=name))
        parts.append(text(x + 18, y, name))
        x += 34 + frame.letter * len(name)
    return parts
