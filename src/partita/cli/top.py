"""`partita top`: all groups of a cluster live, the most urgent first, with why each of them last rebalanced."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import named_if_unreachable
from partita.cli.terminal import redraw, say, table_lines
from partita.cli.variables import NumberRange, token_option
from partita.lazy import later

if TYPE_CHECKING:
    from partita.dashboard import words as dashboard_words
    from partita.dashboard.models import accounts as group_accounts
    from partita.dashboard.models import overview as group_overview
    from partita.dashboard.models import rows as group_rows
    from partita.observe import followers as observe_followers
    from partita.observe import observed as observed_cluster
    from partita.observe import poll_cluster
else:
    dashboard_words = later("partita.dashboard.words")
    group_accounts = later("partita.dashboard.models.accounts")
    group_overview = later("partita.dashboard.models.overview")
    group_rows = later("partita.dashboard.models.rows")
    observe_followers = later("partita.observe.followers")
    observed_cluster = later("partita.observe.observed")
    poll_cluster = later("partita.observe.poll_cluster")

SORTED_BY = ("attention", "lag", "behind", "members", "rebalances", "name")
COLUMNS = ("group", "state", "members", "lag", "behind", "trend", "rebalances/h", "last rebalance")


class Top:
    """The table of a cluster's groups as the observer last saw them."""

    def __init__(self, rows: group_rows.GroupRows, sort: str, lines: int) -> None:
        self._rows = rows
        self._sort = sort
        self._lines = lines

    def lines(self) -> list[str]:
        """The table under a sentence about all groups."""
        everything = self._rows.all()
        shown = self._shown()
        body = [
            (
                row.group_id, row.state or None, row.members, None if row.lag is None else f"{row.lag:,}",
                None if row.behind is None else dashboard_words.behind(row.behind), row.trend,
                row.rebalances_per_hour,
                self.why(row.group_id),
            )
            for row in shown
        ]  # fmt: skip
        seen = self._rows.observed
        head = group_overview.attention_sentence(
            sum(bool(row.findings) for row in everything.values()), len(everything)
        )
        notes = [f"{row.group_id}: {row.findings[0].sentence}" for row in shown if row.findings]
        hidden = len(everything) - len(shown)
        return [
            *([f"the cluster cannot be looked at: {seen.trouble}"] if seen.trouble else []),
            head,
            "",
            *(table_lines(COLUMNS, body) if body else []),
            *([f"and {hidden:,} more"] if hidden else []),
            *(["", *notes] if notes else []),
        ]

    def as_json(self) -> str:
        """The same as one line of JSON."""
        seen = self._rows.observed
        groups = [{**asdict(row), "last_rebalance": self.why(row.group_id)} for row in self._shown()]
        head = {"cluster_id": seen.cluster_id, "seen_ms": seen.seen_ms, "trouble": seen.trouble}
        return json.dumps({**head, "all_groups": len(seen.groups), "groups": groups}, default=str)

    def why(self, group_id: str) -> str | None:
        """The headline of the group's last rebalance; None if none is known."""
        _, accounts = self._rows.accounts.of(group_id)
        return accounts[-1].headline if accounts else None

    def _shown(self) -> Sequence[group_rows.GroupRow]:
        return sorted(self._rows.all().values(), key=group_rows.SORTS[self._sort])[: self._lines]


@click.command()
@address_options
@click.option("--every", type=NumberRange(min=0.1), default=2.0, show_default=True, help="Seconds between updates.")
@click.option("--looks", type=click.IntRange(min=1), help="Stop after this many updates.")
@click.option("--sort", type=click.Choice(SORTED_BY), default="attention", show_default=True, help="What comes first.")
@click.option(
    "--lines", type=click.IntRange(1, 1000), default=20, show_default=True, help="Show at most so many groups."
)
@click.option(
    "--notes-from",
    metavar="URL",
    help="The control endpoint of a Partita broker, such as http://127.0.0.1:9644: it notes causes itself.",
)
@token_option
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object per update instead of the live view.")
def top(
    bootstrap: Address, every: float, looks: int | None, sort: str, lines: int, notes_from: str | None,
    admin_token: str | None, as_lines: bool,
) -> None:  # fmt: skip
    """Show all groups live: state, lag in records and in time, trend, and why each last rebalanced. Ctrl-C ends it.

    Works on any Kafka. Causes are read from __consumer_offsets, which needs the right to read it.
    """
    observed = observed_cluster.Observed(bootstrap.servers)
    options = bootstrap.client_options(client_id="partita-top")
    try:
        poller = poll_cluster.ClusterPoller(options, observed)
        followers = observe_followers.Followers(options, poller, notes_from, admin_token or "")
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    table = Top(group_rows.GroupRows(observed, group_accounts.Accounts(observed, followers.facts_of)), sort, lines)
    try:
        with named_if_unreachable(bootstrap):
            asyncio.run(_watch(table, poller, followers, every, looks, as_lines=as_lines))
    except KeyboardInterrupt:
        say()
        raise SystemExit(130) from None


async def _watch(
    table: Top,
    poller: poll_cluster.ClusterPoller,
    followers: observe_followers.Followers,
    every: float,
    looks: int | None,
    *,
    as_lines: bool,
) -> None:
    """Look once, so that an unreachable address is an error; then follow and show."""
    try:
        await poller.look()
        await followers.read_once()
        following = asyncio.create_task(followers.run())
        try:
            await _show(table, poller, every, looks, as_lines=as_lines)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    finally:
        await poller.close()


async def _show(
    table: Top, poller: poll_cluster.ClusterPoller, every: float, looks: int | None, *, as_lines: bool
) -> None:
    done = 0
    while True:
        say(table.as_json()) if as_lines else redraw(table.lines())
        done += 1
        if done == looks:
            return
        began_s = time.monotonic()
        await poller.look_safely()
        await asyncio.sleep(max(0.05, every - (time.monotonic() - began_s)))
