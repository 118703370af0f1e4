"""The quotas of a cluster, kept in the catalogue, and the usage of entities that have one.

Nothing of this exists until the first quota is set. Users without a quota have no meter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from partita.broker.topics.catalogue import TopicCatalogue
from partita.security.meters import RateMeter, TokenBucket
from partita.security.quotas import CONNECTION, MUTATION, Entity, QuotaTable, entity_of

METERS_MAX = 1_000
"""Beyond so many meters those that were idle for an hour are forgotten."""
IDLE_MS = 3_600_000
M = TypeVar("M", RateMeter, TokenBucket)


class Quotas:
    """The quotas and the meters. `kind` is their kind in the catalogue, `mono_ms` a clock that never goes back."""

    def __init__(self, catalogue: TopicCatalogue, kind: str, mono_ms: Callable[[], float]) -> None:
        self._kind = kind
        self._catalogue = catalogue
        self._mono_ms = mono_ms
        self.table = QuotaTable()
        self._meters: dict[tuple[str, str, str], RateMeter] = {}
        self._buckets: dict[tuple[str, str, str], TokenBucket] = {}
        for key, values in catalogue.kept.get(kind, {}).items():
            self.table.set(entity_of(map(tuple, json.loads(key))), values)

    def change(self, changes: Mapping[Entity, Mapping[str, float]]) -> None:
        """Replace the quotas of entities, with one write. Raises StorageError; then nothing has changed."""
        self._catalogue.keep(
            self._kind, {json.dumps(entity): dict(values) or None for entity, values in changes.items()}
        )
        for entity, values in changes.items():
            self.table.set(entity, values)

    def record(self, key: str, user: str, client_id: str, amount: float) -> int:
        """Count usage, and return how long its user must wait, in ms."""
        limit = self.table.limit(key, user, client_id)
        if limit is None:
            return 0
        now = self._mono_ms()
        meter = _of(self._meters, (key, *limit.shared_by), RateMeter, now)
        meter.record(amount, now)
        return meter.throttle_ms(limit.value, now)

    def throttle_ms(self, key: str, user: str, client_id: str) -> int:
        """Return how long the client must wait for its earlier usage, in ms."""
        limit = self.table.limit(key, user, client_id)
        meter = None if limit is None else self._meters.get((key, *limit.shared_by))
        return 0 if limit is None or meter is None else meter.throttle_ms(limit.value, self._mono_ms())

    def take_mutations(self, user: str, client_id: str, changes: Callable[[], int]) -> int:
        """Count changes of topics. 0: they may be made; else how long to wait, and none of them is counted."""
        limit = self.table.limit(MUTATION, user, client_id)
        count = 0 if limit is None else changes()
        if limit is None or not count:
            return 0
        now = self._mono_ms()
        bucket = _of(self._buckets, (MUTATION, *limit.shared_by), TokenBucket, now)
        return 0 if bucket.take(count, limit.value, now) else max(1, bucket.throttle_ms(limit.value, now))

    def refuses_connection(self, address: str) -> bool:
        """Whether the address makes connections too fast; one that is not refused is counted."""
        limit = self.table.limit_of_address(address)
        if limit is None:
            return False
        now = self._mono_ms()
        meter = _of(self._meters, (CONNECTION, address, ""), RateMeter, now)
        if meter.throttle_ms(limit, now):
            return True
        meter.record(1, now)
        return False


def _of(meters: dict[tuple[str, str, str], M], key: tuple[str, str, str], kind: type[M], now: float) -> M:
    found = meters.get(key)
    if found is None:
        if len(meters) >= METERS_MAX:
            for idle in [name for name, meter in meters.items() if now - meter.last_ms > IDLE_MS]:
                del meters[idle]
        found = meters[key] = kind()
        found.last_ms = now
    return found
