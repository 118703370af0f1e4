"""Addresses and logins of clusters: options, environment variables, properties files, profiles in a TOML file.

The first address that is given wins: `--bootstrap`, `--profile`, `bootstrap.servers` in the file of
`--command-config`, `PARTITA_BOOTSTRAP`, `PARTITA_PROFILE`, the profile file's own `default`, and then 127.0.0.1:9092.
Client options come from `-X` (those of the command's own consumer or producer, too), then that properties file, then
the profile, then the environment: PARTITA_ and the
name in capitals, such as PARTITA_SECURITY_PROTOCOL. A profile holds the address and further client options:

    default = "local"

    [profiles.local]
    bootstrap = "127.0.0.1:9092"

    [profiles.staging]
    bootstrap = "kafka-1.example:9093,kafka-2.example:9093"
    request.timeout.ms = 10000
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partita.cli.terminal import complain, is_asked
from partita.client_options import CLIENT_OPTIONS
from partita.lazy import later
from partita.options import unknown_option, whole_names
from partita.properties import parse_properties
from partita.wording import printable

if TYPE_CHECKING:
    from partita.consumer import config as consumer_config
    from partita.producer import config as producer_config
else:
    consumer_config = later("partita.consumer.config")
    producer_config = later("partita.producer.config")

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_SERVERS = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE, PROFILE_VARIABLE, FILE_VARIABLE = "PARTITA_BOOTSTRAP", "PARTITA_PROFILE", "PARTITA_CONFIG"
COMMAND_CONFIG_VARIABLE = "PARTITA_COMMAND_CONFIG"
_ADDRESS_KEYS = ("bootstrap", "bootstrap.servers", "bootstrap_servers")


@dataclass(frozen=True, slots=True)
class Address:
    """The servers to start from, and the options of every client of this cluster."""

    servers: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def client_options(self, **more: Any) -> dict[str, Any]:
        """Options for a consumer, producer or admin client, in Kafka's spelling; `more` wins. Underscores are dots."""
        return {"bootstrap.servers": self.servers, "client.id": "partita-cli", **self.options, **_dotted(more)}


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}


def address_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where the cluster is. The command gets them as one argument, `bootstrap`."""

    def call(*args: Any, clusters: Mapping[str, Address], **options: Any) -> Any:
        (address,) = clusters.values()
        return command(*args, bootstrap=address, **options)

    return _address_options(wraps(command)(call), several=False)


def clusters_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options for a command on several clusters: it gets `clusters`, an address for each profile.

    A single cluster has no name: its key is empty.
    """
    return _address_options(command, several=True)


def _address_options(command: Callable[..., Any], *, several: bool) -> Callable[..., Any]:
    of_profile = "Use this profile's address and options; see partita profiles."

    @click.option(
        "-b",
        "--bootstrap",
        "--bootstrap-server",
        "servers",
        metavar="HOST:PORT",
        help=f"Address of a broker; separate several with commas. [default: {BOOTSTRAP_VARIABLE} or {DEFAULT_SERVERS}]",
    )
    @click.option(
        "--profile",
        "profiles",
        metavar="NAME",
        multiple=several,
        help=of_profile + (" Several are several clusters." if several else ""),
    )
    @click.option(
        "--command-config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar=COMMAND_CONFIG_VARIABLE,
        help="Read client options from this properties file, as Kafka's tools do.",
    )
    @click.option(
        "--password-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Read the password for sasl.username from this file.",
    )
    @click.option("-X", "extra", multiple=True, metavar="NAME=VALUE", help="Set any client option by Kafka's name.")
    @wraps(command)
    def call(
        *args: Any,
        servers: str | None,
        profiles: tuple[str, ...] | str | None,
        config_file: Path | None,
        password_file: Path | None,
        extra: tuple[str, ...],
        **options: Any,
    ) -> Any:
        more = settings_of(extra, "-X")
        if "client_settings" in options:
            for_all = {option.dotted for option in CLIENT_OPTIONS}
            own = {name: more.pop(name) for name in list(more) if name.replace("_", ".") not in for_all}
            options["client_settings"] = own | settings_of(options["client_settings"])
        if password_file is not None:
            more["sasl.password"] = _read(password_file).rstrip("\r\n")
        named: list[str | None] = [profiles] if isinstance(profiles, str) else [*dict.fromkeys(profiles or ())]
        if len(named) > 1 and servers is not None:
            raise click.UsageError("--bootstrap names one cluster: leave it out, or give one --profile")
        found = {name: find_address(servers, name, more, config_file=config_file) for name in (named or [None])}
        addresses = {(name or "") if len(found) > 1 else "": _with_password(one) for name, one in found.items()}
        return command(*args, clusters=addresses, **options)

    return call


