"""Features of the cluster: the contents of ApiVersions, and the functions that depend on them.

`group.version` 1 means KIP-848 groups. It is in force unless `group.coordinator.rebalance.protocols` leaves "consumer"
out; Kafka keeps both apart, and needs both. `transaction.version` selects how producers end transactions. (Kafka:
Features, GroupVersion, TransactionVersion.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from partita.transactions.config import LEVEL_MAX

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig

GROUP_VERSION, TRANSACTION_VERSION = "group.version", "transaction.version"


class Feature(NamedTuple):
    """A feature with the levels that are known, and the one in force."""

    name: str
    highest: int
    level: int


def serves_consumer_groups(config: BrokerConfig) -> bool:
    """Are KIP-848 groups served?"""
    protocols = config.get("group.coordinator.rebalance.protocols")
    return isinstance(protocols, tuple) and "consumer" in protocols


def features(config: BrokerConfig) -> list[Feature]:
    """Every feature there is; level 0 is none."""
    return [
        Feature(GROUP_VERSION, 1, 1 if serves_consumer_groups(config) else 0),
        Feature(TRANSACTION_VERSION, LEVEL_MAX, config.int("partita.transaction.version")),
    ]
