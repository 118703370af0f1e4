"""The broker's metrics by Kafka's names, in the groups kafka.server, kafka.coordinator.group, kafka.log, kafka.network.

A metric is written as Prometheus' JMX exporter writes Kafka's own: domain and type, the attribute, and the other parts
of the name as labels: `kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="orders"}`. Other parts of
the broker register theirs with `registry`. (Kafka: BrokerTopicMetrics, ReplicaManager, GroupCoordinatorMetrics.)
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from partita.broker.counts import Times, TopicTraffic, Traffic
from partita.broker.measuring.rebalances import RebalanceMetrics
from partita.broker.measuring.share_groups import ShareGroupMetrics
from partita.broker.measuring.transactions import TransactionMetrics
from partita.broker.storage.log_store import COUNTERS
from partita.metrics.moving_rate import MovingRate
from partita.metrics.registry import How, Metrics, Page, Reading, Row
from partita.metrics.sensor import Sensor
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from partita.broker.api.services import Services
    from partita.broker.groups.coordinators import Coordinators
    from partita.broker.nodes import Cluster
    from partita.log.partition_log import PartitionLog

TOPICS, REPLICAS = "server_BrokerTopicMetrics", "server_ReplicaManager"
GROUPS, COORDINATOR = "coordinator_group_GroupMetadataManager", "server_group_coordinator_metrics"
SESSIONS, PURGATORY, LOG = "server_FetchSessionCache", "server_DelayedOperationPurgatory", "log_Log"
REQUESTS, LISTENERS = "network_RequestMetrics", "server_socket_server_metrics"
CONTROLLER = "controller_KafkaController"
STORE = "partita_Store"
"""Findings of recovery; Kafka has them in its log only."""
OWN = "partita_Metrics"
DOMAIN = "kafka"
LOGS_MAX = 5_000
"""Number of partitions whose logs have their own metrics."""
SLICE_METRICS, SLICE_LOGS, SLICE_PARTITIONS = 200, 50, 2_000
COUNT_HELP = "how much there was, by name"
PERCENTILES = (("50thPercentile", 0.5), ("95thPercentile", 0.95), ("99thPercentile", 0.99))

OF_TOPICS: tuple[tuple[str, Callable[[TopicTraffic], int]], ...] = (
    ("MessagesInPerSec", lambda t: t.messages_in),
    ("BytesInPerSec", lambda t: t.bytes_in),
    ("BytesOutPerSec", lambda t: t.bytes_out),
    ("BytesRejectedPerSec", lambda t: t.bytes_rejected),
    ("TotalProduceRequestsPerSec", lambda t: t.produces),
    ("TotalFetchRequestsPerSec", lambda t: t.fetches),
    ("FailedProduceRequestsPerSec", lambda t: t.failed_produces),
    ("FailedFetchRequestsPerSec", lambda t: t.failed_fetches),
)
OF_LOGS: dict[str, Callable[[PartitionLog], int]] = {
    "LogStartOffset": lambda log: log.log_start_offset,
    "LogEndOffset": lambda log: log.log_end_offset,
    "NumLogSegments": lambda log: len(log.segments),
    "Size": lambda log: log.size_in_bytes,
}
STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
OF_NOTES = {
    "consumer": ("consumer-group-rebalance", "new epochs of KIP-848 groups"),
    "share": ("share-group-rebalance", "new epochs of share groups"),
    "streams": ("streams-group-rebalance", "new epochs of streams groups"),
    "Rebalanced": ("group-completed-rebalance", "rebalances that were completed"),
    "OffsetsExpired": ("offset-expiration", "committed offsets that expired"),
}


class BrokerMetrics:
    """The metrics of one broker process. Belongs to the broker's loop."""

    def __init__(self, services: Services, api_names: dict[int, str]) -> None:
        self.registry = Metrics()
        """The registry for metrics of other parts of the broker."""
        self._services = services
        self._api_names = api_names
        self._topics: set[str] = set()
        self._requests: set[tuple[int, int]] = set()
        self._timed: set[int] = set()
        self._errors: set[tuple[int, int]] = set()
        self._classic: Counter[str] = Counter()
        self._consumer: Counter[str] = Counter()
        self._share: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._led = 0
        self._left_out = 0
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._traffic: Traffic = services.traffic
        self._clock = services.cluster.clock
        self._noted: dict[str, Sensor] = {}
        self._register()
        services.cluster.notes.listen(self._hear)

    def text(self) -> str:
        """Every metric in Prometheus' text format, with TYPE and HELP."""
        self._follow()
        page = Page(DOMAIN)
        for reading in self._readings():
            page.add(reading)
        return page.text()

    async def text_in_slices(self) -> str:
        """Return the same text in slices, between which the loop of clients does other work."""
        for _ in self._followed():
            await asyncio.sleep(0)
        page = Page(DOMAIN)
        for number, reading in enumerate(self._readings()):
            page.add(reading)
            if number % SLICE_METRICS == 0:
                await asyncio.sleep(0)
        return page.text()

    def read(self) -> dict[str, float]:
        """Every metric by its name in that text, labels in braces behind it."""
        lines = (line for line in self.text().splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def _readings(self) -> Iterator[Reading]:
        """The broker's own metrics, and those that clients push."""
        yield from self.registry.walk(self._now_ms())
        if self._services.client_metrics.made is not None:
            yield from self._services.client_metrics.made.readings()

    def _now_ms(self) -> float:
        return self._clock.mono_ms()

    def meter(self, group: str, name: str, read: Callable[[], int], /, **tags: str) -> None:
        """A counter with its rate, as Kafka's meters are: Count and OneMinuteRate."""
        rate = MovingRate(1, self._now_ms())
        tags = {"name": name, **tags}
        self.registry.counter(group, "Count", COUNT_HELP, read, **tags)
        per_second = "how much there was per second, by name"
        self.registry.gauge(group, "OneMinuteRate", per_second, lambda: rate.read(read(), self._now_ms()), **tags)

    def value(self, group: str, name: str, read: Callable[[], float], **tags: str) -> None:
        """A number that is read, as Kafka's gauges are: Value."""
        self.registry.gauge(group, "Value", "what there is now, by name", read, name=name, **tags)

    def _register(self) -> None:
        self._register_topic(self._traffic.all)
        self._register_replicas(self._services.cluster)
        self._register_groups()
        self._register_coordinator()
        services = self._services
        self._transactions = TransactionMetrics(self.registry, services)
        self._shares = ShareGroupMetrics(self.registry, self.meter, services)
        services.cluster.notes.listen(RebalanceMetrics(self.registry).hear)
        self.value(SESSIONS, "NumIncrementalFetchSessions", services.count_fetch_sessions)
        left_out = "opened logs without metrics of their own, as there are too many"
        self.registry.gauge(OWN, "logs_left_out", left_out, lambda: self._left_out)
        self.value(PURGATORY, "PurgatorySize", services.count_waiting, delayedOperation="Fetch")

    def _register_topic(self, counts: TopicTraffic, **tags: str) -> None:
        for name, read in OF_TOPICS:
            self.meter(TOPICS, name, lambda read=read: read(counts), **tags)  # type: ignore[misc]  # bound per round of the loop

    def _register_replicas(self, cluster: Cluster) -> None:
        catalogue = cluster.catalogue
        self.value(REPLICAS, "PartitionCount", lambda: catalogue.partition_count)
        self.value(REPLICAS, "LeaderCount", lambda: self._led)
        self.value(REPLICAS, "UnderReplicatedPartitions", lambda: 0)
        self.value(CONTROLLER, "ActiveControllerCount", lambda: int(cluster.controller is not None))
        self.value(CONTROLLER, "ActiveBrokerCount", lambda: len(cluster.alive))
        self.value(CONTROLLER, "GlobalTopicCount", lambda: len(catalogue.by_name))
        self.value(CONTROLLER, "GlobalPartitionCount", lambda: catalogue.partition_count)
        for name, help in COUNTERS.items():
            self.registry.counter(STORE, name, help, partial(cluster.store.counters.__getitem__, name))
        self.value(
            CONTROLLER, "OfflinePartitionsCount",
            lambda: catalogue.partition_count - self._led,
        )  # fmt: skip
        self.value(
            "log_LogManager", "OfflineLogDirectoryCount",
            lambda: int(cluster.store.failure is not None),
        )  # fmt: skip

    def _register_groups(self) -> None:
        self.value(GROUPS, "NumGroups", lambda: sum(self._classic.values()))
        for state in STATES:
            self.value(GROUPS, f"NumGroups{state}", lambda s=state: self._classic[s])  # type: ignore[misc]  # bound per round of the loop
        self.value(GROUPS, "NumOffsets", self._count_offsets)

    def _register_coordinator(self) -> None:
        gauge = self.registry.gauge
        for state in ("loading", "active", "failed"):
            gauge(COORDINATOR, "num-partitions", "shards", lambda s=state: self._shards()[s], state=state)  # type: ignore[misc]  # bound per round of the loop
        gauge(COORDINATOR, "group-count", "groups", lambda: sum(self._classic.values()), protocol="classic")
        gauge(COORDINATOR, "group-count", "groups", lambda: sum(self._consumer.values()), protocol="consumer")
        gauge(COORDINATOR, "group-count", "groups", lambda: sum(self._share.values()), protocol="share")
        gauge(COORDINATOR, "group-count", "groups", lambda: sum(self._streams.values()), protocol="streams")
        for state in ("Empty", "Stable", "Dead"):
            read = partial(self._count_shares, state)
            gauge(COORDINATOR, "share-group-count", "share groups in this state", read, state=state.lower())
        for state in ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"):
            gauge(
                COORDINATOR,
                "streams-group-count",
                "streams groups in this state",
                lambda s=state: self._streams[s],  # type: ignore[misc]  # bound per round of the loop
                state=state.lower(),
            )
        for state in ("Empty", "Assigning", "Reconciling", "Stable", "Dead"):
            gauge(
                COORDINATOR,
                "consumer-group-count",
                "KIP-848 groups in this state",
                lambda s=state: self._consumer[s],  # type: ignore[misc]  # bound per round of the loop
                state=state.lower(),
            )
        for note, (base, help) in OF_NOTES.items():
            self._noted[note] = self.registry.sensor(base, COORDINATOR, _rate_and_count(base, help))
        self.registry.counter(
            COORDINATOR, "offset-commit-count", "offsets committed", lambda: self._traffic.offset_commits
        )

    def _hear(self, note: dict[str, Any]) -> None:
        kind = note["note"]
        sensor = self._noted.get(note["protocol"] if kind == "GroupEpochBumped" else kind)
        if sensor is not None:
            sensor.record(note.get("partitions", 1), self._now_ms())

    def _follow(self) -> None:
        """All of `_followed`, at once."""
        for _ in self._followed():
            pass

    def _followed(self) -> Iterator[None]:
        """Read the costly values once; add metrics of new things, and remove those of vanished ones.

        Goes on in slices: where it yields, others may work.
        """
        self._classic, self._consumer, self._share = self._states(), self._consumer_states(), self._share_states()
        self._streams = self._streams_states()
        yield
        yield from self._transactions.followed()
        yield from self._shares.followed()
        self._follow_topics()
        self._follow_requests()
        self._follow_listeners()
        yield from self._followed_logs()

    def _follow_topics(self) -> None:
        traffic, by_name = self._traffic, self._services.cluster.catalogue.by_name
        for topic in [topic for topic in traffic.topics if topic not in by_name]:
            del traffic.topics[topic]
        for topic in self._topics - traffic.topics.keys():
            self.registry.forget(topic=topic)
        for topic in traffic.topics.keys() - self._topics:
            self._register_topic(traffic.topics[topic], topic=topic)
        self._topics = set(traffic.topics)

    def _follow_requests(self) -> None:
        traffic = self._traffic
        requests = traffic.requests.keys() | traffic.from_memory.keys()
        for key, version in requests - self._requests:
            count = partial(traffic.count_requests, key, version)
            self.meter(REQUESTS, "RequestsPerSec", count, request=self._name(key), version=str(version))
        self._requests = requests
        for key in traffic.times.keys() - self._timed:
            self._register_times(traffic.times[key], name="TotalTimeMs", request=self._name(key))
        self._timed |= traffic.times.keys()
        errors = set(traffic.errors)
        for key, code in errors - self._errors:
            tags = {"request": self._name(key), "error": _error_name(code)}
            self.meter(REQUESTS, "ErrorsPerSec", partial(traffic.told, key, code), **tags)
        self._errors = errors

    def _name(self, api_key: int) -> str:
        return self._api_names.get(api_key, str(api_key))

    def _register_times(self, times: Times, **tags: str) -> None:
        gauge = self.registry.gauge
        self.registry.counter(REQUESTS, "Count", COUNT_HELP, lambda: times.count, **tags)
        gauge(REQUESTS, "Mean", "mean of all there were, by name", lambda: times.mean_ms, **tags)
        gauge(REQUESTS, "Max", "largest there was, by name", lambda: times.most * 1000, **tags)
        for name, share in PERCENTILES:
            read = partial(self._percentile, times, share)
            gauge(REQUESTS, name, "what this share of those of late did not exceed, by name", read, **tags)

    def _percentile(self, times: Times, share: float) -> float:
        return times.percentile_ms(share, perf_counter())

    def _followed_logs(self) -> Iterator[None]:
        found: dict[tuple[str, int], PartitionLog] = {}
        live = {node.node_id for node in self._services.cluster.alive}
        led = left_out = number = 0
        for led_topic in tuple(self._services.cluster.catalogue):
            for partition in tuple(led_topic.partitions):
                led += partition.leader in live
                log = partition.opened_log
                if log is not None and len(found) < LOGS_MAX:
                    found[led_topic.name, partition.index] = log
                elif log is not None:
                    left_out += 1
                number += 1
                if number % SLICE_PARTITIONS == 0:
                    yield
        self._led, self._left_out = led, left_out
        for number, place in enumerate([p for p, log in self._logs.items() if found.get(p) is not log]):
            for name in OF_LOGS:
                self.registry.remove(LOG, "Value", name=name, topic=place[0], partition=str(place[1]))
            self._logs.pop(place, None)
            if number % SLICE_PARTITIONS == 0:
                yield
        new = [place for place, log in found.items() if self._logs.get(place) is not log]
        for number, (topic, index) in enumerate(new):
            log = self._logs[topic, index] = found[topic, index]
            self._register_log(log, topic=topic, partition=str(index))
            if number % SLICE_LOGS == 0:
                yield

    def _register_log(self, log: PartitionLog, **tags: str) -> None:
        for name, read in OF_LOGS.items():
            self.value(LOG, name, partial(read, log), **tags)

    def _follow_listeners(self) -> None:
        for (node, listener), count in self._services.count_connections().items():
            tags = {"listener": listener, "node": str(node)}
            self.registry.gauge(LISTENERS, "connection-count", "open connections", lambda n=count: n, **tags)  # type: ignore[misc]  # bound per round of the loop

    def _groups(self) -> Coordinators | None:
        return self._services.groups.made

    def _states(self) -> Counter[str]:
        groups = self._groups()
        runners: Iterable[Any] = () if groups is None else groups.runners.values()
        return Counter(group.state.value for runner in runners for group in runner.coordinator.groups.values())

    def _consumer_states(self) -> Counter[str]:
        groups = self._groups()
        runners: Iterable[Any] = () if groups is None else groups.runners.values()
        return Counter(g.state.value for runner in runners for g in runner.coordinator.consumer_groups.values())

    def _share_states(self) -> Counter[str]:
        groups = self._groups()
        runners: Iterable[Any] = () if groups is None else groups.runners.values()
        return Counter(g.state for runner in runners for g in runner.coordinator.hard_state.share_groups.values())

    def _streams_states(self) -> Counter[str]:
        groups = self._groups()
        runners: Iterable[Any] = () if groups is None else groups.runners.values()
        return Counter(g.state for runner in runners for g in runner.coordinator.hard_state.streams_groups.values())

    def _count_shares(self, state: str) -> int:
        return self._share[state]

    def _shards(self) -> Counter[str]:
        groups = self._groups()
        return Counter() if groups is None else Counter(runner.state.value for runner in groups.runners.values())

    def _count_offsets(self) -> int:
        groups = self._groups()
        if groups is None:
            return 0
        hard = (runner.coordinator.hard_state for runner in groups.runners.values())
        return sum(len(offsets) for state in hard for offsets in state.offsets.values())


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # a test's fault may tell any number
        return str(code)


def _rate_and_count(base: str, help: str) -> tuple[Row, Row]:
    return Row(f"{base}-rate", How.RATE, f"{help}, per second"), Row(f"{base}-count", How.TOTAL, help)
