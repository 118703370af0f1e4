"""Checks of the `kafka.*` options before a client is built; errors use the option names that Spark users write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from partita.lazy import later
from partita.net.config import parse_servers
from partita.options import ConfigError
from partita.security.meaning import is_security_option
from partita.spark.settings.table import BOOTSTRAP, CLIENT, CLIENT_NO_EFFECT, CLIENT_OF_MEMBER, INT_MAX, LONG_MAX

if TYPE_CHECKING:
    from partita.consumer import config as consumer_config
else:
    consumer_config = later("partita.consumer.config")

_WITH_UNDERSCORES = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_NUMBER_ENDS = (".ms", ".bytes", ".batch.size", ".request.size", ".retries", ".memory", ".connection", ".records")
_LEAST = {
    "connections.max.idle.ms": -1,  # never
    "max.in.flight.requests.per.connection": 1,
    "max.poll.records": 1,
    "transaction.timeout.ms": 1,
}
"""Lower bounds of options where that is not 0."""
_LONG = (
    *("metadata.max.age.ms", "retry.backoff.ms", "retry.backoff.max.ms", "reconnect.backoff.ms"),
    *("reconnect.backoff.max.ms", "connections.max.idle.ms", "max.block.ms", "linger.ms", "buffer.memory"),
)
"""Options that Kafka's clients hold in 64 bits; the others have 32."""
_WHOLE = re.compile("-?[0-9]+")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def in_words_of_spark(text: object) -> str:
    """Return an option error with Spark's names: other clients use underscores, Spark dots and the prefix `kafka.`."""

    def spelled(found: re.Match[str]) -> str:
        dotted = found[0].replace("_", ".")
        return f"kafka.{dotted}" if is_security_option(dotted) or f"kafka.{dotted}" in CLIENT else found[0]

    return _WITH_UNDERSCORES.sub(spelled, str(text))


def check_servers(client: Mapping[str, str]) -> None:
    """Raises ConfigError unless there is at least one broker address and every address is well formed."""
    servers = client.get("bootstrap.servers", "")
    if not servers.strip():
        raise ConfigError(f"{BOOTSTRAP} is required: host:port of one broker or more, separated by commas")
    try:
        parse_servers(servers)
    except ValueError as error:
        raise ConfigError(f"{BOOTSTRAP}: {error}") from None


def check_numbers(client: Mapping[str, str]) -> None:
    """Raises ConfigError for times, sizes and counts that are not numbers or that Kafka's clients would refuse."""
    found = []
    for name, value in client.items():
        if f"kafka.{name}" not in (*CLIENT, *CLIENT_NO_EFFECT) or not f".{name}".endswith(_NUMBER_ENDS):
            continue
        least, most = _LEAST.get(name, 0), LONG_MAX if name in _LONG else INT_MAX
        if not _WHOLE.fullmatch(value.strip()):
            found.append(f"kafka.{name} must be a whole number, not {value!r}")
        elif int(value) < least:
            found.append(f"kafka.{name} must be at least {least}, not {value.strip()}")
        elif int(value) > most:
            found.append(f"kafka.{name} must be at most {most}, not {value.strip()}")
    if found:
        raise ConfigError("; ".join(found))


def whole_number(client: Mapping[str, str], name: str, default: int) -> int:
    """A number among the client options. Raises ConfigError naming the option as the user wrote it."""
    try:
        return int(client.get(name, default))
    except ValueError:
        raise ConfigError(f"kafka.{name} must be a whole number, not {client[name]!r}") from None


def check_member(client: Mapping[str, str]) -> None:
    """Raises ConfigError for options that a group member cannot have."""
    given = {name: value for name, value in client.items() if f"kafka.{name}" in CLIENT_OF_MEMBER}
    try:
        consumer_config.ConsumerConfig.of(given, group_id="any", bootstrap_servers=client["bootstrap.servers"])
    except ConfigError as error:
        raise ConfigError(in_words_of_spark(error)) from None


def of_members_only(client: Mapping[str, str]) -> list[str]:
    """Return warnings about options for group members in a read that is not a member."""
    given = sorted(f"kafka.{name}" for name in client if f"kafka.{name}" in CLIENT_OF_MEMBER)
    return [f"{name} has no effect without groupMode=member" for name in given]


def not_known(spelled: str) -> str:
    """Return the warning about a `kafka.*` option without effect, with the name that was probably meant."""
    near = get_close_matches(spelled.lower(), CLIENT, n=1, cutoff=0.85)
    return f"{spelled} is not known and has no effect" + (f"; did you mean {near[0]!r}?" if near else "")


def check_topic(option: str, name: str) -> None:
    """Raises ConfigError for an invalid topic name."""
    if not _TOPIC.fullmatch(name):
        raise ConfigError(f"{option} names {name!r}, which no topic can be called: 1 to 249 of a-z A-Z 0-9 . _ -")
