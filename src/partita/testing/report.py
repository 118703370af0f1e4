"""The dashboard's pages about a test's broker, as one file to open after a failure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.net.loop_thread import LoopThread

if TYPE_CHECKING:
    from partita.broker.embedded import Broker
    from partita.dashboard import access as dashboard_access
    from partita.dashboard import once as dashboard_page
    from partita.dashboard import site as dashboard_site
    from partita.dashboard import sources as dashboard_sources
    from partita.observe import kept as kept_notes
    from partita.observe import note_facts, poll_cluster
    from partita.observe import observed as observed_cluster
else:
    dashboard_access = later("partita.dashboard.access")
    dashboard_page = later("partita.dashboard.once")
    dashboard_site = later("partita.dashboard.site")
    dashboard_sources = later("partita.dashboard.sources")
    kept_notes = later("partita.observe.kept")
    note_facts = later("partita.observe.note_facts")
    observed_cluster = later("partita.observe.observed")
    poll_cluster = later("partita.observe.poll_cluster")

LOOK_WITHIN_S = 10.0
NAME_MAX = 100


def report_path(folder: Path, test: str, number: int) -> Path:
    """Return the path of the report about a test's broker; a test with several brokers has one report for each."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", test).strip("-")[-NAME_MAX:]
    return folder / f"{name}{f'-{number}' if number else ''}.html"


def write_report(broker: Broker, path: Path) -> None:
    """Look at the broker once and write a report: groups with their rebalances, topics, transactions, nodes.

    Raises ModuleNotFoundError without `partita[dashboard]`, RuntimeError if the broker has stopped, TimeoutError if it
    does not answer within ten seconds, KafkaError for what it refuses, and OSError if the file cannot be written.
    """
    observed, kept = observed_cluster.Observed(broker.bootstrap), kept_notes.Kept()
    for fact in note_facts.facts_of_notes(broker.notes()):
        kept.add(fact)
    poller = poll_cluster.ClusterPoller(broker._own_options(), observed)

    async def look() -> None:
        try:
            await poller.look()
        finally:
            await poller.close()

    thread = LoopThread("partita-report")
    try:
        thread.run(look(), LOOK_WITHIN_S)
    finally:
        thread.stop()
    site = dashboard_site.Site(
        observed,
        dashboard_access.Access("127.0.0.1", None),
        sources=dashboard_sources.Sources(kept.of, lambda: "Read from the broker's notes."),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dashboard_page.report(site), encoding="utf-8")
