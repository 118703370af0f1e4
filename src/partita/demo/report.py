"""One self-contained HTML page about a demo run: no script, no font, no address from outside."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from html import escape

from partita.demo import charts
from partita.demo.flights import data_directory
from partita.demo.story import Story

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #667080; --line: #d9dee5; --page: #fff;
  --good: #1f8a4c; --bad: #c62f2f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebef; --soft: #9aa4b2; --line: #333a44; --page: #14171b; --good: #4cc27f; --bad: #ff7b6e; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 980px;
  margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; }
h2 { margin: 2.6rem 0 .4rem; font-size: 1.25rem; } p { margin: .3rem 0 .9rem; }
.lead, .note { color: var(--soft); } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } svg .tick { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); } svg .rebalance { stroke: var(--ink); stroke-dasharray: 3 3; opacity: .7; }
svg .mark { font-size: 11px; } svg .kill { stroke: var(--bad); stroke-width: 2; }
svg .kill-label { fill: var(--bad); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.number { text-align: right; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
"""

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width"><title>Partita demo: flights</title>'
    "<style>{style}</style></head><body><h1>Flights through a consumer group</h1>"
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """An HTML table of cells that are already escaped."""

    def cells(row: Sequence[str], tag: str) -> str:
        marks = (' class="number"' if i in numbers else "" for i in range(len(row)))
        return "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, row, strict=True))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def checks_table(story: Story) -> str:
    """What the demo expected beside what it got."""

    def verdict(holds: bool) -> str:
        return '<span class="good">holds</span>' if holds else '<span class="bad">FAILS</span>'

    rows = [
        (escape(c.what), escape(c.expected), escape(c.got), verdict(c.holds), escape(c.remark)) for c in story.checks
    ]
    return table(("check", "expected (CSV)", "got", "", ""), rows, frozenset({1, 2}))


def rebalances_table(story: Story) -> str:
    """One row per rebalance with its causes."""
    rows = [
        (f"{r.at_s:.1f} s", str(r.generation), escape(r.cause), str(r.member_count), f"{r.duration_ms} ms")
        for r in story.rebalances
    ]
    return table(("at", "generation", "cause", "members", "took"), rows, frozenset({1, 3, 4}))


def airline_names() -> dict[str, str]:
    """Names of the airlines by carrier code."""
    with (data_directory() / "airlines.csv").open(encoding="utf-8", newline="") as lines:
        return {row["carrier"]: row["name"] for row in csv.DictReader(lines)}


def page(story: Story) -> str:
    """The whole report as HTML text."""
    end_s = max((s.at_s for s in story.lag), default=story.took_s)
    killed = (story.killed_member, story.killed_at_s)
    verdict = "every check holds" if all(c.holds for c in story.checks) else "a check fails"
    sections = [
        ("Checked against the CSV", "", checks_table(story)),
        (
            "Who owned what",
            "One row a partition of the topic, coloured by the member of the plain group that owned it. Dashed lines"
            " are completed rebalances with their generation; after the kill the coordinator waits for the session"
            " timeout.",
            charts.ownership(story.tenures, story.rebalances, killed, end_s) + rebalances_table(story),
        ),
        (
            "Lag",
            "High watermark minus committed offset, summed over the partitions, sampled twice a second.",
            charts.lag_over_time(story.lag, killed, end_s),
        ),
        (
            "Departure delays",
            "Mean minutes late by carrier and scheduled hour of departure, computed by Spark from the topic.",
            charts.delay_map(story.delays, airline_names()),
        ),
    ]
    body = "".join(f'<h2>{title}</h2><p class="note">{note}</p>{content}' for title, note, content in sections)
    lead = (
        f"{story.coverage.distinct:,} flights through one topic into two groups: three plain consumers and a Spark"
        f" stream of {story.spark_batches} batches. Took {story.took_s:.0f} s; {verdict}."
    )
    return HEAD.format(style=STYLE) + f'<p class="lead">{lead}</p>{body}</body></html>'
