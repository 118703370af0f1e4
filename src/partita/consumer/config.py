"""Every option of the consumer: Kafka's names with underscores, Kafka's defaults and bounds, and a few of our own.

`ConsumerConfig.of(...)` takes keyword arguments and, if wanted, a dict in Kafka's dotted spelling; wrong names and
values are refused with what would be right. (Kafka: ConsumerConfig; consumer.md 3.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partita.assignors.interface import Assignor, RebalanceProtocol
from partita.assignors.registry import create_assignor, rebalance_protocol
from partita.client_options import CLIENT_OPTIONS, options_of
from partita.consumer.partition_state import EARLIEST, LATEST, Reset
from partita.options import ConfigError, check_options
from partita.security.meaning import security_of

_DURATION = r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?"
_INSTANCE_ID = r"[a-zA-Z0-9._-]{1,249}"

OPTIONS = (*CLIENT_OPTIONS, *options_of("consumer"))

OF_CLASSIC = {
    "partition_assignment_strategy": "the broker assigns: choose its assignor with group_remote_assignor",
    "session_timeout_ms": "the broker's group.consumer.session.timeout.ms holds",
    "heartbeat_interval_ms": "the broker's group.consumer.heartbeat.interval.ms holds",
}
"""Options that the consumer protocol does not have, with their replacements."""


@dataclass(slots=True)
class ConsumerConfig:
    """Checked options. The ones that pure parts read often are attributes; `values` holds them all."""

    values: dict[str, Any]
    group_id: str | None
    group_instance_id: str | None
    client_id: str
    client_rack: str
    group_protocol: str
    group_remote_assignor: str | None
    assignors: tuple[Assignor, ...]
    protocol: RebalanceProtocol | None
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    reset: Reset | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    read_committed: bool
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    allow_auto_create_topics: bool
    exclude_internal_topics: bool
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    fetch_buffer_max_bytes: int
    check_crcs: bool
    commit_done_only: bool
    progress_timeout_ms: int

    @classmethod
    def of(cls, config: Mapping[str, Any] | None = None, /, **options: Any) -> ConsumerConfig:
        """Check everything. Raises ConfigError with the option, its value and the valid ones."""
        given = {name.replace(".", "_") for name in (*(config or {}), *options)}
        values = check_options(OPTIONS, options, config)
        follow_backoff(values, given)
        _check_group(values, given)
        _check_timeouts(values)
        check_delivery(values)
        assignors = _assignors(values["partition_assignment_strategy"])
        names = [name for name in cls.__dataclass_fields__ if name in values]
        return cls(
            values=values,
            assignors=assignors,
            protocol=_protocol(assignors),
            reset=parse_reset(values["auto_offset_reset"]),
            read_committed=values["isolation_level"] == "read_committed",
            **{name: values[name] for name in names},
        )


def parse_reset(text: str) -> Reset | None:
    """The policy named: earliest, latest, none, or by_duration:PnDTnHnMn.nS."""
    lowered = text.lower()
    if lowered in ("earliest", "latest"):
        return EARLIEST if lowered == "earliest" else LATEST
    if lowered == "none":
        return None
    kind, _, duration = text.partition(":")
    match = re.fullmatch(_DURATION, duration, re.IGNORECASE)
    if kind.lower() != "by_duration" or match is None or not any(match.groups()):
        raise ConfigError(f"auto_offset_reset must be earliest, latest, none or by_duration:PnDTnHnMn.nS, not {text!r}")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return Reset(text, duration_ms=round(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1_000))


def follow_backoff(values: dict[str, Any], given: set[str]) -> None:
    """If only one of the two reconnect back-offs is set, the other follows so that the user's value counts."""
    low, high = "reconnect_backoff_ms", "reconnect_backoff_max_ms"
    if low in given and high not in given:
        values[high] = max(values[high], values[low])
    elif high in given and low not in given:
        values[low] = min(values[low], values[high])
    values["retry_backoff_max_ms"] = max(values["retry_backoff_max_ms"], values["retry_backoff_ms"])


def _check_group(values: dict[str, Any], given: set[str]) -> None:
    group, instance = values["group_id"], values["group_instance_id"]
    if group is not None and not group:
        raise ConfigError("group_id must not be empty or blank; leave it out to consume without a group")
    if instance is not None and (not re.fullmatch(_INSTANCE_ID, instance) or instance in (".", "..")):
        raise ConfigError(f"group_instance_id must be 1 to 249 of a-z A-Z 0-9 . _ -, not {instance!r}")
    if values["group_protocol"] == "consumer":
        for name, instead in OF_CLASSIC.items():
            if name in given:
                raise ConfigError(f"{name} works with group_protocol classic only; {instead}")
    elif values["group_remote_assignor"] is not None:
        raise ConfigError("group_remote_assignor works with group_protocol consumer only; leave it out")
    if group is None:
        if "enable_auto_commit" in given and values["enable_auto_commit"]:
            raise ConfigError("enable_auto_commit needs a group_id; give one or leave enable_auto_commit out")
        values["enable_auto_commit"] = False


def _check_timeouts(values: dict[str, Any]) -> None:
    heartbeat, session = values["heartbeat_interval_ms"], values["session_timeout_ms"]
    if heartbeat >= session:
        raise ConfigError(f"heartbeat_interval_ms ({heartbeat}) must be less than session_timeout_ms ({session})")


def check_delivery(values: dict[str, Any]) -> None:
    """Refuse deserializers and policies for unreadable records that cannot work together."""
    values["security"] = security_of(values)
    if values["poison_policy"] == "dead_letter" and not values["dead_letter_topic"]:
        raise ConfigError("poison_policy dead_letter needs a dead_letter_topic")
    if values["dead_letter_exactly_once"]:
        _check_exactly_once(values)
    for name in ("key_deserializer", "value_deserializer"):
        given = values[name]
        if not (given is None or callable(given) or isinstance(given, str) or hasattr(given, "deserialize")):
            raise ConfigError(f"{name} must be a function of bytes, a name such as 'str' or 'json', or None")


def _check_exactly_once(values: dict[str, Any]) -> None:
    option = "dead_letter_exactly_once"
    if values["poison_policy"] != "dead_letter":
        raise ConfigError(f"{option} works with poison_policy dead_letter only, not {values['poison_policy']!r}")
    if values["group_id"] is None:
        raise ConfigError(f"{option} needs a group_id: the offset behind the record is committed with the letter")
    if values["commit_done_only"]:
        raise ConfigError(
            f"{option} does not work with commit_done_only: the offset behind a bad record would cover records before "
            "it that are not done; leave one of the two out"
        )


def _assignors(given: list[Any]) -> tuple[Assignor, ...]:
    found: dict[str, Assignor] = {}
    for one in given:
        try:
            assignor = create_assignor(one)
        except ValueError as error:
            raise ConfigError(f"partition_assignment_strategy: {error}") from None
        found.setdefault(assignor.name, assignor)
    return tuple(found.values())


def _protocol(assignors: tuple[Assignor, ...]) -> RebalanceProtocol | None:
    """The highest rebalance protocol that all assignors support (6.1); None without assignors."""
    try:
        return rebalance_protocol(assignors) if assignors else None
    except ValueError as error:
        raise ConfigError(f"partition_assignment_strategy: {error}") from None
