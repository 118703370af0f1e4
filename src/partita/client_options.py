"""The options of consumers, producers and admin clients, read from client_options.json beside this file.

By Kafka's names with underscores, with Kafka's defaults and bounds (CommonClientConfigs, ConsumerConfig,
ProducerConfig, AdminClientConfig), and a few of our own; the security options also by the names that confluent-kafka,
aiokafka and kafka-python have for them. `Secret` values print as `***`. The joint meaning of security:
`security.meaning`.
"""

from __future__ import annotations

from typing import Any

from partita.options import REQUIRED, Option, table_in

_TABLE = table_in(f"{__file__.rpartition('.')[0]}.json")  # pathlib would take clients longer to load


def options_of(section: str) -> tuple[Option, ...]:
    """Return the options of a section of the table, which is named after those that have them.

    An option without a default is required; one whose default is null may be null.
    """
    return tuple(_option(**row) for row in _TABLE[section])


def _option(*, default: Any = REQUIRED, choices: Any = (), aliases: Any = (), **rest: Any) -> Option:
    return Option(default=default, nullable=default is None, choices=tuple(choices), aliases=tuple(aliases), **rest)


PARTITA_SECURITY_OPTIONS = options_of("security of partita")
"""Options that Java's clients do not have: user and password without a JAAS line, PEM files by librdkafka's names."""
SECURITY_OPTIONS = (*PARTITA_SECURITY_OPTIONS, *options_of("security"))
CLIENT_OPTIONS = (*options_of("shared"), *SECURITY_OPTIONS)
"""The options that all clients share: finding brokers, connections, security."""
