"""The broker's settings and the topics': parsed, checked, looked up by Kafka's names.

Values come from `--set name=value`, keyword arguments (`num_partitions=3`), CreateTopics and IncrementalAlterConfigs. A
wrong value is refused with its bound in the message, an unknown name with the nearest valid one. (Kafka: ConfigDef.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING

from partita.broker.options import (
    BOOLEAN,
    BROKER,
    DOUBLE,
    ELSEWHERE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    REMOVED,
    SHORT,
    STRING,
    TOPIC,
    Option,
    Value,
)
from partita.lazy import later
from partita.records.header import CODEC_NAMES
from partita.secret import Secret

if TYPE_CHECKING:
    from partita import options as client_options
    from partita.records import compression
else:
    client_options = later("partita.options")
    compression = later("partita.records.compression")

BROKER_OPTIONS: dict[str, Option] = {option.name: option for option in BROKER}
TOPIC_OPTIONS: dict[str, Option] = {option.name: option for option in TOPIC}
LISTENER_PREFIX = "listener.name."
PER_LISTENER = tuple(
    option for option in BROKER if option.name.startswith(("ssl.", "sasl.", "connections.max.reauth."))
)
"""Options that a listener can have for itself: "listener.name.X.OPTION", X in lower case."""

PARTITA_DEFAULTS: dict[str, Value] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.replication.factor": 1,
}
"""Deviation: Partita defaults `group.initial.rebalance.delay.ms` to 0, `offsets.topic.replication.factor`,
`transaction.state.log.replication.factor`, `transaction.state.log.min.isr`,
`share.coordinator.state.topic.replication.factor` and `share.coordinator.state.topic.min.isr` to 1, where Kafka's
defaults are 3000, 3, 3, 2, 3 and 2; `--kafka-defaults` brings these back.

An embedded broker is mostly alone and mostly in tests, which should not wait for members that never come.
"""

_CODECS = ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec")
_WITH_LZ4 = frozenset({("compression.type", "lz4"), *((name, 3) for name in _CODECS)})
"""Settings that make the broker compress with lz4, which is a package of its own."""
_TIMES = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
_WITHIN_BOUNDS = (
    *(("consumer", what) for what in _TIMES),
    *(("share", what) for what in _TIMES),
    *(("share", what) for what in ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")),
)
"""Options of groups that lie between two others, with `.min.` and `.max.` in their names."""
_MORE_THAN = (("group.share.max.share.sessions", "group.share.max.size"),)
_BITS = {INT: 31, SHORT: 15, LONG: 63}
_KIND_NAMES = {INT: "INT", SHORT: "SHORT", LONG: "LONG", DOUBLE: "DOUBLE", BOOLEAN: "BOOLEAN"}


class ConfigError(ValueError):
    """A name or value that is not accepted; the message says which ones are."""


def parse(option: Option, given: object) -> Value:
    """Turn `given` (text, or already a value) into the option's type; raise ConfigError outside its bounds."""
    value = _convert(option, given)
    if isinstance(value, str) and option.choices:
        value = _choice(option, value)
    elif isinstance(value, tuple) and option.choices:
        value = tuple(_choice(option, item) for item in value)
    elif isinstance(value, int | float) and value != option.also:
        if option.low is not None and value < option.low:
            raise ConfigError(f"Invalid value {given} for configuration {option.name}: must be at least {option.low}")
        if option.high is not None and value > option.high:
            raise ConfigError(f"Invalid value {given} for configuration {option.name}: must be at most {option.high}")
    if option.name.endswith(".throttled.replicas") and isinstance(value, tuple) and not _are_replicas(value):
        expected = "must be '*' or a list of replicas as [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        raise ConfigError(f"Invalid value {given} for configuration {option.name}: {expected}")
    if (option.name, value) in _WITH_LZ4 and find_spec("lz4") is None:
        raise ConfigError(f"Invalid value {given} for configuration {option.name}: {compression.LZ4_MISSING}")
    return value


def _are_replicas(items: tuple[str, ...]) -> bool:
    numbers = (part for item in items for part in item.partition(":")[::2])
    return items == ("*",) or all(part.isascii() and part.isdigit() for part in numbers)


