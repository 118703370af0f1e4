"""Where the cluster is: `--bootstrap`, environment variables, and profiles in a TOML file.

The first of these that is given wins: `--bootstrap`, `--profile`, `PARTITA_BOOTSTRAP`, `PARTITA_PROFILE`, the file's
own `default`, and then 127.0.0.1:9092. A profile holds the address and further client options:

    default = "local"

    [profiles.local]
    bootstrap = "127.0.0.1:9092"

    [profiles.staging]
    bootstrap = "kafka-1.example:9093,kafka-2.example:9093"
    request.timeout.ms = 10000
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click

from partita.client_options import CLIENT_OPTIONS
from partita.options import unknown_option

DEFAULT_SERVERS = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE, PROFILE_VARIABLE, FILE_VARIABLE = "PARTITA_BOOTSTRAP", "PARTITA_PROFILE", "PARTITA_CONFIG"
_ADDRESS_KEYS = ("bootstrap", "bootstrap.servers", "bootstrap_servers")


@dataclass(frozen=True, slots=True)
class Address:
    """The servers to start from, and the options every client of this cluster is given."""

    servers: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def client_options(self, **more: Any) -> dict[str, Any]:
        """Options for a consumer, producer or admin client, in Kafka's spelling; `more` wins. Underscores are dots."""
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {"bootstrap.servers": self.servers, "client.id": "partita-cli", **self.options, **named}


def address_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the cluster is. The command gets them as one argument, `bootstrap`."""

    @click.option(
        "-b",
        "--bootstrap",
        "--bootstrap-server",
        "servers",
        metavar="HOST:PORT",
        help=f"Address of a broker; separate several with commas. [default: {BOOTSTRAP_VARIABLE} or {DEFAULT_SERVERS}]",
    )
    @click.option(
        "--profile", metavar="NAME", help="Use the address and options of this profile; see partita profiles."
    )
    @click.option("-X", "extra", multiple=True, metavar="NAME=VALUE", help="Set a client option by Kafka's name.")
    @wraps(command)
    def call(*args: Any, servers: str | None, profile: str | None, extra: tuple[str, ...], **options: Any) -> Any:
        return command(*args, bootstrap=find_address(servers, profile, settings_of(extra, "-X")), **options)

    return call


def settings_of(given: tuple[str, ...], option: str = "--set") -> dict[str, str]:
    """Parse NAME=VALUE arguments into a dict. Raises UsageError."""
    settings = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} expects NAME=VALUE, not {setting!r}")
        settings[name.strip()] = value.strip()
    return settings


def find_address(servers: str | None, profile: str | None, extra: Mapping[str, str] | None = None) -> Address:
    """The address that the options, the environment and the profile file give. Raises UsageError."""
    if servers is not None and profile is None:
        return Address(servers, dict(extra or {}))
    if profile is None and servers is None and BOOTSTRAP_VARIABLE in os.environ:
        return Address(os.environ[BOOTSTRAP_VARIABLE], dict(extra or {}))
    name = profile or os.environ.get(PROFILE_VARIABLE)
    profiles, default = read_profiles(profile_file(), required=name is not None)
    chosen = name or default
    if chosen is None:
        return Address(DEFAULT_SERVERS, dict(extra or {}))
    if chosen not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise click.UsageError(f"there is no profile {chosen!r} in {profile_file()}; profiles there: {known}")
    found = profiles[chosen]
    return Address(servers or found.servers, {**found.options, **(extra or {})})


def profile_file() -> Path:
    """The file with the profiles: `PARTITA_CONFIG`, or partita/config.toml in the user's configuration folder."""
    if FILE_VARIABLE in os.environ:
        return Path(os.environ[FILE_VARIABLE])
    folder = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("APPDATA") if os.name == "nt" else None)
    return (Path(folder) if folder else Path.home() / ".config") / "partita" / "config.toml"


def read_profiles(file: Path, *, required: bool = False) -> tuple[dict[str, Address], str | None]:
    """The profiles of a file by name, and the default one's name. Raises UsageError for what is wrong in the file.

    A file that does not exist holds no profiles, unless it is `required`.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise click.UsageError(f"there is no profile file {file}; see: partita profiles --help") from None
        return {}, None
    except (OSError, ValueError) as error:
        raise click.UsageError(f"cannot read the profile file {file}: {error}") from None
    unknown = content.keys() - {"default", "profiles"}
    if unknown:
        raise click.UsageError(f"{file}: expected default and [profiles.NAME], not {', '.join(sorted(unknown))}")
    tables = content.get("profiles", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise click.UsageError(f"{file}: expected tables such as [profiles.local]")
    return {name: _profile(file, name, table) for name, table in tables.items()}, content.get("default")


def _profile(file: Path, name: str, table: Mapping[str, Any]) -> Address:
    options = dict(_flat("", table))
    servers = [options.pop(key) for key in _ADDRESS_KEYS if key in options]
    known = {option.name for option in CLIENT_OPTIONS}
    for spelled in options:
        if spelled.replace(".", "_") not in known:
            raise click.UsageError(f"{file}: profile {name!r}: {unknown_option(spelled, known)}")
    if len(servers) != 1 or not isinstance(servers[0], str):
        raise click.UsageError(f'{file}: profile {name!r} needs one bootstrap = "host:port"')
    return Address(servers[0], options)


def _flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """TOML reads `security.protocol` as a table in a table; join the names again."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value
