"""The coordinator's settings. (Kafka: TransactionStateManagerConfigs, TransactionLogConfig)"""

from __future__ import annotations

from dataclasses import dataclass

LEVEL_MAX = 2
"""The highest level of the feature `transaction.version`."""


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Settings; times in milliseconds. `level` is the finalized level of `transaction.version`: 0, 1 or 2."""

    level: int = LEVEL_MAX
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    timeout_check_interval_ms: int = 10_000
    expiration_check_interval_ms: int = 3_600_000
    max_message_bytes: int = 1_048_588
    """Largest batch that the state topic accepts (its own `max.message.bytes`)."""
    ids_max: int = 100_000
    """Maximum number of transactional ids over all shards of a broker; further new ids are refused."""
    partitions_max: int = 10_000
    """Maximum number of partitions of one transaction."""
