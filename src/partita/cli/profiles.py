"""`partita profiles`: the clusters named in the profile file. See `partita.cli.address` for the file."""

from __future__ import annotations

import click

from partita.cli.address import profile_file, read_profiles
from partita.cli.connecting import json_option
from partita.cli.terminal import print_json, print_table, say


@click.command()
@json_option
def profiles(as_json: bool) -> None:
    """List the clusters named in the profile file.

    The file is partita/config.toml in the user's configuration folder (~/.config on Linux), or what PARTITA_CONFIG
    names. It has one table per profile, such as [profiles.local] with bootstrap = "127.0.0.1:9092" and any client
    options by Kafka's names. The line default = "local" names the profile that is used if nothing else is given.
    """
    file = profile_file()
    found, default = read_profiles(file)
    if as_json:
        rows = [{"name": name, "bootstrap": address.servers, "is_default": name == default,
                 "options": sorted(address.options)} for name, address in found.items()]  # fmt: skip
        print_json(rows)
    elif not found:
        say(f"no profiles; {file} has none or does not exist")
    else:
        print_table(
            ["profile", "bootstrap", "default", "options"],
            [(name, address.servers, "yes" if name == default else None, ", ".join(sorted(address.options)) or None)
             for name, address in found.items()],
        )  # fmt: skip
