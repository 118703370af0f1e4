"""`partita quotas`: how much users, client ids and addresses may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from partita.cli.address import Address, address_options, settings_of
from partita.cli.connecting import connected, json_option
from partita.cli.terminal import print_json, print_table, say
from partita.wording import count

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_NAME = "<default>"


@click.group()
def quotas() -> None:
    """List, set and remove quotas: how much users, client ids and addresses may use."""


def entity_options(command: F) -> F:
    """Add the options that say whose quotas."""
    for option in (
        click.option("--ip", default="", metavar="ADDRESS", help=f"Of an address, or {DEFAULT_NAME}."),
        click.option("--client-id", default="", metavar="NAME", help=f"Of a client id, or {DEFAULT_NAME}."),
        click.option("--user", default="", metavar="NAME", help=f"Of a user, or {DEFAULT_NAME}."),
    ):
        command = option(command)
    return command


@quotas.command("list")
@address_options
@entity_options
@json_option
def list_(bootstrap: Address, as_json: bool, **named: str) -> None:
    """Show quotas: all of them, or those that concern some user, client id or address."""
    with connected(bootstrap) as admin:
        found = admin.describe_client_quotas(**_names(named))
    if as_json:
        print_json(found)
    elif not found:
        say("no quotas")
    else:
        rows = [
            (*(_shown(each.entity, kind) for kind in ("user", "client-id", "ip")), key, f"{value:.15g}")
            for each in found
            for key, value in each.quotas.items()
        ]
        print_table(["user", "client id", "ip", "quota", "value"], rows)


@quotas.command("set")
@click.argument("settings", nargs=-1, required=True, metavar="QUOTA=NUMBER...")
@address_options
@entity_options
def set_(bootstrap: Address, settings: tuple[str, ...], **named: str) -> None:
    """Set quotas such as producer_byte_rate=1000000 (bytes a second) of a user, a client id, both, or an address."""
    given = settings_of(settings, "quotas set")
    try:
        values = {name: float(value) for name, value in given.items()}
    except ValueError:
        raise click.UsageError("a quota is a number") from None
    _alter(bootstrap, named, values)
    say(f"set {count(len(values), 'quota')}")


@quotas.command()
@click.argument("names", nargs=-1, required=True, metavar="QUOTA...")
@address_options
@entity_options
def remove(bootstrap: Address, names: tuple[str, ...], **named: str) -> None:
    """Remove quotas of a user, a client id, both, or an address."""
    _alter(bootstrap, named, dict.fromkeys(names))
    say(f"removed {count(len(names), 'quota')}")


def _alter(bootstrap: Address, named: dict[str, str], values: dict[str, float | None] | dict[str, float]) -> None:
    if not any(named.values()):
        raise click.UsageError("whose quotas? name a --user, a --client-id, both, or an --ip")
    with connected(bootstrap) as admin:
        admin.alter_client_quotas(dict(values), **_names(named))


def _names(named: dict[str, str]) -> dict[str, Any]:
    return {option: None if name == DEFAULT_NAME else name for option, name in named.items()}


def _shown(entity: dict[str, str | None], kind: str) -> str | None:
    return (entity[kind] or DEFAULT_NAME) if kind in entity else None
