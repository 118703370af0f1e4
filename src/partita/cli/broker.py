"""`partita broker`: its options, and the settings that follow from them, its file and its variables.

`partita.cli.service.serving` runs the broker, and reads the usual options alone by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from partita.broker.config import ConfigError
from partita.broker.launch import BrokerSettings, StartError
from partita.cli.service.broker_config import key_of, print_effective
from partita.cli.service.broker_file import BrokerFile, read_broker_file
from partita.cli.service.logs import JSON, LEVELS, TEXT
from partita.cli.service.serving import DEFAULT_PORT, refuse, run
from partita.cli.variables import TOKEN_VARIABLE
from partita.properties import parse_properties

FILE = "partita.broker.file"


def _read_config(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Let the file's values be the defaults of the other options."""
    if path is not None:
        try:
            file = read_broker_file(path, COMMAND_KEYS)
            ctx.default_map = {**(ctx.default_map or {}), **_cast(ctx, file)}
        except ConfigError as error:
            refuse(str(error))
        ctx.meta[FILE] = file
    return path


def _cast(ctx: click.Context, file: BrokerFile) -> dict[str, object]:
    """The values of [broker] by the names of parameters. Raises ConfigError for one of a wrong type."""
    found: dict[str, object] = {}
    for param in ctx.command.params:
        key = key_of(param)
        if key in file.command:
            value = file.command[key]
            try:
                if isinstance(param, click.Option) and param.is_flag and not isinstance(value, bool):
                    raise click.BadParameter(f"{value!r} is neither true nor false.")
                if isinstance(param, click.Option) and param.multiple and not isinstance(value, list):
                    raise click.BadParameter(f"{value!r} is no list.")
                found[str(param.name)] = param.type_cast_value(ctx, value)
            except click.BadParameter as error:
                raise ConfigError(f"{file.path}: [broker] {key}: {error.message}") from None
    return found


@click.command(context_settings={"auto_envvar_prefix": "PARTITA_BROKER"})
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    is_eager=True,
    callback=_read_config,
    expose_value=False,
    help="Read options, listeners, users and topics from this TOML file.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; --set listeners gives several."
)
@click.option("--data-dir", type=click.Path(file_okay=False), help="Keep topics and groups in this directory.")
@click.option("--memory", is_flag=True, help="Keep everything in memory (the default without --data-dir).")
@click.option(
    "--durability",
    type=click.Choice(["memory", "os", "sync"]),
    help="When a write is acknowledged: memory = at once (data is lost at exit), os = once the operating system has it "
    "(survives a process crash), sync = once it is on the disk.",
)
@click.option(
    "--nodes", type=click.IntRange(1, 32), default=1, show_default=True, help="Number of nodes that share one store."
)
@click.option("--kafka-defaults", is_flag=True, help="Use Kafka's defaults where Partita's differ.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a broker option by Kafka's name.")
@click.option(
    "--notes",
    "notes_file",
    type=click.Path(dir_okay=False),
    help="Append events, such as rebalances, to this file as JSON lines.",
)
@click.option("--tls", is_flag=True, help="Speak TLS, with throw-away certificates for localhost.")
@click.option(
    "--tls-dir",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Speak TLS, with the certificates that `partita certs make DIR` made.",
)
@click.option("--mtls", is_flag=True, help="The same, and ask clients for certificates of the same authority.")
@click.option(
    "--users",
    "users_file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask for SASL; these users may log in. One name=password per line.",
)
@click.option(
    "--acl",
    "acls",
    multiple=True,
    metavar="LINE",
    help="Turn on the authorizer and add ACLs: 'allow User:alice read,describe topic orders-*'.",
)
@click.option(
    "--assignor",
    "assignors",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Offer a server-side assignor of your own to KIP-848 groups.",
)
@click.option("--admin-port", type=click.IntRange(0, 65535), help="Serve the control endpoint on this loopback port.")
@click.option(
    "--admin-token",
    envvar=TOKEN_VARIABLE,
    show_envvar=True,
    help="Token of the control endpoint; without it one is generated and printed at the start.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="What goes to stderr: info is one line per event (groups, topics, leaders, logins refused), warning what may "
    "need a person.",
)
@click.option(
    "--log-format",
    type=click.Choice([TEXT, JSON]),
    default=TEXT,
    show_default=True,
    help="Lines for people, or one JSON object per line; then nothing but the log is printed.",
)
@click.option(
    "--print-config",
    is_flag=True,
    help="Check the configuration, print it as TOML with where each value is from, and end.",
)
@click.pass_context
def broker(ctx: click.Context, /, print_config: bool, **given: Any) -> None:
    """Run a broker that any Kafka client can use. SIGTERM or Ctrl-C stops it cleanly.

    Every option but --set can also be in the file of --config, and in a variable such as PARTITA_BROKER_DATA_DIR. The
    command line counts before the environment, and that before the file.
    """
    file = _file_of(ctx)
    try:
        options = {**file.options, **_set_options(given["settings"])}
        _check_together(ctx, given, file, options)
        users = _Users(given["users_file"], file)
        chosen = _settings(given, options, users.read(), file)
        if print_config:
            print_effective(ctx, file, chosen)
            return
    except (ConfigError, StartError) as error:
        refuse(str(error))
    run(chosen, users.read if users.exist else None, given["log_level"], given["log_format"])


