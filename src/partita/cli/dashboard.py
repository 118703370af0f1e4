"""`partita dashboard`: the groups of any Kafka as web pages."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import named_if_unreachable
from partita.cli.terminal import say
from partita.cli.variables import TOKEN_VARIABLE as ADMIN_TOKEN_VARIABLE

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from partita.dashboard.site import Site
    from partita.dashboard.sources import Followers
    from partita.observe.poll_cluster import ClusterPoller

TOKEN_VARIABLE = "PARTITA_DASHBOARD_TOKEN"
LIBRARIES = ("starlette", "uvicorn", "jinja2", "sse_starlette", "prometheus_client")


@click.command()
@address_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen here; another address demands --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Listen at this port.")
@click.option("--token", envvar=TOKEN_VARIABLE, show_envvar=True, help="Ask for this token before anything is shown.")
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Offer to reset offsets after a preview; with --notes-from also to evict members.",
)
@click.option(
    "--notes-from",
    metavar="URL",
    help="The control endpoint of a Partita broker, such as http://127.0.0.1:9644: it tells causes itself.",
)
@click.option(
    "--admin-token",
    envvar=ADMIN_TOKEN_VARIABLE,
    show_envvar=True,
    help="The token that the broker printed at its start.",
)
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
    bootstrap: Address, host: str, port: int, token: str | None, allow_actions: bool, notes_from: str | None,
    admin_token: str | None, history: Path | None, report: str | None,
) -> None:  # fmt: skip
    """Show groups with their lag, members and rebalances, topics, transactions and nodes as live web pages.

    Works on any Kafka. Reads only, unless told otherwise. Needs pip install 'partita[dashboard]'.
    """
    _require_libraries()
    from partita.dashboard.access import Access
    from partita.dashboard.site import Site
    from partita.dashboard.sources import Followers
    from partita.observe.observed import Observed
    from partita.observe.poll_cluster import ClusterPoller

    observed = Observed(bootstrap.servers)
    options = bootstrap.client_options(client_id="partita-dashboard")
    try:
        access = Access(host, token)
        poller = ClusterPoller(options, observed)
        followers = Followers(options, poller, notes_from, admin_token or "")
        if history is not None:
            _remember(poller, history)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    has_control = notes_from is not None
    site = Site(observed, access, sources=followers.sources, allow_actions=allow_actions, has_control=has_control)
    if report is not None:
        with named_if_unreachable(bootstrap):
            _write(site, poller, followers, report)
    else:
        actions = _actions(site, poller, notes_from, admin_token) if allow_actions else []
        _run(site, poller, followers, actions, port)


def _remember(poller: ClusterPoller, path: Path) -> None:
    """Begin with what the file has, and go on in it. Raises ValueError for a file that is something else."""
    from partita.observe.history_file import HistoryFile

    file = HistoryFile(path)
    file.load(poller.observed.history, time.time_ns() // 1_000_000)
    poller.on_pass.append(file.keep)


def _write(site: Site, poller: ClusterPoller, followers: Followers, report: str) -> None:
    from partita.dashboard.once import report as report_of

    async def look() -> None:
        try:
            await poller.look()
            await followers.read_once()
        finally:
            await poller.close()

    asyncio.run(look())
    with click.open_file(report, "w", encoding="utf-8") as file:
        file.write(report_of(site))
    if report != "-":
        say(f"wrote {report}")


def _actions(site: Site, poller: ClusterPoller, notes_from: str | None, admin_token: str | None) -> list[BaseRoute]:
    from partita.dashboard.actions import Actions

    return Actions(site, lambda: poller.admin, control=notes_from, control_token=admin_token or "").routes()


def _run(site: Site, poller: ClusterPoller, followers: Followers, actions: list[BaseRoute], port: int) -> None:
    from partita.dashboard.app import create_app
    from partita.dashboard.serve import in_background, listening_socket, serve, url_of

    access = site.access
    try:
        bound = listening_socket(access.host, port)
    except OSError as error:
        raise click.ClickException(f"cannot listen at {access.host}:{port}: {error.strerror or error}") from error
    # A dashboard that is stopped has ended well, as a service manager sees it; uvicorn raises the signal once more.
    with suppress(KeyboardInterrupt):
        asks = " (it asks for the token once: ?token=...)" if access.token else ""
        told = partial(say, f"dashboard at {url_of(access, bound)}{asks}")
        lifespan = in_background(poller.run, followers.run, on_start=told)
        serve(create_app(site, lifespan=lifespan, actions=actions), bound)


def _require_libraries() -> None:
    """Raise ClickException that names the extra if a library is missing."""
    from importlib.util import find_spec

    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise click.ClickException(
            f"the dashboard needs {', '.join(missing)}; install it with: pip install 'partita[dashboard]'"
        )
