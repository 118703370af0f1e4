"""`partita dashboard`: the groups of any Kafka as web pages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from partita.cli.address import Address, address_options
from partita.cli.terminal import say

if TYPE_CHECKING:
    from partita.dashboard.site import Site
    from partita.observe.poll_cluster import ClusterPoller

TOKEN_VARIABLE = "PARTITA_DASHBOARD_TOKEN"
LIBRARIES = ("starlette", "uvicorn", "jinja2", "sse_starlette", "prometheus_client")


@click.command()
@address_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen here; another address demands --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Listen at this port.")
@click.option("--token", envvar=TOKEN_VARIABLE, show_envvar=True, help="Ask for this token before anything is shown.")
@click.option("--allow-actions", is_flag=True, help="Offer to reset offsets, each time after a preview.")
@click.option(
    "--once",
    "report",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Look once, write all pages as one file without scripts (-: standard output), and end.",
)
def dashboard(
    bootstrap: Address, host: str, port: int, token: str | None, allow_actions: bool, report: str | None
) -> None:
    """Show groups with their lag, members and rebalances, topics, transactions and nodes as live web pages.

    Works on any Kafka. Reads only, unless told otherwise. Needs pip install 'partita[dashboard]'.
    """
    _require_libraries()
    from partita.dashboard.access import Access
    from partita.dashboard.site import Site
    from partita.observe.observed import Observed
    from partita.observe.poll_cluster import ClusterPoller

    observed = Observed(bootstrap.servers)
    try:
        access = Access(host, token)
        poller = ClusterPoller(bootstrap.client_options(client_id="partita-dashboard"), observed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    site = Site(observed, access, allow_actions=allow_actions)
    if report is not None:
        _write(site, poller, report)
    else:
        _run(site, poller, port)


def _write(site: Site, poller: ClusterPoller, report: str) -> None:
    from partita.dashboard.once import report as report_of

    async def look() -> None:
        try:
            await poller.look()
        finally:
            await poller.close()

    asyncio.run(look())
    with click.open_file(report, "w", encoding="utf-8") as file:
        file.write(report_of(site))
    if report != "-":
        say(f"wrote {report}")


def _run(site: Site, poller: ClusterPoller, port: int) -> None:
    from partita.dashboard.actions import Actions
    from partita.dashboard.app import create_app
    from partita.dashboard.serve import in_background, listening_socket, serve, url_of

    access = site.access
    try:
        bound = listening_socket(access.host, port)
    except OSError as error:
        raise click.ClickException(f"cannot listen at {access.host}:{port}: {error.strerror or error}") from error
    say(f"dashboard at {url_of(access, bound)}" + (" (it asks for the token once: ?token=...)" if access.token else ""))
    actions = Actions(site, lambda: poller.admin).routes() if site.allow_actions else []
    serve(create_app(site, lifespan=in_background(poller.run), actions=actions), bound)


def _require_libraries() -> None:
    """Raise ClickException that names the extra if a library is missing."""
    from importlib.util import find_spec

    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise click.ClickException(
            f"the dashboard needs {', '.join(missing)}; install it with: pip install 'partita[dashboard]'"
        )
