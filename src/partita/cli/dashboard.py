"""`partita dashboard`: the groups of any Kafka, or of several, as web pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partita.cli.address import Address, clusters_options
from partita.cli.connecting import named_if_unreachable
from partita.cli.terminal import say
from partita.cli.variables import token_option
from partita.lazy import later

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from partita.dashboard import access as dashboard_access
    from partita.dashboard import actions as dashboard_actions
    from partita.dashboard import app as dashboard_app
    from partita.dashboard import once as dashboard_page
    from partita.dashboard import records as dashboard_records
    from partita.dashboard import serve as dashboard_server
    from partita.dashboard import several
    from partita.dashboard import site as dashboard_site
    from partita.dashboard import sources as dashboard_sources
    from partita.dashboard import webhook as dashboard_webhook
    from partita.observe import followers as observe_followers
    from partita.observe import history_file, poll_cluster
    from partita.observe import observed as observed_cluster
else:
    dashboard_access = later("partita.dashboard.access")
    dashboard_actions = later("partita.dashboard.actions")
    dashboard_app = later("partita.dashboard.app")
    dashboard_page = later("partita.dashboard.once")
    dashboard_records = later("partita.dashboard.records")
    dashboard_server = later("partita.dashboard.serve")
    dashboard_site = later("partita.dashboard.site")
    dashboard_sources = later("partita.dashboard.sources")
    dashboard_webhook = later("partita.dashboard.webhook")
    history_file = later("partita.observe.history_file")
    observe_followers = later("partita.observe.followers")
    observed_cluster = later("partita.observe.observed")
    poll_cluster = later("partita.observe.poll_cluster")
    several = later("partita.dashboard.several")

TOKEN_VARIABLE = "PARTITA_DASHBOARD_TOKEN"
LIBRARIES = ("starlette", "uvicorn", "jinja2", "sse_starlette")


@click.command()
@clusters_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; any other needs --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Listen at this port.")
@click.option("--token", envvar=TOKEN_VARIABLE, show_envvar=True, help="Ask for this token before anything is shown.")
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Offer to reset offsets after a preview; with --notes-from also to evict members.",
)
@click.option(
    "--records/--no-records",
    default=None,
    help="Offer a look at records. [default: only where --host is this machine alone]",
)
@click.option(
    "--webhook",
    metavar="URL",
    help="Post JSON there when a group begins or ceases to need attention urgently, or the cluster is lost or found.",
)
@click.option(
    "--notes-from",
    metavar="URL",
    help="The control endpoint of a Partita broker, such as http://127.0.0.1:9644: it notes causes itself.",
)
@token_option
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep curves and rebalances of the last week in this SQLite file, so that a restart does not lose them.",
)
@click.option(
    "--once",
    "report",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Look once, write all pages as one file without scripts (-: standard output), and end.",
)
def dashboard(
    clusters: dict[str, Address], host: str, port: int, token: str | None, report: str | None, **options: Any
) -> None:
    """Show groups with their lag, members and rebalances, topics, transactions and nodes as live web pages.

    Works on any Kafka; --profile, given more than once, shows several clusters in one dashboard. Reads only, unless
    started with --allow-actions. Needs pip install 'partita[dashboard]'.
    """
    _require_libraries()

    if len(clusters) > 1 and (report is not None or options["notes_from"] is not None):
        raise click.UsageError("--once and --notes-from are about one cluster: give one --profile")
    try:
        access = dashboard_access.Access(host, token)
        watched = [_watch(name, address, access, **options) for name, address in clusters.items()]
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if report is None:
        _run(watched, access, port)
    else:
        (address,) = clusters.values()
        with named_if_unreachable(address):
            _write(watched[0], report)


@dataclass(frozen=True)
class Watched:
    """One cluster: its pages, what fills them, and what runs beside them."""

    site: dashboard_site.Site
    poller: poll_cluster.ClusterPoller
    followers: observe_followers.Followers
    routes: list[BaseRoute]
    runners: list[Callable[[], Coroutine[Any, Any, None]]]


def _watch(
    name: str, address: Address, access: dashboard_access.Access, *,
    allow_actions: bool, records: bool | None, webhook: str | None,
    notes_from: str | None, admin_token: str | None, history: Path | None,
) -> Watched:  # fmt: skip
    """Prepare to watch one cluster; nothing is asked yet. Raises ValueError for an option that cannot be."""
    options = address.client_options(client_id="partita-dashboard")
    poller = poll_cluster.ClusterPoller(options, observed_cluster.Observed(address.servers))
    followers = observe_followers.Followers(options, poller, notes_from, admin_token or "")
    poller.on_pass.append(followers.count_causes)
    if history is not None:
        _remember(poller, history.with_stem(f"{history.stem}-{name}") if name else history)
    site = dashboard_site.Site(
        poller.observed, access,
        sources=dashboard_sources.Sources(followers.facts_of, followers.described), allow_actions=allow_actions,
        has_control=notes_from is not None, shows_records=access.is_local if records is None else records, cluster=name,
    )  # fmt: skip
    routes: list[BaseRoute] = []
    if allow_actions:
        routes += dashboard_actions.Actions(
            site, lambda: poller.admin, control=notes_from, control_token=admin_token or ""
        ).routes()
    if site.shows_records:
        routes += dashboard_records.RecordPages(site, options).routes()
    runners = [poller.run, followers.run]
    if webhook is not None:
        runners.append(dashboard_webhook.Webhook(webhook, site.rows, name).run)
    return Watched(site, poller, followers, routes, runners)


def _remember(poller: poll_cluster.ClusterPoller, path: Path) -> None:
    """Load the history in the file and go on writing to it. Raises ValueError for a file of another kind."""
    file = history_file.HistoryFile(path)
    file.load(poller.observed.history, time.time_ns() // 1_000_000)
    poller.on_pass.append(file.keep)


def _write(watched: Watched, report: str) -> None:
    async def look() -> None:
        try:
            await watched.poller.look()
            await watched.followers.read_once()
        finally:
            await watched.poller.close()

    watched.site.shows_records = False  # a report holds no link to what it does not hold
    asyncio.run(look())
    with click.open_file(report, "w", encoding="utf-8") as file:
        file.write(dashboard_page.report(watched.site))
    if report != "-":
        say(f"wrote {report}")


def _run(watched: list[Watched], access: dashboard_access.Access, port: int) -> None:
    try:
        bound = dashboard_server.listening_socket(access.host, port)
    except OSError as error:
        raise click.ClickException(f"cannot listen at {access.host}:{port}: {error.strerror or error}") from error
    # A dashboard that is stopped has ended well, as a service manager sees it; uvicorn raises the signal once more.
    with suppress(KeyboardInterrupt):
        asks = " (it asks for the token once: ?token=...)" if access.token else ""
        announce = partial(say, f"dashboard at {dashboard_server.url_of(access, bound)}{asks}")
        lifespan = dashboard_server.in_background(
            *(runner for one in watched for runner in one.runners), on_start=announce
        )
        if len(watched) == 1:
            dashboard_server.serve(
                dashboard_app.create_app(watched[0].site, lifespan=lifespan, more=watched[0].routes), bound
            )
        else:
            apps = [dashboard_app.create_app(one.site, more=one.routes) for one in watched]
            dashboard_server.serve(several.create_app_of([one.site for one in watched], apps, access, lifespan), bound)


def _require_libraries() -> None:
    """Raise ClickException that names the extra if a library is missing."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise click.ClickException(
            f"the dashboard needs {', '.join(missing)}; install it with: pip install 'partita[dashboard]'"
        )
