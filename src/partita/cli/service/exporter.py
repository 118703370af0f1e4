"""`partita exporter`: groups of any Kafka as metrics for Prometheus."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import click

from partita.cli.address import Address, address_options
from partita.cli.terminal import complain, say
from partita.cli.variables import NumberRange
from partita.lazy import later
from partita.observe.metrics import SERIES_MAX, metrics_text

if TYPE_CHECKING:
    from partita.http import exporter as http_exporter
    from partita.observe import followers as observe_followers
    from partita.observe import observed as observed_cluster
    from partita.observe import poll_cluster
else:
    http_exporter = later("partita.http.exporter")
    observe_followers = later("partita.observe.followers")
    observed_cluster = later("partita.observe.observed")
    poll_cluster = later("partita.observe.poll_cluster")

AGAIN_AFTER_S = 1.0
"""After a look that reached no broker; one that is slow may have been asked."""
GENERATIONS_KEPT = 20
"""So many rebalances of each group are known when the next one is explained."""


class Exporter:
    """Looks at a cluster again and again, and keeps the page of its last look.

    Raises ValueError for options that no client takes.
    """

    def __init__(self, address: Address, wanted: re.Pattern[str], series_max: int = SERIES_MAX) -> None:
        options = address.client_options(client_id="partita-exporter")
        self.observed = observed_cluster.Observed(address.servers)
        self.poller = poll_cluster.ClusterPoller(
            options, self.observed, wants=lambda group_id: wanted.fullmatch(group_id) is not None
        )
        self.followers = observe_followers.Followers(options, self.poller, generations_max=GENERATIONS_KEPT)
        self._series_max = series_max
        self._problem = ""
        self._text = metrics_text(self.observed)

    def metrics_text(self) -> str:
        """The page of the last look. Waits for nothing, so any thread may ask."""
        return self._text

    async def look(self) -> bool:
        """Look once; whether the cluster was reached. A new trouble is named on standard error, and the page stays."""
        before = self.observed.trouble
        is_reached = await self.poller.look_safely()
        if is_reached:
            await self.followers.count_causes(self.observed)
        elif before is None:
            complain(f"the cluster cannot be looked at: {self.observed.trouble}")
        if (problem := self.followers.problem) and problem != self._problem:
            self._problem = problem
            complain(f"causes of rebalances are not known: {problem}")
        self._text = metrics_text(self.observed, self._series_max)
        return is_reached

    async def run(self, every: float) -> NoReturn:
        """Look every so many seconds until cancelled."""
        async with asyncio.TaskGroup() as running:
            running.create_task(self.followers.run())
            try:
                while True:
                    began_s = time.monotonic()
                    pause_s = every if await self.look() else min(every, AGAIN_AFTER_S)
                    await asyncio.sleep(max(0.05, pause_s - (time.monotonic() - began_s)))
            finally:
                await self.poller.close()


@click.command()
@address_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen here; all who reach it can read the page.")
@click.option("--port", type=click.IntRange(0, 65535), default=9308, show_default=True, help="Listen at this port.")
@click.option("--every", type=NumberRange(min=0.1), default=10.0, show_default=True, help="Seconds between looks.")
@click.option("--groups", metavar="REGEX", default=".*", help="Only groups whose ids match as a whole.")
@click.option(
    "--series-max", type=click.IntRange(min=0), default=SERIES_MAX, show_default=True,
    help="At most so many series of groups, members and partitions; those furthest behind come first.",
)  # fmt: skip
def exporter(bootstrap: Address, host: str, port: int, every: float, groups: str, series_max: int) -> None:
    """Serve lag, members and rebalances of all groups to Prometheus, at http://HOST:PORT/metrics. Ctrl-C ends it.

    Works on any Kafka, with classic, consumer, share and streams groups. Causes of rebalances are read from
    __consumer_offsets, which needs the right to read it.
    """
    try:
        exported = Exporter(bootstrap, re.compile(groups, re.DOTALL), series_max)
    except re.error as error:
        raise click.UsageError(f"--groups expects a regular expression, not {groups!r}: {error}") from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        server = http_exporter.serve_metrics(port, exported, host=host)
    except OSError as error:
        raise click.ClickException(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    with server, suppress(KeyboardInterrupt):  # an exporter that is stopped has ended well, as the dashboard has
        say(f"metrics at {server.url}")
        asyncio.run(exported.run(every))