def items_of(text: str) -> list[str]:
    """The items of a list as they were given, empty ones too; none of an empty text."""
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _convert(option: Option, given: object) -> Value:
    if given is None:
        return None
    text = given if isinstance(given, str) else None
    match option.kind:
        case kind if kind == BOOLEAN:
            if isinstance(given, bool):
                return given
            lowered = (text or "").strip().lower()
            if lowered not in ("true", "false"):
                raise ConfigError(f"Invalid value {given} for configuration {option.name}: must be true or false")
            return lowered == "true"
        case kind if kind == LIST:
            if text is None:
                return tuple(str(item) for item in given) if isinstance(given, Iterable) else _refuse(option, given)
            items = items_of(text)
            if option.choices and "" in items:
                raise ConfigError(f"Configuration '{option.name}' values must not be empty.")
            return tuple(item for item in items if item)
        case kind if kind == STRING:
            return str(given).strip()
        case kind if kind == PASSWORD:
            return given if isinstance(given, Secret) else Secret(str(given))
        case _:
            return _number(option, given)


def _number(option: Option, given: object) -> int | float:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return _refuse(option, given)
    try:
        if option.kind == DOUBLE:
            return float(given)
        value = int(given)
    except ValueError:
        return _refuse(option, given)
    if value != given and not isinstance(given, str):
        return _refuse(option, given)
    if not -(1 << _BITS[option.kind]) <= value < 1 << _BITS[option.kind]:
        return _refuse(option, given)
    return value


def _refuse(option: Option, given: object) -> int:
    raise ConfigError(
        f"Invalid value {given} for configuration {option.name}: Not a number of type {_KIND_NAMES.get(option.kind)}"
        if option.kind != LIST
        else f"Invalid value {given} for configuration {option.name}: must be a comma-separated list"
    )


def _choice(option: Option, value: str) -> str:
    for choice in option.choices:
        if value == choice or (option.name.endswith("migration.policy") and value.lower() == choice):
            return choice
    raise ConfigError(
        f"Invalid value {value} for configuration {option.name}: must be one of {', '.join(option.choices)}"
    )


def as_text(value: Value) -> str | None:
    """Return a value as Kafka prints it; None for a secret."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Secret):
        return None
    return ",".join(value) if isinstance(value, tuple) else str(value)


def unknown_name(name: str, options: Mapping[str, Option]) -> ConfigError:
    """Return the error for an unknown name, with the nearest one that exists."""
    close = client_options.nearest(name, options, 0.5)
    what = "topic config name:" if options is TOPIC_OPTIONS else "configuration"
    return ConfigError(f"Unknown {what} {name}" + (f"; did you mean {close[0]}?" if close else ""))


def find(name: str, options: Mapping[str, Option]) -> Option:
    """Look an option up by Kafka's name, dots or underscores; a broker's also with the prefix of a listener."""
    option = options.get(name) or options.get(name.replace("_", "."))
    if option is None and options is BROKER_OPTIONS:
        option = of_listener(name)
    if option is None:
        raise unknown_name(name.replace("_", "."), options)
    return option


def of_listener(name: str) -> Option | None:
    """The option behind "listener.name.X.OPTION", called by its whole name; None for anything else.

    Certificates of a listener can be replaced while it runs, so these options are changeable.
    """
    if not name.startswith(LISTENER_PREFIX):
        return None
    found = [option for option in PER_LISTENER if name.endswith(f".{option.name}")]
    if not found:
        return None
    option = max(found, key=lambda each: len(each.name))
    is_store = option.name.startswith(("ssl.keystore.", "ssl.truststore.", "ssl.key."))
    return option._replace(name=name, changeable=is_store)


def broker_option(name: str) -> Option | None:
    """The broker option of this very name, if there is one."""
    return BROKER_OPTIONS.get(name) or of_listener(name)


def check_elsewhere(name: str, value: str | None) -> None:
    """Raise ConfigError where Kafka refuses this value of a broker option that has no use here."""
    if name.startswith(LISTENER_PREFIX):
        name = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    option = ELSEWHERE.get(name) or BROKER_OPTIONS.get(name)
    if option is not None:
        parse(option, value)


def removed_name(name: str) -> str | None:
    """The option removed from Kafka that `name` spells, with dots or underscores; None for any other name."""
    dotted = name.replace("_", ".")
    return name if name in REMOVED else dotted if dotted in REMOVED else None


class _Settings(ABC):
    """Typed look-up; subclasses say where a value comes from."""

    @abstractmethod
    def get(self, name: str) -> Value:
        """The value, in its option's type."""

    def int(self, name: str) -> int:
        value = self.get(name)
        assert isinstance(value, int), f"{name} is no whole number: {value!r}"
        return value

    def float(self, name: str) -> float:
        value = self.get(name)
        assert isinstance(value, float | int), f"{name} is no number: {value!r}"
        return value

    def bool(self, name: str) -> bool:
        return bool(self.get(name))

    def text(self, name: str) -> str:
        value = self.get(name)
        assert isinstance(value, str), f"{name} is no text: {value!r}"
        return value

    def list(self, name: str) -> tuple[str, ...]:
        value = self.get(name)
        assert isinstance(value, tuple), f"{name} is no list: {value!r}"
        return value


