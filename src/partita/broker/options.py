"""Which options exist: Kafka's names, types, defaults, bounds and meanings, for the broker and for topics.

The table is options.json beside this file, one option a line. It mirrors KafkaConfig and LogConfig of Apache Kafka
4.4.0 (a test compares every row with Kafka's own answer). Options whose subject Partita does not have (replication,
remote storage of whole clusters) are absent from BROKER; ELSEWHERE and FIXED_ELSEWHERE have what clients cannot set.
"""

# fmt: off
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from partita.options import table_in
from partita.secret import Secret

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | Secret | None

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, PASSWORD = 1, 2, 3, 4, 5, 6, 7, 9
"""Kinds of values, numbered as DescribeConfigs numbers them."""
_KINDS = {
    "boolean": BOOLEAN, "string": STRING, "int": INT, "short": SHORT, "long": LONG, "double": DOUBLE, "list": LIST,
    "password": PASSWORD,
}


class Option(NamedTuple):
    """One option. Bounds are inclusive; `also` is one more value allowed outside them."""

    name: str
    kind: int
    default: Value
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    also: int | None = None
    changeable: bool = False
    synonym: str | None = None
    """The broker option a topic option falls back to."""
    meaning: str | None = None
    """For docs/broker-options.md and for clients that ask DescribeConfigs."""


def _option(kind: str, default: Any, choices: Sequence[str] = (), **rest: Any) -> Option:
    default = tuple(default) if isinstance(default, list) else default
    return Option(kind=_KINDS[kind], default=default, choices=tuple(choices), **rest)


_TABLE = table_in(f"{__file__.rpartition('.')[0]}.json")  # pathlib would take brokers longer to load
BROKER: tuple[Option, ...] = tuple(_option(**row) for row in _TABLE["broker"])
TOPIC: tuple[Option, ...] = tuple(_option(**row) for row in _TABLE["topic"])
ELSEWHERE: dict[str, Option] = {row["name"]: _option(**row, default=None) for row in _TABLE["elsewhere"]}
"""Kafka's broker options that have no use here and that Kafka can change while running: kept, if Kafka would keep them."""
FIXED_ELSEWHERE = frozenset[str](_TABLE["fixed_elsewhere"])
"""Kafka's broker options that have no use here and that Kafka cannot change while running."""
MEANINGS: dict[str, str | None] = {option.name: option.meaning for option in (*BROKER, *TOPIC)}

REMOVED: dict[str, str] = {
    **dict.fromkeys(("advertised.host.name", "advertised.port", "host.name", "port", "quota.consumer.default", "quota.producer.default"), "3.0"),
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter", "broker.id.generation.enable", "control.plane.listener.name", "delegation.token.master.key",
            "inter.broker.protocol.version", "log.message.downconversion.enable", "log.message.format.version",
            "log.message.timestamp.difference.max.ms", "offsets.commit.required.acks", "password.encoder.cipher.algorithm",
            "password.encoder.iterations", "password.encoder.key.length", "password.encoder.keyfactory.algorithm",
            "password.encoder.old.secret", "password.encoder.secret", "reserved.broker.max.id", "zookeeper.clientCnxnSocket",
            "zookeeper.connect", "zookeeper.connection.timeout.ms", "zookeeper.max.in.flight.requests",
            "zookeeper.metadata.migration.enable", "zookeeper.session.timeout.ms", "zookeeper.set.acl",
            "zookeeper.ssl.cipher.suites", "zookeeper.ssl.client.enable", "zookeeper.ssl.crl.enable",
            "zookeeper.ssl.enabled.protocols", "zookeeper.ssl.endpoint.identification.algorithm",
            "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.password", "zookeeper.ssl.keystore.type",
            "zookeeper.ssl.ocsp.enable", "zookeeper.ssl.protocol", "zookeeper.ssl.truststore.location",
            "zookeeper.ssl.truststore.password", "zookeeper.ssl.truststore.type",
        ),
        "4.0",
    ),
}
"""Broker options of older Kafkas and the version that removed them: accepted in any value, without effect."""
