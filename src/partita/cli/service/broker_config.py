"""The configuration that `partita broker` would run with, as TOML, each value with its origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import click
from click.core import ParameterSource

from partita.broker.config import BrokerConfig, as_text, broker_option
from partita.broker.launch import BrokerSettings, check_settings
from partita.broker.options import PASSWORD
from partita.cli.service.broker_file import BrokerFile
from partita.cli.terminal import say

HIDDEN = "***"
SECRETS = frozenset({"admin-token"})
LEFT_OUT = frozenset({"config", "print-config", "set", "help"})
ORIGINS = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
}


def key_of(param: click.Parameter) -> str:
    """Return the key of a command option in a configuration file: its name without the leading dashes."""
    return max(param.opts, key=len).removeprefix("--")


def print_effective(ctx: click.Context, file: BrokerFile, settings: BrokerSettings) -> None:
    """Print the settings after the checks of a start that need nothing opened.

    Raises ConfigError.
    """
    config = check_settings(settings)
    for line in effective(ctx, file, settings, config):
        say(line)


def effective(ctx: click.Context, file: BrokerFile, settings: BrokerSettings, config: BrokerConfig) -> Iterator[str]:
    """Yield the lines, without secrets; an option that is not given and has no default is a comment."""
    yield "[broker]"
    replaced = {"host", "port"} if "listeners" in settings.options else set()
    for param in ctx.command.params:
        key = key_of(param)
        if key not in LEFT_OUT | replaced:
            yield _of_command(ctx, key, str(param.name))
    yield "\n[options]"
    set_here = {setting.partition("=")[0].strip().replace("_", ".") for setting in ctx.params["settings"]}
    for name in sorted({*config.given, *config.differs_from_kafka()} - ({"listeners"} - settings.options.keys())):
        option = broker_option(name)
        is_secret = option is not None and option.kind == PASSWORD
        value = HIDDEN if is_secret else as_text(config.get(name))
        given = "--set" if name in set_here else "file" if name in file.options else "Partita's default"
        yield f"{_toml(name)} = {_toml(value)}  # {given}"
    if settings.users:
        yield "\n[users]"
        yield from (f"{_toml(name)} = {_toml(HIDDEN)}" for name in settings.users)
    for topic in settings.topics:
        yield f"\n[topics.{_toml(topic.name)}]\npartitions = {topic.partitions}\nreplication = {topic.replication}"
        if topic.settings:
            values = ", ".join(f"{_toml(name)} = {_toml(value)}" for name, value in topic.settings.items())
            yield f"options = {{{values}}}"


def _of_command(ctx: click.Context, key: str, name: str) -> str:
    value = ctx.params.get(name)
    source = ctx.get_parameter_source(name)
    origin = ORIGINS.get(source, "default") if source is not None else "default"
    if value is None:
        return f"# {key} is not given"
    return f"{key} = {_toml(HIDDEN if key in SECRETS else value)}  # {origin}"


def _toml(value: object) -> str:
    """Return a value in TOML; JSON writes texts, numbers, truth values and lists the same way."""
    if isinstance(value, Mapping):
        raise AssertionError("tables are written line by line")
    return json.dumps(list(value) if isinstance(value, tuple) else value)