class BrokerConfig(_Settings):
    """The broker's settings: `config.int("num.partitions")`.

    `given` are settings of the start; those changed while running are `of_nodes`, which count first, or `cluster_wide`.
    `defaults` differ from Kafka's unless `kafka_defaults` is true.
    """

    def __init__(self, given: Mapping[str, object] | None = None, *, kafka_defaults: bool = False) -> None:
        self.kafka_defaults = kafka_defaults
        self.given: dict[str, Value] = {}
        self.of_nodes: dict[str, Value] = {}
        self.cluster_wide: dict[str, Value] = {}
        self.defaults: dict[str, Value] = {option.name: option.default for option in BROKER_OPTIONS.values()}
        if not kafka_defaults:
            self.defaults.update(PARTITA_DEFAULTS)
        self._listeners: list[Callable[[str], None]] = []
        self.removed: dict[str, str] = {}
        """Options given that Kafka has removed, each with the version that did so. They have no effect."""
        for name, value in (given or {}).items():
            removed = removed_name(name)
            if removed is not None:
                self.removed[removed] = REMOVED[removed]
                continue
            option = find(name, BROKER_OPTIONS)
            self.given[option.name] = parse(option, value)
        self._values = {**self.defaults, **self.given}
        self.of_topics = _OfTopics(self)
        self._check_together()

    def get(self, name: str) -> Value:
        """The value in force now, in the type of its option. Raises KeyError for an unknown name."""
        return self._values[name]

    def differs_from_kafka(self) -> dict[str, Value]:
        """The settings that differ from Kafka's defaults, for the start banner, which lists the listeners anyway."""
        options = (option for option in BROKER_OPTIONS.values() if not option.name.endswith("listeners"))
        return {
            option.name: self._values[option.name] for option in options if self._values[option.name] != option.default
        }

    def with_prefix(self, prefix: str, name: str) -> Value:
        """The value of `name` behind a prefix; None where it is not set."""
        return self._values.get(f"{prefix}{name}")

    def changed(self, changes: Mapping[str, Value]) -> BrokerConfig:
        """The settings as they would be after these changes (None: not set). Nothing here changes."""
        as_if = copy(self)
        as_if._values = {**self._values, **changes}
        as_if.of_topics = _OfTopics(as_if)
        return as_if

    @property
    def dynamic(self) -> dict[str, Value]:
        """The settings changed while running."""
        return {**self.cluster_wide, **self.of_nodes}

    def change(self, name: str, value: Value, *, of_nodes: bool = False) -> None:
        """Set an option while running, or with None take the change back. Values are parsed already."""
        option = broker_option(name)
        if isinstance(value, str) and option is not None and option.kind == PASSWORD:
            value = Secret(value)
        changed = self.of_nodes if of_nodes else self.cluster_wide
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
        self._values = {**self.defaults, **self.given, **self.dynamic}
        self.of_topics.clear()
        for listener in self._listeners:
            listener(name)

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener(name)` after each change while running."""
        self._listeners.append(listener)

    def _check_together(self) -> None:
        for name in _CODECS:
            if not 0 <= self.int(name) < len(CODEC_NAMES):
                raise ConfigError(
                    f"{name} {self.int(name)} must be one of "
                    + ", ".join(f"{number} ({codec})" for number, codec in enumerate(CODEC_NAMES))
                )
        low, high = self.int("group.min.session.timeout.ms"), self.int("group.max.session.timeout.ms")
        if low > high:
            raise ConfigError(f"group.min.session.timeout.ms {low} must be at most group.max.session.timeout.ms {high}")
        for kind, what in _WITHIN_BOUNDS:
            name = f"group.{kind}.{what}"
            low, high = self.int(f"group.{kind}.min.{what}"), self.int(f"group.{kind}.max.{what}")
            if not low <= self.int(name) <= high:
                raise ConfigError(f"{name} {self.int(name)} must be between {low} and {high} (its .min. and .max.)")
        for more, less in _MORE_THAN:
            if self.int(more) < self.int(less):
                raise ConfigError(f"{more} {self.int(more)} must be at least {less} {self.int(less)}")


class _OfTopics(dict[str, Value]):
    """The values of topic options that follow from a broker's settings, each kept once it was asked for."""

    def __init__(self, broker: BrokerConfig) -> None:
        super().__init__()
        self._broker = broker

    def __missing__(self, name: str) -> Value:
        value = self[name] = broker_value(TOPIC_OPTIONS[name], self._broker)
        return value


class ListenerConfig(_Settings):
    """The settings of one listener, or of one SASL mechanism on it: the most specific one counts."""

    def __init__(self, broker: BrokerConfig, listener: str, mechanism: str = "") -> None:
        self._broker = broker
        of_listener = f"{LISTENER_PREFIX}{listener.lower()}."
        self._prefixes = [f"{of_listener}{mechanism.lower()}.", of_listener] if mechanism else [of_listener]

    def get(self, name: str) -> Value:
        """Return the setting with the longest known prefix, else the broker's. Raises KeyError."""
        for prefix in self._prefixes:
            value = self._broker.with_prefix(prefix, name)
            if value is not None:
                return value
        return self._broker.get(name)

    def secret(self, name: str) -> Secret | None:
        """A password, which prints as `***`."""
        value = self.get(name)
        assert value is None or isinstance(value, Secret), f"{name} is no password"
        return value

    def maybe(self, name: str) -> str | None:
        """A text that may be absent."""
        value = self.get(name)
        return None if value is None else str(value)


class TopicConfig(_Settings):
    """A topic's settings: its own, else the broker's, else Kafka's defaults: `topic.config.int("retention.ms")`."""

    def __init__(self, broker: BrokerConfig, own: Mapping[str, Value] | None = None) -> None:
        self.broker = broker
        self.own: dict[str, Value] = dict(own or {})

    def get(self, name: str) -> Value:
        """Return the topic's own value, else the one that follows from the broker's settings."""
        own = self.own
        return own[name] if name in own else self.broker.of_topics[name]


_HOUR_MS = 3_600_000
_IN_OTHER_UNITS = {
    "log.retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", _HOUR_MS)),
    "log.roll.ms": (("log.roll.hours", _HOUR_MS),),
}


def broker_value(option: Option, broker: BrokerConfig) -> Value:
    """Return the value of a topic option that the topic does not set."""
    synonym = option.synonym
    if synonym is None or synonym not in BROKER_OPTIONS:
        return option.default
    value = broker.get(synonym)
    if value is None:
        for name, unit_ms in _IN_OTHER_UNITS.get(synonym, ()):
            count = broker.get(name)
            if isinstance(count, int):
                return count * unit_ms if count >= 0 else -1
        return option.default
    return value


def parse_topic_settings(given: Mapping[str, object]) -> dict[str, Value]:
    """Check each setting of a topic to be created; raise ConfigError with Kafka's kind of message."""
    settings: dict[str, Value] = {}
    for name, text in given.items():
        option = TOPIC_OPTIONS.get(name)
        if option is None:
            raise unknown_name(name, TOPIC_OPTIONS)
        if text is None:
            raise ConfigError(f"Null value not supported for topic configs: {name}")
        settings[name] = parse(option, text)
    return settings


def check_together(topic: TopicConfig) -> None:
    """Raise ConfigError where a topic's settings contradict each other or the broker. (Kafka: LogConfig.validate)"""
    shortest, longest = topic.int("min.compaction.lag.ms"), topic.int("max.compaction.lag.ms")
    if shortest > longest:
        settings = f"min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        raise ConfigError(f"conflict topic config setting {settings}")
    if topic.get("remote.storage.enable"):
        disabled = "Tiered Storage functionality is disabled in the broker."
        raise ConfigError(f"{disabled} Topic cannot be configured with remote log storage.")
