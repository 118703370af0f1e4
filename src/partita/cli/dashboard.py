"""`partita dashboard`: the groups of any Kafka as web pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from partita.cli.address import Address, address_options
from partita.cli.terminal import say

if TYPE_CHECKING:
    from partita.dashboard.access import Access

TOKEN_VARIABLE = "PARTITA_DASHBOARD_TOKEN"
LIBRARIES = ("starlette", "uvicorn", "jinja2", "sse_starlette", "prometheus_client")


@click.command()
@address_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen here; another address demands --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Listen at this port.")
@click.option("--token", envvar=TOKEN_VARIABLE, show_envvar=True, help="Ask for this token before anything is shown.")
def dashboard(bootstrap: Address, host: str, port: int, token: str | None) -> None:
    """Show groups with their lag, members and rebalances, topics, transactions and nodes as live web pages.

    Works on any Kafka. Reads only, unless told otherwise. Needs pip install 'partita[dashboard]'.
    """
    _require_libraries()
    from partita.dashboard.access import Access

    try:
        access = Access(host, token)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _run(bootstrap.client_options(client_id="partita-dashboard"), bootstrap.servers, access, port)


def _run(options: dict[str, Any], servers: str, access: Access, port: int) -> None:
    from partita.dashboard.app import create_app
    from partita.dashboard.serve import listening_socket, serve, url_of, watching
    from partita.dashboard.site import Site
    from partita.observe.observed import Observed
    from partita.observe.poll_cluster import ClusterPoller

    observed = Observed(servers)
    try:
        poller = ClusterPoller(options, observed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        bound = listening_socket(access.host, port)
    except OSError as error:
        raise click.ClickException(f"cannot listen at {access.host}:{port}: {error.strerror or error}") from error
    say(f"dashboard at {url_of(access, bound)}" + (" (it asks for the token once: ?token=...)" if access.token else ""))
    serve(create_app(Site(observed, access), lifespan=watching(poller)), bound)


def _require_libraries() -> None:
    """Raise ClickException that names the extra if a library is missing."""
    from importlib.util import find_spec

    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise click.ClickException(
            f"the dashboard needs {', '.join(missing)}; install it with: pip install 'partita[dashboard]'"
        )
