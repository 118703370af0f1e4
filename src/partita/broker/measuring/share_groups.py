"""The metrics of share groups: Kafka's names where Kafka counts, and the lag of each share partition in memory.

(Kafka: ShareSessionCache, ShareGroupMetrics, SharePartitionMetrics, GroupCoordinatorMetrics.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from partita.share.partition.model import AcknowledgeType

if TYPE_CHECKING:
    from partita.broker.api.services import Services
    from partita.broker.share.led import LedPartition
    from partita.metrics.registry import Metrics

SESSIONS, GROUPS, PARTITIONS = "server_ShareSessionCache", "server_ShareGroupMetrics", "server_SharePartitionMetrics"
OWN = "partita_ShareGroups"
PARTITIONS_MAX = 5_000
"""Number of share partitions that have metrics of their own."""
SLICE = 50


class Place(NamedTuple):
    """The labels of a share partition."""

    group: str
    topic: str
    partition: str


GAUGES: tuple[tuple[str, Callable[[LedPartition], int]], ...] = (
    ("InFlightMessageCount", lambda led: led.in_flight.records),
    ("InFlightBatchCount", lambda led: led.in_flight.batches),
)


class ShareGroupMetrics:
    """Registers the metrics; share partitions have theirs while they are in memory."""

    def __init__(self, registry: Metrics, meter: Callable[..., None], services: Services) -> None:
        """`meter` registers a counter with its rate."""
        self._registry = registry
        self._meter = meter
        self._nodes = services.share_nodes
        self._led: dict[Place, LedPartition] = {}
        self._catalogue = services.cluster.catalogue
        nodes = self._nodes
        self._value(SESSIONS, "ShareSessionsCount", lambda: sum(len(n.sessions.sessions) for n in nodes.values()))
        self._value(SESSIONS, "SharePartitionsCount", lambda: sum(n.sessions.partition_count for n in nodes.values()))
        for kind in AcknowledgeType:
            count = partial(services.share_acknowledged.__getitem__, kind)
            meter(GROUPS, "RecordAcknowledgementsPerSec", count, ackType=kind.name.capitalize())

    def followed(self) -> Iterator[None]:
        """Add metrics of share partitions that are new in memory, remove those of others; yields between slices."""
        found = dict(islice(self._in_memory(), PARTITIONS_MAX))
        for place in [place for place, led in self._led.items() if found.get(place) is not led]:
            self._registry.forget(**place._asdict())
            del self._led[place]
        for number, place in enumerate([place for place in found if place not in self._led], 1):
            led = self._led[place] = found[place]
            self._register(place, led)
            if number % SLICE == 0:
                yield

    def _in_memory(self) -> Iterator[tuple[Place, LedPartition]]:
        for node in self._nodes.values():
            for group_id, of_group in node.led.items():
                for (topic_id, index), led in of_group.items():
                    topic = self._catalogue.by_id.get(topic_id)
                    if topic is not None:
                        yield Place(group_id, topic.name, str(index)), led

    def _register(self, place: Place, led: LedPartition) -> None:
        tags = place._asdict()
        for name, read in GAUGES:
            self._value(PARTITIONS, name, partial(read, led), **tags)
        self._meter(PARTITIONS, "AcquisitionLockTimeoutPerSec", lambda: led.locks_ended, **tags)
        help = "records behind the start of the share partition that are not done with"
        self._registry.gauge(OWN, "lag", help, lambda: led.lag, **tags)

    def _value(self, group: str, name: str, read: Callable[[], float], /, **tags: str) -> None:
        self._registry.gauge(group, "Value", "what there is now, by name", read, name=name, **tags)
