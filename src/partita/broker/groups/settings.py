"""Settings that groups have of their own, kept in the catalogue: of KIP-848 groups, share groups and streams groups.

A group may have settings before it exists, and of all kinds. (Kafka: GroupConfig, GroupConfigManager.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.config import ConfigError, as_text, parse
from partita.broker.options import BOOLEAN, BROKER, INT, LIST, LONG, STRING, Option
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
LETTERS, COPIES = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
STREAMS_SESSION, STREAMS_HEARTBEAT = "streams.session.timeout.ms", "streams.heartbeat.interval.ms"
STREAMS_ASSIGNMENT, INITIAL_DELAY = "streams.assignment.interval.ms", "streams.initial.rebalance.delay.ms"
STANDBYS, TAGS = "streams.num.standby.replicas", "streams.rack.aware.assignment.tags"
RECOVERY_LAG, OFFSET_INTERVAL = "streams.acceptable.recovery.lag", "streams.task.offset.interval.ms"
BY_DURATION = "by_duration:"
OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option(HEARTBEAT, INT, 5000, low=1, synonym="group.consumer.heartbeat.interval.ms"),
        Option(SESSION, INT, 45000, low=1, synonym="group.consumer.session.timeout.ms"),
        Option(COPIES, BOOLEAN, False),
        Option(LETTERS, STRING, ""),
        Option("consumer.assignor.offload.enable", BOOLEAN, True, synonym="group.consumer.assignor.offload.enable"),
        Option("share.assignor.offload.enable", BOOLEAN, True, synonym="group.share.assignor.offload.enable"),
        Option(ASSIGNMENT, INT, 1000, low=0, synonym="group.share.assignment.interval.ms"),
        Option(RESET, STRING, "latest"),
        Option(DELIVERIES, INT, 5, low=2, synonym="group.share.delivery.count.limit"),
        Option(SHARE_HEARTBEAT, INT, 5000, low=1, synonym="group.share.heartbeat.interval.ms"),
        Option(ISOLATION, STRING, "read_uncommitted", choices=("read_committed", "read_uncommitted")),
        Option(LOCKS, INT, 2000, low=100, synonym="group.share.partition.max.record.locks"),
        Option(LOCK, INT, 30000, low=1000, synonym="group.share.record.lock.duration.ms"),
        Option(RENEW, BOOLEAN, True),
        Option(SHARE_SESSION, INT, 45000, low=1, synonym="group.share.session.timeout.ms"),
        Option(RECOVERY_LAG, LONG, 10000, low=0, synonym="group.streams.acceptable.recovery.lag"),
        Option(STREAMS_ASSIGNMENT, INT, 1000, low=0, synonym="group.streams.assignment.interval.ms"),
        Option(STREAMS_HEARTBEAT, INT, 5000, low=1, synonym="group.streams.heartbeat.interval.ms"),
        Option(INITIAL_DELAY, INT, 3000, low=0, synonym="group.streams.initial.rebalance.delay.ms"),
        Option(STANDBYS, INT, 0, low=0, synonym="group.streams.num.standby.replicas"),
        Option(TAGS, LIST, (), synonym="group.streams.rack.aware.assignment.tags"),
        Option(STREAMS_SESSION, INT, 45000, low=1, synonym="group.streams.session.timeout.ms"),
        Option(OFFSET_INTERVAL, INT, 60000, low=1, synonym="group.streams.task.offset.interval.ms"),
    )
}


class _Bounds(NamedTuple):
    """The broker option that counts without a setting, and those that the setting stays within."""

    usual: str
    low: str | None
    high: str | None


def _bounds() -> Iterator[tuple[str, _Bounds]]:
    """The bounds of group.x.y are group.x.min.y and group.x.max.y, where the broker has them."""
    known = {option.name for option in BROKER}
    for name, option in OPTIONS.items():
        kind, _, rest = name.partition(".")
        low, high = (f"group.{kind}.{bound}.{rest.removeprefix('num.')}" for bound in ("min", "max"))
        if option.synonym and (low in known or high in known):
            yield name, _Bounds(option.synonym, low if low in known else None, high if high in known else None)


BOUNDS = dict(_bounds())
"""The options of the broker that have a say in a setting, by its name."""
_SESSIONS = ((SESSION, HEARTBEAT), (SHARE_SESSION, SHARE_HEARTBEAT), (STREAMS_SESSION, STREAMS_HEARTBEAT))


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
    bounds = BOUNDS.get(name)
    if bounds is not None:
        number = _number(config, settings, name)
        number = number if bounds.high is None else min(config.int(bounds.high), number)
        return number if bounds.low is None else max(config.int(bounds.low), number)
    value: object = settings.get(name)
    value = OPTIONS[name].default if value is None else value
    value = ",".join(value) if isinstance(value, tuple) else value
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
        value = ",".join(value) if isinstance(value, tuple) else value
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
    for name, (_, low, high) in BOUNDS.items():
        value = values.get(name)
        if not isinstance(value, int):
            continue
        if low is not None and value < config.int(low):
            raise ConfigError(f"{name} must be greater than or equal to {low}")
        if high is not None and value > config.int(high):
            raise ConfigError(f"{name} must be less than or equal to {high}")
    for session, heartbeat in _SESSIONS:
        if _number(config, values, session) <= _number(config, values, heartbeat):
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def _number(config: BrokerConfig, values: Mapping[str, Setting], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else config.int(BOUNDS[name].usual)
