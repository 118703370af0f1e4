"""`partita certs`: throw-away certificates for a broker and its clients on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.terminal import complain, say
from partita.lazy import later

if TYPE_CHECKING:
    from partita.broker import config as broker_config
    from partita.broker.security import ready_made
else:
    broker_config = later("partita.broker.config")
    ready_made = later("partita.broker.security.ready_made")

NAMES = ("localhost", "127.0.0.1", "::1")


@click.group()
def certs() -> None:
    """Make throw-away certificates for a broker and its clients."""


@certs.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A host name or address by which clients reach the broker; several with several options. "
    "Without any: localhost, 127.0.0.1 and ::1.",
)
@click.option(
    "--client", "clients", multiple=True, metavar="NAME", help="Also a certificate for a client, with CN=NAME."
)
@click.option("--replace", is_flag=True, help="Replace existing files; clients then need the new authority.")
def make(folder: Path, names: tuple[str, ...], clients: tuple[str, ...], replace: bool) -> None:
    """Make an authority, a certificate for the broker, and one for each client, in DIR.

    They are for tests and for a laptop: the key of the authority is not kept, so no further one can be signed. Start
    the broker with `partita broker --tls-dir DIR`; a running one reads new files at SIGHUP.
    """
    if (folder / ready_made.CA_FILE).exists() and not replace:
        complain(
            f"{folder / ready_made.CA_FILE} is there already; --replace makes new ones", command="partita certs make"
        )
        sys.exit(2)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = ready_made.ThrowAwayCertificates(names or NAMES, folder)
        files = [made.client(client) for client in clients]
    except broker_config.ConfigError as error:
        complain(str(error), command="partita certs make")
        sys.exit(2)
    say(f"authority  {made.ca_file} (clients: ssl.ca.location)")
    say(f"broker     {made.server_file} for {', '.join(names or NAMES)}")
    for client, file in zip(clients, files, strict=True):
        say(f"client     {file} for CN={client} (ssl.certificate.location and ssl.key.location)")
    say(f"start it   partita broker --tls-dir {folder}")
