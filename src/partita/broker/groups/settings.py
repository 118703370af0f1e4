"""Settings that groups have of their own, kept in the catalogue: of KIP-848 groups and of share groups.

A group may have settings before it exists, and of both kinds. (Kafka: GroupConfig, GroupConfigManager.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.config import ConfigError, as_text, parse
from partita.broker.options import BOOLEAN, INT, STRING, Option
from partita.options import parse_duration_ms

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.topics.catalogue import TopicCatalogue

Setting = int | str
"""A value; those that are true or false are numbers, too."""
KIND = "group-config"
"""The kind of group settings in the catalogue."""
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SHARE_SESSION, SHARE_HEARTBEAT = "share.session.timeout.ms", "share.heartbeat.interval.ms"
RESET, ISOLATION, RENEW = "share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"
LOCK, DELIVERIES = "share.record.lock.duration.ms", "share.delivery.count.limit"
LOCKS, ASSIGNMENT = "share.partition.max.record.locks", "share.assignment.interval.ms"
BY_DURATION = "by_duration:"
OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option(HEARTBEAT, INT, 5000, low=1, synonym="group.consumer.heartbeat.interval.ms"),
        Option(SESSION, INT, 45000, low=1, synonym="group.consumer.session.timeout.ms"),
        Option(ASSIGNMENT, INT, 1000, low=0, synonym="group.share.assignment.interval.ms"),
        Option(RESET, STRING, "latest"),
        Option(DELIVERIES, INT, 5, low=2, synonym="group.share.delivery.count.limit"),
        Option(SHARE_HEARTBEAT, INT, 5000, low=1, synonym="group.share.heartbeat.interval.ms"),
        Option(ISOLATION, STRING, "read_uncommitted", choices=("read_committed", "read_uncommitted")),
        Option(LOCKS, INT, 2000, low=100, synonym="group.share.partition.max.record.locks"),
        Option(LOCK, INT, 30000, low=1000, synonym="group.share.record.lock.duration.ms"),
        Option(RENEW, BOOLEAN, True),
        Option(SHARE_SESSION, INT, 45000, low=1, synonym="group.share.session.timeout.ms"),
    )
}


class _Bounds(NamedTuple):
    """A setting, the broker option that counts without it, and those it stays within."""

    name: str
    usual: str
    low: str
    high: str


_BOUNDS = (
    _Bounds(
        SESSION,
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    _Bounds(
        HEARTBEAT,
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    _Bounds(
        SHARE_SESSION,
        "group.share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    _Bounds(
        SHARE_HEARTBEAT,
        "group.share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    _Bounds(
        ASSIGNMENT,
        "group.share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    _Bounds(
        LOCK,
        "group.share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    _Bounds(
        DELIVERIES,
        "group.share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    _Bounds(
        LOCKS,
        "group.share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
)
_BY_NAME = {bounds.name: bounds for bounds in _BOUNDS}


def settings_of(catalogue: TopicCatalogue, group_id: str) -> Mapping[str, Setting]:
    """Return the settings of this group."""
    found: Mapping[str, Setting] = all_settings(catalogue).get(group_id, {})
    return found


def all_settings(catalogue: TopicCatalogue) -> Mapping[str, Mapping[str, Setting]]:
    """Return all settings, by group id."""
    return catalogue.kept.get(KIND, {})


def change(catalogue: TopicCatalogue, group_id: str, settings: Mapping[str, Setting]) -> None:
    """Replace the settings of this group. Raises StorageError."""
    catalogue.keep(KIND, {group_id: dict(settings) or None})


def in_force(config: BrokerConfig, settings: Mapping[str, Setting], name: str) -> Setting:
    """The value of a setting: the group's own, within the bounds that the broker has now, or the broker's."""
    bounds = _BY_NAME.get(name)
    if bounds is not None:
        return max(config.int(bounds.low), min(config.int(bounds.high), _number(config, settings, name)))
    value = settings.get(name, OPTIONS[name].default)
    assert isinstance(value, Setting), "a setting without bounds has a default"
    return value


def parsed(config: BrokerConfig, given: Mapping[str, str | None]) -> dict[str, Setting]:
    """Return the settings in their types. Raises ConfigError if unknown, malformed, or out of the broker's bounds."""
    values: dict[str, Setting] = {}
    for name, text in given.items():
        option = OPTIONS.get(name)
        if option is None:
            raise ConfigError(f"Unknown group config name: {name}")
        value = parse(option, text)
        assert isinstance(value, Setting), "settings of groups are numbers or words"
        if name == RESET:
            _check_reset(str(value))
        values[name] = value
    check(config, values)
    return values


def printed(value: Setting) -> str:
    """A setting as Kafka prints it."""
    return as_text(value) or ""


def _check_reset(text: str) -> None:
    try:
        if text not in ("earliest", "latest"):
            kind, _, duration = text.partition(":")
            if kind != BY_DURATION[:-1]:
                raise ValueError(text)
            parse_duration_ms(duration)
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration {RESET}: must be earliest, latest or by_duration:PnDTnHnMn.nS"
        ) from None


def check(config: BrokerConfig, values: Mapping[str, Setting]) -> None:
    """Each within the broker's bounds, and the sessions longer than the intervals. Raises ConfigError."""
    for name, _, low, high in _BOUNDS:
        value = values.get(name)
        if not isinstance(value, int):
            continue
        if value < config.int(low):
            raise ConfigError(f"{name} must be greater than or equal to {low}")
        if value > config.int(high):
            raise ConfigError(f"{name} must be less than or equal to {high}")
    for session, heartbeat in ((SESSION, HEARTBEAT), (SHARE_SESSION, SHARE_HEARTBEAT)):
        if _number(config, values, session) <= _number(config, values, heartbeat):
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def _number(config: BrokerConfig, values: Mapping[str, Setting], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else config.int(_BY_NAME[name].usual)