def client_settings_option(client: str) -> Callable[[F], F]:
    """Add `--set` for the command's consumer or producer; the command gets it, with those of `-X`, as a mapping."""
    return click.option(
        "--set", "client_settings", multiple=True, metavar="NAME=VALUE",
        help=f"Set a {client} option by Kafka's name, as -X does.",
    )  # fmt: skip


def settings_of(given: tuple[str, ...], option: str = "--set") -> dict[str, str]:
    """Parse NAME=VALUE arguments into a dict. Raises UsageError."""
    settings = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} expects NAME=VALUE, not {setting!r}")
        settings[name.strip()] = value.strip()
    return settings


def find_address(
    servers: str | None, profile: str | None, extra: Mapping[str, str] | None = None, *, config_file: Path | None = None
) -> Address:
    """Return the address and options given by call, environment and files. Raises UsageError."""
    from_file = {} if config_file is None else read_command_config(config_file)
    servers_in_file = from_file.pop("bootstrap.servers", None)
    address = servers or servers_in_file or os.environ.get(BOOTSTRAP_VARIABLE)
    found = Address(address or DEFAULT_SERVERS)
    if profile is not None or address is None:
        found = _from_profile(profile, found)
    more = {**_from_environment(), **_dotted(found.options), **from_file, **_dotted(extra or {})}
    return Address(servers or found.servers, more)


def _from_profile(named: str | None, otherwise: Address) -> Address:
    """The profile of this name, or the one that environment and file say; `otherwise` if there is none."""
    name = named or os.environ.get(PROFILE_VARIABLE)
    profiles, default = read_profiles(profile_file(), required=name is not None)
    chosen = name or default
    if chosen is None:
        return otherwise
    if chosen not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise click.UsageError(f"there is no profile {chosen!r} in {profile_file()}; profiles there: {known}")
    return profiles[chosen]


def _from_environment() -> dict[str, str]:
    """Client options in the environment: PARTITA_SASL_USERNAME for sasl.username."""
    variables = {option.dotted: f"PARTITA_{option.name.upper()}" for option in CLIENT_OPTIONS}
    del variables["bootstrap.servers"]
    return {name: os.environ[variable] for name, variable in variables.items() if variable in os.environ}


def read_command_config(file: Path) -> dict[str, str]:
    """Return the client options in a properties file, without those only a producer or consumer has.

    Warns if others may read a file that holds a secret. Raises UsageError.
    """
    try:
        properties = _dotted(parse_properties(_read(file)))
    except ValueError as error:
        raise click.UsageError(f"{file}: {error}") from None
    known = {option.dotted: option for option in CLIENT_OPTIONS}
    foreign = {option.dotted for option in (*consumer_config.OPTIONS, *producer_config.OPTIONS)}
    for name in properties.keys() - known.keys() - foreign:
        raise click.UsageError(
            f"{file}: {unknown_option(name, [text.replace('.', '_') for text in (*known, *foreign)])}"
        )
    options = {name: value for name, value in properties.items() if name in known}
    is_secret = any(known[name].kind == "secret" for name in options)
    if is_secret and os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        complain(f"warning: {file} holds a secret and others may read it; run: chmod 600 {file}")
    return options


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise click.UsageError(f"cannot read {file}: {error}") from None


def _with_password(address: Address) -> Address:
    """Return the address with a password typed by the user, if there is a user name without one and a terminal."""
    options = address.options
    if "sasl.username" not in options or "sasl.password" in options or not is_asked():
        return address
    password = click.prompt(printable(f"Password of {options['sasl.username']}"), hide_input=True, err=True)
    return Address(address.servers, {**options, "sasl.password": password})


def profile_file() -> Path:
    """The file with the profiles: `PARTITA_CONFIG`, or partita/config.toml in the user's configuration folder."""
    if FILE_VARIABLE in os.environ:
        return Path(os.environ[FILE_VARIABLE])
    folder = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("APPDATA") if os.name == "nt" else None)
    return (Path(folder) if folder else Path.home() / ".config") / "partita" / "config.toml"


def read_profiles(file: Path, *, required: bool = False) -> tuple[dict[str, Address], str | None]:
    """Return the profiles of a file by name, and the default one's name. Raises UsageError for errors in the file.

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
    options = dict(whole_names(table))
    servers = [options.pop(key) for key in _ADDRESS_KEYS if key in options]
    known = {option.name for option in CLIENT_OPTIONS}
    for spelled in options:
        if spelled.replace(".", "_") not in known:
            raise click.UsageError(f"{file}: profile {name!r}: {unknown_option(spelled, known)}")
    if len(servers) != 1 or not isinstance(servers[0], str):
        raise click.UsageError(f'{file}: profile {name!r} needs one bootstrap = "host:port"')
    return Address(servers[0], options)
