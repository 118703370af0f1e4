"""`partita config`: options of topics, brokers and groups, by Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from partita.cli.address import Address, address_options, settings_of
from partita.cli.connecting import connected, json_option
from partita.cli.terminal import print_json, print_table, say
from partita.wording import count

if TYPE_CHECKING:
    from partita.admin.configs import Kind

KINDS = click.Choice(["topic", "broker", "group"])


@click.group()
def config() -> None:
    """Show and change options of topics, brokers and groups."""


@config.command()
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.argument("options", nargs=-1, metavar="[OPTION]...")
@address_options
@click.option("--all", "everything", is_flag=True, help="Include options that have their defaults.")
@click.option("--help-texts", is_flag=True, help="Show what each option means, where the broker says so.")
@json_option
def get(
    kind: str, name: str, options: tuple[str, ...], bootstrap: Address, everything: bool, help_texts: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Show options of a topic, a broker (NAME is its number) or a group, and where each was set.

    Without OPTION, those that differ from their defaults are shown.
    """
    with connected(bootstrap) as admin:
        found = admin.describe_configs(cast("Kind", kind), name, options or None, documentation=help_texts)
    missing = sorted(set(options) - {entry.name for entry in found})
    if missing:
        raise click.ClickException(f"{kind} {name} has no option {', '.join(missing)}; see: "
                                   f"partita config get {kind} {name} --all")  # fmt: skip
    entries = [entry for entry in found if everything or options or not entry.is_default]
    if as_json:
        print_json(entries)
    elif not entries:
        say(f"all options of {kind} {name} have their defaults; use --all to show them")
    else:
        shown = [("(hidden)" if e.is_sensitive else e.value, e) for e in entries]
        columns = ["option", "value", "set by", *(["meaning"] if help_texts else [])]
        print_table(columns, [(e.name, value, e.source, e.documentation)[: len(columns)] for value, e in shown])


@config.command("set")
@click.argument("kind", type=KINDS)
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[OPTION=VALUE]...")
@address_options
@click.option("--unset", multiple=True, metavar="OPTION", help="Reset an option to its default.")
@click.option("--add", multiple=True, metavar="OPTION=ITEM", help="Add an item to an option that is a list.")
@click.option("--remove", multiple=True, metavar="OPTION=ITEM", help="Remove an item from an option that is a list.")
@click.option("--dry-run", is_flag=True, help="Check whether it would work; change nothing.")
def set_(
    kind: str, name: str, settings: tuple[str, ...], bootstrap: Address, unset: tuple[str, ...],
    add: tuple[str, ...], remove: tuple[str, ...], dry_run: bool,
) -> None:  # fmt: skip
    """Change options of a topic, a broker (NAME is its number) or a group. Other options stay as they are."""
    changes = settings_of(settings, "config set")
    added, removed = settings_of(add, "--add"), settings_of(remove, "--remove")
    total = len(changes) + len(unset) + len(added) + len(removed)
    if not total:
        raise click.UsageError("nothing to change; give OPTION=VALUE, --unset, --add or --remove")
    with connected(bootstrap) as admin:
        admin.alter_configs(
            cast("Kind", kind), name, changes, delete=unset, append=added, subtract=removed, validate_only=dry_run
        )
    say(f"{kind} {name}: {'would change' if dry_run else 'changed'} {count(total, 'option')}")