def _file_of(ctx: click.Context) -> BrokerFile:
    found = ctx.meta.get(FILE, BrokerFile())
    assert isinstance(found, BrokerFile), "only `_read_config` puts it there"
    return found


def _set_options(settings: Iterable[str]) -> dict[str, object]:
    options: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set expects NAME=VALUE, not {setting!r}")
        options[name.strip()] = value
    return options


def _check_together(ctx: click.Context, given: dict[str, Any], file: BrokerFile, options: Mapping[str, object]) -> None:
    """Refuse contradicting options. A value given on the command line takes precedence over the file's."""
    if given["memory"] and given["data_dir"] is not None:
        near = [name for name in ("memory", "data_dir") if _is_near(ctx, name)]
        if len(near) != 1:
            raise ConfigError("--memory and --data-dir cannot be combined")
        if near == ["memory"]:
            given["data_dir"] = None
        given["memory"] = near == ["memory"]
    if given["tls"] and given["tls_dir"] is not None:
        raise ConfigError("--tls makes certificates and --tls-dir has some; give one or the other")
    if "listeners" in options and (_is_near(ctx, "host") or _is_near(ctx, "port")):
        where = "--set listeners" if "listeners" not in file.options else f"[listeners] of {file.path}"
        raise ConfigError(f"{where} replaces --host and --port; give one or the other")


def _is_near(ctx: click.Context, name: str) -> bool:
    """Whether an option was given on the command line or by the environment."""
    return ctx.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def _settings(
    given: Mapping[str, Any], options: Mapping[str, object], users: dict[str, str], file: BrokerFile
) -> BrokerSettings:
    same = (
        "host", "port", "data_dir", "durability", "nodes", "kafka_defaults", "notes_file", "admin_port", "admin_token",
        "tls", "tls_dir", "mtls", "acls", "assignors",
    )  # fmt: skip
    return BrokerSettings(**{name: given[name] for name in same}, users=users, options=options, topics=file.topics)


class _Users:
    """The users who may log in: from the file of --users, else from [users] of the configuration."""

    def __init__(self, path: str | None, file: BrokerFile) -> None:
        if path is not None and file.users and "users" in file.command:
            raise ConfigError(f"{file.path}: users in [broker] names a file, and there is a table [users]; give one")
        self._path = path
        self._file = file
        self.exist = path is not None or bool(file.users)

    def read(self) -> dict[str, str]:
        """Return names and passwords as the files hold them now. Raises ConfigError."""
        if self._path is not None:
            return _users_of(self._path)
        if self._file.users:
            return dict(read_broker_file(self._file.path, COMMAND_KEYS).users)
        return {}


def _users_of(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            users = parse_properties(file.read())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--users {path}: {error}") from None
    if not users:
        raise ConfigError(f"--users {path} names nobody; one name=password per line is expected")
    return users


COMMAND_KEYS = frozenset(key_of(param) for param in broker.params) - {"config", "print-config", "set"}
"""Keys allowed in [broker] of a configuration file."""
