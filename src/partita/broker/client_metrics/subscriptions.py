"""Subscriptions to metrics of clients: which clients push which metrics how often. Kept in the catalogue.

(Kafka: ClientMetricsConfigs)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from partita.broker.config import ConfigError, as_text, parse
from partita.broker.options import INT, LIST, Option
from partita.broker.topics.checks import Refused
from partita.expressions import InvalidExpression, Matches, compiled
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import TopicCatalogue

KIND = "client-metrics"
"""The kind of subscriptions in the catalogue."""
DEFAULT_INTERVAL_MS = 300_000
METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (Option(INTERVAL, INT, DEFAULT_INTERVAL_MS), Option(MATCH, LIST, ()), Option(METRICS, LIST, ()))
}
MATCH_ON = (
    "client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
)  # fmt: skip
"""The facts of a client that `match` can ask about."""
SUBSCRIPTIONS_MAX = 1_000
"""Deviation: Partita refuses more than 1,000 subscriptions to metrics of clients, and without the package google-re2
every expression of `match` that is more than letters, digits, "-" and "_", where Kafka takes them."""
_INTERVAL_MIN_MS, _INTERVAL_MAX_MS = 100, 3_600_000
_PLAIN = re.compile(r"[\w\-]+")


def subscriptions(catalogue: TopicCatalogue) -> Mapping[str, Mapping[str, str]]:
    """All subscriptions: the settings of each, as text, by its name."""
    return catalogue.kept.get(KIND, {})


def change(
    catalogue: TopicCatalogue, name: str, settings: Mapping[str, str | None], *, validate_only: bool = False
) -> None:
    """Replace the settings of a subscription; without any it is gone. Raises Refused and StorageError."""
    checked = {each: _checked(each, text) for each, text in settings.items()}
    known = subscriptions(catalogue)
    if checked and name not in known and len(known) >= SUBSCRIPTIONS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"there are {SUBSCRIPTIONS_MAX} subscriptions already: delete one")
    if not validate_only:
        catalogue.keep(KIND, {name: checked or None})


def listed(text: str) -> list[str]:
    """The items of a setting that is a list."""
    return text.split(",") if text else []


def criteria(match: str) -> dict[str, Matches]:
    """Return the conditions on a client, by the fact that each looks at. Raises Refused."""
    return dict(_criterion(item) for item in listed(match))


def _checked(name: str, text: str | None) -> str:
    """The setting as it is described, in Kafka's form. Raises Refused."""
    option = OPTIONS.get(name)
    if option is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    try:
        value = parse(option, text)
    except ConfigError as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    if isinstance(value, int) and not _INTERVAL_MIN_MS <= value <= _INTERVAL_MAX_MS:
        bounds = f"between {_INTERVAL_MIN_MS} and {_INTERVAL_MAX_MS} (1 hour)"
        raise Refused(ErrorCode.INVALID_REQUEST, f"Invalid value {text} for {name}, interval must be {bounds}")
    if isinstance(value, tuple):
        if text and not all(item.strip() for item in text.split(",")):
            raise Refused(ErrorCode.INVALID_CONFIG, f"Configuration '{name}' values must not be empty.")
        value = tuple(dict.fromkeys(value))
    described = as_text(value) or ""
    if name == MATCH:
        criteria(described)
    return described


def _criterion(item: str) -> tuple[str, Matches]:
    fact, equals, pattern = (part.strip() for part in item.partition("="))
    if fact not in MATCH_ON or not equals or not pattern or "=" in pattern:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item}")
    if _PLAIN.fullmatch(pattern):
        return fact, pattern.__eq__
    try:
        return fact, compiled(pattern)
    except InvalidExpression as error:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item} ({error})") from None
