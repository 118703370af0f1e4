"""Numbers about a consumer by Kafka's names: as a dict, or as Prometheus text.

Mirrors ConsumerCoordinatorMetrics, FetchMetricsRegistry and KafkaConsumerMetrics: the same groups, names and
statistics, all there from the start. Metrics that Kafka does not have are in the group `partita-consumer-metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.request import Assigned, Lost, Request, Revoked
from partita.metrics.registry import How, MetricName, Metrics, Row, avg_max, by_text, counted, meter, prometheus
from partita.metrics.sensor import Sensor
from partita.net.metrics import NetworkMetrics
from partita.now import Clock
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.messages.fetch import FetchResponse
from partita.wording import Note

if TYPE_CHECKING:
    from partita.consumer.core import ConsumerCore

DOMAIN = "kafka.consumer"
COORDINATOR, FETCH, CONSUMER = "consumer-coordinator-metrics", "consumer-fetch-manager-metrics", "consumer-metrics"
OWN = "partita-consumer-metrics"
NEVER = -1.0
LAG_EVERY_MS = 10
"""Lags enter their averages and maxima at most this often."""

_PER_HOUR = "rebalances per hour"
_BYTES = (*avg_max("fetch-size", "bytes of a fetch"), *meter("bytes-consumed", "bytes fetched"))
_RECORDS = (
    Row("records-per-request-avg", How.AVG, "average records of a poll"),
    *meter("records-consumed", "records handed out"),
)
SENSORS: tuple[tuple[str, str, tuple[Row, ...]], ...] = (
    ("commit", COORDINATOR, (*avg_max("commit-latency", "time of a commit in ms"), *counted("commit", "commits"))),
    ("heartbeat", COORDINATOR, (
        Row("heartbeat-response-time-max", How.MAX, "longest wait for an answer to a heartbeat in ms"),
        *counted("heartbeat", "heartbeats"))),
    ("join", COORDINATOR, (*avg_max("join-time", "time of a join in ms"), *counted("join", "joins"))),
    ("sync", COORDINATOR, (*avg_max("sync-time", "time of a sync in ms"), *counted("sync", "syncs"))),
    ("rebalance", COORDINATOR, (
        *avg_max("rebalance-latency", "time of a rebalance in ms"),
        Row("rebalance-latency-total", How.TOTAL, "time spent in rebalances in ms"),
        Row("rebalance-total", How.COUNT, "rebalances that succeeded"),
        Row("rebalance-rate-per-hour", How.COUNT_PER_HOUR, _PER_HOUR))),
    ("failed-rebalance", COORDINATOR, (
        Row("failed-rebalance-total", How.COUNT, "rebalances that failed"),
        Row("failed-rebalance-rate-per-hour", How.COUNT_PER_HOUR, f"failed {_PER_HOUR}"))),
    ("assigned", COORDINATOR, avg_max("partition-assigned-latency", "time of on_assigned in ms")),
    ("revoked", COORDINATOR, avg_max("partition-revoked-latency", "time of on_revoked in ms")),
    ("lost", COORDINATOR, avg_max("partition-lost-latency", "time of on_lost in ms")),
    ("bytes", FETCH, _BYTES),
    ("records", FETCH, _RECORDS),
    ("fetch-latency", FETCH, (*avg_max("fetch-latency", "time of a fetch in ms"), *counted("fetch", "fetches"))),
    ("fetch-throttle", FETCH, avg_max("fetch-throttle-time", "throttling of a fetch in ms")),
    ("lag", FETCH, (Row("records-lag-max", How.MAX, "most records any partition lay behind"),)),
    ("lead", FETCH, (Row("records-lead-min", How.MIN, "fewest records any partition was ahead of its start"),)),
    ("time-between-poll", CONSUMER, avg_max("time-between-poll", "time between two polls in ms")),
    ("poll-idle-ratio", CONSUMER, (Row("poll-idle-ratio-avg", How.AVG, "average share of time inside poll"),)),
    ("commit-sync", CONSUMER, (Row("commit-sync-time-ns-total", How.TOTAL, "nanoseconds inside commit"),)),
    ("committed", CONSUMER, (Row("committed-time-ns-total", How.TOTAL, "nanoseconds inside committed"),)),
    ("poll-interval-exceeded", OWN, (Row("poll-interval-exceeded-total", How.COUNT, "polls that came too late"),)),
    ("poison", OWN, (Row("poison-total", How.COUNT, "records that could not be read"),)),
    ("no-progress", OWN, (Row("no-progress-total", How.COUNT, "reports of partitions that stood still"),)),
)  # fmt: skip
_BY_REQUEST = {
    "HeartbeatRequest": "heartbeat",
    "ConsumerGroupHeartbeatRequest": "heartbeat",
    "JoinGroupRequest": "join",
    "SyncGroupRequest": "sync",
    "OffsetCommitRequest": "commit",
    "FetchRequest": "fetch-latency",
}
_LAG = (
    Row("records-lag-avg", How.AVG, "average records behind the end of the partition"),
    Row("records-lag-max", How.MAX, "most records behind the end of the partition"),
)
_LEAD = (
    Row("records-lead-avg", How.AVG, "average records ahead of the start of the partition"),
    Row("records-lead-min", How.MIN, "fewest records ahead of the start of the partition"),
)


class ConsumerMetrics:
    """Filled by the shell; `snapshot` adds the core's current state."""

    def __init__(self, config: ConsumerConfig, clock: Clock, core: ConsumerCore) -> None:
        self._mono_ms = clock.mono_ms
        self._core = core
        self._client_id = config.client_id
        self._metrics = Metrics(config.values["metrics_sample_window_ms"], config.values["metrics_num_samples"])
        self._sensors = {key: self._metrics.sensor(key, group, rows) for key, group, rows in SENSORS}
        self._partitions: dict[TopicPartition, tuple[Sensor, Sensor]] = {}
        self._poll_started_ms = -1
        self._poll_ended_ms = -1
        self._lags_taken_ms = -1
        self.open_connections: Callable[[], int] = lambda: 0
        self.network = NetworkMetrics(self._metrics, "consumer", lambda: self.open_connections())
        self._register_gauges()

    def _register_gauges(self) -> None:
        core, gauge = self._core, self._metrics.gauge
        gauge(COORDINATOR, "assigned-partitions", "partitions held", lambda: len(core.subscription.assignment))
        gauge(COORDINATOR, "last-heartbeat-seconds-ago", "seconds since a heartbeat", lambda: self._age("heartbeat"))
        gauge(COORDINATOR, "last-rebalance-seconds-ago", "seconds since a rebalance", lambda: self._age("rebalance"))
        gauge(CONSUMER, "last-poll-seconds-ago", "seconds since poll was called", self._poll_age)
        gauge("kafka-metrics-count", "count", "metrics there are", lambda: len(self._metrics.names()))
        gauge(OWN, "fetch-buffer-bytes", "bytes fetched and not handed out", lambda: core.buffer.size)

    def record(self, sensor: str, value: float) -> None:
        """Add one value to the sensor of this key."""
        self._sensors[sensor].record(value, self._mono_ms())

    # What happens

    def answered(self, request: Request, response: Any, latency_ms: int) -> None:
        """A request was answered after `latency_ms`."""
        sensor, now_ms = _BY_REQUEST.get(type(request.message).__name__), self._mono_ms()
        if sensor is not None:
            self._sensors[sensor].record(latency_ms, now_ms)
        if isinstance(response, FetchResponse):
            self._fetched(response, now_ms)

    def _fetched(self, response: FetchResponse, now_ms: int) -> None:
        total = 0
        for topic in response.responses:
            size = sum(len(p.records) for p in topic.partitions if p.records)
            total += size
            name = topic.topic or (self._core.metadata.view.name_of(topic.topic_id) if size else None)
            if size and name:
                self._metrics.sensor("bytes", FETCH, _BYTES, topic=name).record(size, now_ms)
        self._sensors["bytes"].record(total, now_ms)
        self._sensors["fetch-throttle"].record(response.throttle_time_ms, now_ms)

    def poll_started(self) -> None:
        """The application called poll."""
        now = self._mono_ms()
        if self._poll_started_ms >= 0:
            self._sensors["time-between-poll"].record(now - self._poll_started_ms, now)
        if self._poll_ended_ms >= 0 and now > self._poll_started_ms >= 0:
            inside = self._poll_ended_ms - self._poll_started_ms
            self._sensors["poll-idle-ratio"].record(inside / (now - self._poll_started_ms), now)
        self._poll_started_ms = now

    def poll_ended(self) -> None:
        """The poll returned."""
        self._poll_ended_ms = self._mono_ms()

    def consumed(self, total: int, by_topic: Mapping[str, int]) -> None:
        """Records handed out, and as far as known of which topics."""
        now_ms = self._mono_ms()
        self._sensors["records"].record(total, now_ms)
        for topic, count in by_topic.items():
            self._metrics.sensor("records", FETCH, _RECORDS, topic=topic).record(count, now_ms)
        if now_ms - self._lags_taken_ms >= LAG_EVERY_MS:
            self._lags_taken_ms = now_ms
            self._take_lags(now_ms)

    def _take_lags(self, now_ms: int) -> None:
        for tp in list(self._core.subscription.assignment):
            lag_sensor, lead_sensor = self._partition(tp)
            lag, lead = self._lag(tp), self._lead(tp)
            if lag is not None:
                lag_sensor.record(lag, now_ms)
                self._sensors["lag"].record(lag, now_ms)
            if lead is not None:
                lead_sensor.record(lead, now_ms)
                self._sensors["lead"].record(lead, now_ms)

    def took(self, sensor: str, ms: int) -> None:
        """Add a call's time to the sensor "commit-sync" or "committed"."""
        self.record(sensor, ms * 1_000_000)

    def rebalance_callback(self, event: Assigned | Revoked | Lost, took_ms: int) -> None:
        """A rebalance callback took `took_ms`."""
        self.record(type(event).__name__.lower(), took_ms)

    def noted(self, note: Note) -> None:
        """Count a Note."""
        if note.kind == "rebalanced":
            self.record("rebalance", note.fields["duration_ms"])
        elif note.kind == "rebalance_failed":
            self.record("failed-rebalance", 1)
        elif note.kind in ("poll_interval_exceeded", "poison", "no_progress"):
            self.record(note.kind.replace("_", "-"), 1)

    # Reading

    def names(self) -> set[MetricName]:
        """Every metric there is now."""
        return self._metrics.names()

    def snapshot(self) -> dict[str, float]:
        """Every metric by name; those of nodes, topics and partitions carry their tags in braces."""
        self._follow_assignment()
        return by_text(self._metrics.read(self._mono_ms()))

    def prometheus(self) -> str:
        """The snapshot in Prometheus' text format."""
        self._follow_assignment()
        return prometheus(self._metrics, DOMAIN, self._mono_ms(), client_id=self._client_id)

    def _follow_assignment(self) -> None:
        """Let exactly the partitions that are held have metrics."""
        held = self._core.subscription.assignment
        for tp in [tp for tp in self._partitions if tp not in held]:
            del self._partitions[tp]
            self._metrics.forget(topic=tp.topic, partition=str(tp.partition))
        for tp in held:
            self._partition(tp)

    def _partition(self, tp: TopicPartition) -> tuple[Sensor, Sensor]:
        sensors = self._partitions.get(tp)
        if sensors is None:
            tags = {"topic": tp.topic, "partition": str(tp.partition)}
            sensors = self._partitions[tp] = (
                self._metrics.sensor("lag", FETCH, _LAG, **tags),
                self._metrics.sensor("lead", FETCH, _LEAD, **tags),
            )
            gauge = self._metrics.gauge
            gauge(FETCH, "records-lag", "records behind the end", lambda: _or_nan(self._lag(tp)), **tags)
            gauge(FETCH, "records-lead", "records ahead of the start", lambda: _or_nan(self._lead(tp)), **tags)
            gauge(FETCH, "preferred-read-replica", "the node to fetch from", lambda: self._replica(tp), **tags)
        return sensors

    def _lag(self, tp: TopicPartition) -> int | None:
        state = self._core.subscription.assignment.get(tp)
        return None if state is None else state.lag(read_committed=self._core.config.read_committed)

    def _lead(self, tp: TopicPartition) -> int | None:
        state = self._core.subscription.assignment.get(tp)
        if state is None or state.position is None or state.log_start_offset < 0:
            return None
        return state.position.offset - state.log_start_offset

    def _replica(self, tp: TopicPartition) -> int:
        state = self._core.subscription.assignment.get(tp)
        return -1 if state is None or state.preferred_replica is None else state.preferred_replica

    def _poll_age(self) -> float:
        return NEVER if self._poll_started_ms < 0 else (self._mono_ms() - self._poll_started_ms) / 1000

    def _age(self, sensor: str) -> float:
        last_ms = self._sensors[sensor].last_ms
        return NEVER if last_ms < 0 else (self._mono_ms() - last_ms) / 1000


def _or_nan(value: int | None) -> float:
    return float("nan") if value is None else value
