"""The look of every report: one style sheet, tables, and pictures in two widths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from partita.pictures.svg import NARROW, WIDE, Frame

HEAT_STEPS = 8
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5c6675; --line: #d9dee5; --page: #fff; --on-bar: #fff;
  --good: #1f7a45; --bad: #b42a2a; --gap: #8a93a0; --m0: #0b6aa8; --m1: #b4530a; --m2: #0a7a5a; --m3: #9a4f80;
  --m4: #6a6212; --m5: #4b57b0; --h0: #f3efe0; --h1: #e3ddbd; --h2: #cdc48f; --h3: #b0a86f; --h4: #8f8d63;
  --h5: #6e7264; --h6: #4f5868; --h7: #2f3f69; --h8: #12265c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebef; --soft: #a3adba; --line: #333a44; --page: #14171b; --on-bar: #101317;
    --good: #4cc27f; --bad: #ff8a7d; --gap: #7d8794; --m0: #5cb3ea; --m1: #f0a35e; --m2: #4fc9a4; --m3: #e39cc6;
    --m4: #cfc45e; --m5: #98a4f2; --h0: #24345f; --h1: #3a4a6b; --h2: #535f6d; --h3: #6f766e; --h4: #8d8d6c;
    --h5: #ada56e; --h6: #cdbf78; --h7: #e8d98a; --h8: #fff3a8; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 980px;
  margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { margin: 2.6rem 0 .4rem; font-size: 1.25rem; } p { margin: .3rem 0 .9rem; }
.lead, .note, small, footer { color: var(--soft); } a { color: inherit; } code { overflow-wrap: anywhere; }
footer { margin: 3rem 0 1rem; padding-top: .8rem; border-top: 1px solid var(--line); font-size: .9rem; }
.wide { overflow-x: auto; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } svg .tick { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); } svg .rebalance { stroke: var(--ink); stroke-dasharray: 3 3; opacity: .7; }
svg .mark { font-size: 11px; } svg .kill { stroke: var(--bad); stroke-width: 2.5; }
svg .back { stroke: var(--good); stroke-width: 2.5; stroke-dasharray: 9 4; }
svg .kill-label { fill: var(--bad); font-weight: 600; } svg .back-label { fill: var(--good); font-weight: 600; }
svg .on-bar { fill: var(--on-bar); font-size: 12px; }
svg .gap { stroke: var(--gap); } svg .gap-back { fill: var(--page); } svg .gap-line { fill: var(--gap); }
svg .heat { stroke: var(--gap); stroke-width: .6; } svg .lag { fill: none; stroke-width: 2.4; stroke: var(--m0); }
MEMBERS HEATS
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.number { text-align: right; white-space: nowrap; } th { white-space: normal; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.on-phone { display: none; }
@media (max-width: 640px) { body { margin: 1.2rem auto; } .on-desk { display: none; } .on-phone { display: block; }
  svg text { font-size: 15px; } svg .tick, svg .on-bar, svg .mark { font-size: 14px; }
  td { font-size: .82rem; } th { font-size: .72rem; } td, th { padding-right: .35rem; } }
""".replace("MEMBERS", " ".join(f"svg .m{i} {{ fill: var(--m{i}); }}" for i in range(6))).replace(
    "HEATS", " ".join(f"svg .h{i} {{ fill: var(--h{i}); }}" for i in range(HEAT_STEPS + 1))
)
"""Colours differ in the common colour-vision deficiencies and have a contrast of 3:1 or more against the page."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """An HTML table of cells that are already escaped."""

    def cells(row: Sequence[str], tag: str) -> str:
        marks = (' class="number"' if i in numbers else "" for i in range(len(row)))
        return "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, row, strict=True))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return wide(f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>")


def both(draw: Callable[[Frame], str]) -> str:
    """A picture twice, for a desk and for a phone; the style sheet shows one of them."""
    return f'<div class="on-desk">{draw(WIDE)}</div><div class="on-phone">{draw(NARROW)}</div>'


def wide(content: str) -> str:
    """A table that a narrow screen scrolls sideways instead of cutting it."""
    return f'<div class="wide">{content}</div>'
