"""The dashboard's pages about a test's broker, as one file to open after a failure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from partita.net.loop_thread import LoopThread

if TYPE_CHECKING:
    from partita.broker.embedded import Broker

LOOK_WITHIN_S = 10.0
NAME_MAX = 100


def report_path(folder: Path, test: str, number: int) -> Path:
    """Where the report about a test's broker goes; a test with several brokers has one report for each."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", test).strip("-")[-NAME_MAX:]
    return folder / f"{name}{f'-{number}' if number else ''}.html"


def write_report(broker: Broker, path: Path) -> None:
    """Look at the broker once and write what there is: groups with their rebalances, topics, transactions, nodes.

    Raises ModuleNotFoundError without `partita[dashboard]`, RuntimeError if the broker has stopped, TimeoutError if it
    does not answer within ten seconds, KafkaError for what it refuses, and OSError if the file cannot be written.
    """
    from partita.dashboard.access import Access
    from partita.dashboard.once import report
    from partita.dashboard.site import Site
    from partita.dashboard.sources import Sources
    from partita.observe.kept import Kept
    from partita.observe.note_facts import facts_of_notes
    from partita.observe.observed import Observed
    from partita.observe.poll_cluster import ClusterPoller

    observed, kept = Observed(broker.bootstrap), Kept()
    for fact in facts_of_notes(broker.notes()):
        kept.add(fact)
    poller = ClusterPoller(broker._own_options(), observed)

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
    site = Site(observed, Access("127.0.0.1", None), sources=Sources(kept.of, lambda: "Read from the broker's notes."))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(site), encoding="utf-8")
