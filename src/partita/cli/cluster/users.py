"""`partita users`: who may log in by SCRAM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import connected, json_option, yes_option
from partita.cli.terminal import confirm, print_json, print_table, say
from partita.lazy import later

if TYPE_CHECKING:
    from partita.admin.access import scram
else:
    scram = later("partita.admin.access.scram")

MECHANISMS = click.Choice(["SCRAM-SHA-256", "SCRAM-SHA-512"], case_sensitive=False)


@click.group()
def users() -> None:
    """List, set and remove the SCRAM credentials of users."""


@users.command("list")
@click.argument("names", nargs=-1, metavar="[USER]...")
@address_options
@json_option
def list_(names: tuple[str, ...], bootstrap: Address, as_json: bool) -> None:
    """Show which users have SCRAM credentials. Passwords cannot be read."""
    with connected(bootstrap) as admin:
        found = admin.describe_scram_users(names or None)
    if as_json:
        print_json([credential._asdict() for credential in found])
    elif not found:
        say("no SCRAM credentials")
    else:
        print_table(["user", "mechanism", "iterations"], found)


@users.command("set")
@click.argument("name", metavar="USER")
@address_options
@click.option("--mechanism", type=MECHANISMS, default="SCRAM-SHA-512", show_default=True)
@click.option("--iterations", type=click.IntRange(4096, 16_384), default=4096, show_default=True)
@click.option(
    "--new-password-file",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the user's password from this file; without it the terminal is asked.",
)
def set_(name: str, bootstrap: Address, mechanism: str, iterations: int, new_password_file: str | None) -> None:
    """Let USER log in with a password. Open connections stay as they are."""
    if new_password_file is not None:
        password = Path(new_password_file).read_text(encoding="utf-8").rstrip("\r\n")
    else:
        password = click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    with connected(bootstrap) as admin:
        admin.alter_scram_users({name: scram.ScramUser(password, mechanism, iterations)})
    say(f"{name} can log in by {mechanism}")


@users.command("remove")
@click.argument("name", metavar="USER")
@address_options
@click.option("--mechanism", type=MECHANISMS, help="Only the credential of this mechanism.")
@yes_option
def remove(name: str, bootstrap: Address, mechanism: str | None, yes: bool) -> None:
    """Remove the SCRAM credentials of USER. Open connections stay as they are."""
    with connected(bootstrap) as admin:
        found = [c for c in admin.describe_scram_users([name]) if mechanism in (None, c.mechanism)]
        if not found:
            raise click.ClickException(f"{name} has no such SCRAM credential")
        confirm(f"Remove {', '.join(c.mechanism for c in found)} of {name}?", yes=yes)
        for credential in found:
            admin.alter_scram_users(remove=[(name, credential.mechanism)])
    say(f"{name} can log in no more by {', '.join(c.mechanism for c in found)}")
