"""The configuration file of `partita broker`: TOML, each key checked, each unknown one refused with the nearest name.

Tables: [broker] holds the command's own options, [options] the broker's by Kafka's names, [listeners.NAME] where it
listens, [users] who may log in, [topics.NAME] topics to be created at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from partita.broker.config import BROKER_OPTIONS, ConfigError, find, parse, parse_topic_settings, removed_name
from partita.broker.wire.listeners import PROTOCOLS
from partita.lazy import later

if TYPE_CHECKING:
    import difflib
    import tomllib

    from partita import options as client_options
    from partita import references
    from partita.broker import bootstrap_topics
else:
    bootstrap_topics = later("partita.broker.bootstrap_topics")
    client_options = later("partita.options")
    difflib = later("difflib")
    references = later("partita.references")
    tomllib = later("tomllib")

TABLES = ("broker", "options", "listeners", "users", "topics")
LISTENER_KEYS = ("bind", "advertised", "protocol", "options")
TOPIC_KEYS = ("partitions", "replication", "options")


class BrokerFile(NamedTuple):
    """The contents of a file. `command` holds values of [broker] by the command's own words, dashes written."""

    path: str = ""
    command: Mapping[str, object] = {}
    options: Mapping[str, object] = {}
    users: Mapping[str, str] = {}
    topics: tuple[bootstrap_topics.WantedTopic, ...] = ()


def read_broker_file(path: str, command_keys: Iterable[str]) -> BrokerFile:
    """Read and check a file. Raises ConfigError with the file, the error, and the nearest name."""
    try:
        with open(path, encoding="utf-8") as file:
            tables = tomllib.loads(file.read())
        return _checked(path, tables, sorted(command_keys))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{path}: {reason}") from None


def _checked(path: str, tables: Mapping[str, Any], command_keys: list[str]) -> BrokerFile:
    _check_keys(tables, TABLES, "table")
    for name in TABLES:
        _table(tables.get(name, {}), name)
    command = dict(tables.get("broker", {}))
    _check_keys(command, command_keys, "key of [broker]")
    options = _options(tables.get("options", {}), "options")
    from_listeners = _listeners(tables.get("listeners", {}))
    both = sorted(options.keys() & from_listeners.keys())
    if both:
        raise ConfigError(f"{both[0]} is in [options], and [listeners] says it, too")
    options |= from_listeners
    if "listeners" in options and command.keys() & {"host", "port"}:
        raise ConfigError("listeners take the place of host and port in [broker]; give one or the other")
    command = {key: references.resolve_option(f"[broker] {key}", value) for key, value in command.items()}
    topics = tuple(_topic(name, _table(topic, f"topics.{name}")) for name, topic in tables.get("topics", {}).items())
    return BrokerFile(path, command, options, _users(tables.get("users", {})), topics)


def _check_keys(given: Iterable[str], known: Iterable[str], what: str) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name.replace("_", "-"), known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
            raise ConfigError(f"unknown {what}: {name}{hint}")


def _table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{name} is a table, as in [{name}], and not {value!r}")
    return value


def _options(table: Mapping[str, Any], where: str) -> dict[str, object]:
    """Options of the broker, each checked alone."""
    found = {}
    for name, value in client_options.whole_names(table):
        value = references.resolve_option(f"[{where}] {name}", value)
        if removed_name(name) is None:
            parse(find(name, BROKER_OPTIONS), value)
        found[name] = value
    return found


def _listeners(table: Mapping[str, Any]) -> dict[str, object]:
    """Kafka's options for listeners."""
    bound, advertised, protocols = [], [], []
    options: dict[str, object] = {}
    for name, given in table.items():
        listener = _table(given, f"listeners.{name}")
        _check_keys(listener, LISTENER_KEYS, f"key of [listeners.{name}]")
        if "bind" not in listener:
            raise ConfigError(f'[listeners.{name}] needs bind, such as bind = "127.0.0.1:9092"')
        protocol = str(listener.get("protocol", name if name in PROTOCOLS else "PLAINTEXT"))
        _check_keys([protocol], PROTOCOLS, f"protocol of [listeners.{name}]")
        bound.append(f"{name}://{listener['bind']}")
        protocols.append(f"{name}:{protocol}")
        if "advertised" in listener:
            advertised.append(f"{name}://{listener['advertised']}")
        prefix = f"listener.name.{name.lower()}."
        own = _table(listener.get("options", {}), f"listeners.{name}.options")
        for option, value in client_options.whole_names(own):
            options |= _options({f"{prefix}{option}": value}, f"listeners.{name}.options")
    if bound:
        options["listeners"] = ",".join(bound)
        options["listener.security.protocol.map"] = ",".join(protocols)
    if advertised:
        if len(advertised) < len(bound):
            raise ConfigError("if one listener has an advertised address, each needs one")
        options["advertised.listeners"] = ",".join(advertised)
    return options


def _users(table: Mapping[str, Any]) -> dict[str, str]:
    for name, password in table.items():
        if not isinstance(password, str):
            raise ConfigError(f"the password of [users] {name} is no text")
    return {name: str(references.resolve_option(f"[users] {name}", password)) for name, password in table.items()}


def _topic(name: str, table: Mapping[str, Any]) -> bootstrap_topics.WantedTopic:
    _check_keys(table, TOPIC_KEYS, f"key of [topics.{name}]")
    counts = {key: table.get(key, -1) for key in ("partitions", "replication")}
    for key, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool):
            raise ConfigError(f"{key} of [topics.{name}] is a whole number, not {count!r}")
    settings = dict(client_options.whole_names(_table(table.get("options", {}), f"topics.{name}.options")))
    try:
        parse_topic_settings(settings)
    except ConfigError as error:
        raise ConfigError(f"[topics.{name}.options]: {error}") from None
    return bootstrap_topics.WantedTopic(name, counts["partitions"], counts["replication"], settings)
