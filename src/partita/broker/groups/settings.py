"""Settings that KIP-848 groups have of their own, kept in the catalogue. (Kafka: GroupConfig, GroupConfigManager.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.config import ConfigError, parse
from partita.broker.options import INT, Option

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.topics.catalogue import TopicCatalogue

KIND = "group-config"
"""The kind of group settings in the catalogue."""
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option(HEARTBEAT, INT, 5000, low=1, synonym="group.consumer.heartbeat.interval.ms"),
        Option(SESSION, INT, 45000, low=1, synonym="group.consumer.session.timeout.ms"),
    )
}


class _Bounds(NamedTuple):
    """A setting, and the broker options it stays within."""

    name: str
    low: str
    high: str


_BOUNDS = (
    _Bounds(SESSION, "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    _Bounds(HEARTBEAT, "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
)


def settings_of(catalogue: TopicCatalogue, group_id: str) -> Mapping[str, int]:
    """Return the settings of this group."""
    found: Mapping[str, int] = all_settings(catalogue).get(group_id, {})
    return found


def all_settings(catalogue: TopicCatalogue) -> Mapping[str, Mapping[str, int]]:
    """Return all settings, by group id."""
    return catalogue.kept.get(KIND, {})


def change(catalogue: TopicCatalogue, group_id: str, settings: Mapping[str, int]) -> None:
    """Replace the settings of this group. Raises StorageError."""
    catalogue.keep(KIND, {group_id: dict(settings) or None})


def parsed(config: BrokerConfig, given: Mapping[str, str | None]) -> dict[str, int]:
    """Return the settings as numbers. Raises ConfigError if unknown, no number, or out of the broker's bounds."""
    values: dict[str, int] = {}
    for name, text in given.items():
        option = OPTIONS.get(name)
        if option is None:
            raise ConfigError(f"Unknown group config name: {name}")
        value = parse(option, text)
        assert isinstance(value, int), "both settings are numbers"
        values[name] = value
    check(config, values)
    return values


def check(config: BrokerConfig, values: Mapping[str, int]) -> None:
    """Both within the broker's bounds, and the session longer than the interval. Raises ConfigError."""
    for name, low, high in _BOUNDS:
        if name in values and values[name] < config.int(low):
            raise ConfigError(f"{name} must be greater than or equal to {low}")
        if name in values and values[name] > config.int(high):
            raise ConfigError(f"{name} must be less than or equal to {high}")
    session = values.get(SESSION, config.int("group.consumer.session.timeout.ms"))
    if session <= values.get(HEARTBEAT, config.int("group.consumer.heartbeat.interval.ms")):
        raise ConfigError(f"{SESSION} must be greater than {HEARTBEAT}")
