"""Numbers about a producer by Kafka's names.

Mirrors SenderMetricsRegistry, KafkaProducerMetrics and BufferPool: the same groups, names and statistics, all there
from the start.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.metrics.registry import How, MetricName, Metrics, Row, avg_max, by_text, meter, prometheus
from partita.metrics.sensor import Sensor
from partita.net.metrics import NetworkMetrics
from partita.producer.core import Sending
from partita.protocol.messages.produce import ProduceRequest

DOMAIN = "kafka.producer"
PRODUCER, TOPIC, OWN = "producer-metrics", "producer-topic-metrics", "partita-producer-metrics"

SENSORS: tuple[tuple[str, tuple[Row, ...]], ...] = (
    ("batch-size", avg_max("batch-size", "bytes of a batch per partition and request")),
    ("batch-split", meter("batch-split", "batches split")),
    ("buffer-exhausted", meter("buffer-exhausted", "sends that found no room in time")),
    ("bufferpool-wait", (
        Row("bufferpool-wait-ratio", How.RATIO, "share of the time that senders wait for room"),)),
    ("bufferpool-wait-ns", (
        Row("bufferpool-wait-time-ns-total", How.TOTAL, "nanoseconds that senders waited for room"),)),
    ("compression-rate", (Row("compression-rate-avg", How.AVG, "average size of a batch by its size uncompressed"),)),
    ("flush", (Row("flush-time-ns-total", How.TOTAL, "nanoseconds inside flush"),)),
    ("metadata-wait", (Row("metadata-wait-time-ns-total", How.TOTAL, "nanoseconds of waiting for metadata"),)),
    ("produce-throttle", avg_max("produce-throttle-time", "throttling of a request in ms")),
    ("record-error", meter("record-error", "records that failed")),
    ("record-queue-time", avg_max("record-queue-time", "time of a batch in the buffer in ms")),
    ("record-retry", meter("record-retry", "records sent again")),
    ("record-send", meter("record-send", "records sent")),
    ("record-size", avg_max("record-size", "bytes of a record")),
    *((f"txn-{call}", (Row(f"txn-{call}-time-ns-total", How.TOTAL, f"nanoseconds inside {name}"),))
      for call, name in (("init", "init_transactions"), ("begin", "begin_transaction"),
                         ("send-offsets", "send_offsets_to_transaction"),
                         ("commit", "commit_transaction"), ("abort", "abort_transaction"))),
    ("records-per-request", (Row("records-per-request-avg", How.AVG, "average records of a request"),)),
)  # fmt: skip
OF_TOPIC: dict[str, tuple[Row, ...]] = {
    "byte": meter("byte", "bytes sent"),
    "compression-rate": (Row("compression-rate", How.AVG, "average size of a batch by its size uncompressed"),),
    "record-error": meter("record-error", "records that failed"),
    "record-retry": meter("record-retry", "records sent again"),
    "record-send": meter("record-send", "records sent"),
}


class ProducerMetrics:
    """Filled by the shell. Times are milliseconds of the loop's clock."""

    def __init__(self, client_id: str, window_ms: int, samples: int, open_count: Callable[[], int]) -> None:
        self._client_id = client_id
        self._metrics = Metrics(window_ms, samples)
        self._sensors = {key: self._metrics.sensor(key, PRODUCER, rows) for key, rows in SENSORS}
        self._topics: dict[str, dict[str, Sensor]] = {}
        self.network = NetworkMetrics(self._metrics, "producer", open_count, has_latency=True)
        self._metrics.gauge("kafka-metrics-count", "count", "metrics there are", lambda: len(self._metrics.names()))

    def gauge(self, name: str, help: str, read: Callable[[], float], group: str = PRODUCER) -> None:
        """A number that is asked for when metrics are read."""
        self._metrics.gauge(group, name, help, read)

    def record(self, sensor: str, value: float, now_ms: float) -> None:
        """Add one value to the sensor of this key."""
        self._sensors[sensor].record(value, now_ms)

    def of_topic(self, sensor: str, topic: str, value: float, now_ms: float) -> None:
        """Add one value to a topic's sensor; a topic's metrics all exist from its first value on."""
        sensors = self._topics.get(topic)
        if sensors is None:
            sensors = self._topics[topic] = {
                key: self._metrics.sensor(key, TOPIC, rows, topic=topic) for key, rows in OF_TOPIC.items()
            }
        sensors[sensor].record(value, now_ms)

    def counted(self, sensor: str, value: float, topic: str, now_ms: float) -> None:
        """Add one value to the sensor of this key and to that of a topic."""
        self.record(sensor, value, now_ms)
        self.of_topic(sensor, topic, value, now_ms)

    def sent(self, sending: Sending, request: ProduceRequest, now_ms: float) -> None:
        """Count a request that leaves: per batch, never per record."""
        records = 0
        built = {
            (topic.name or topic.topic_id, part.index): len(part.records or b"")
            for topic in request.topic_data
            for part in topic.partition_data
        }
        for batch in sending.batches:
            count, size = batch.builder.records_count, batch.builder.size_in_bytes
            sent = built.get((batch.topic, batch.partition)) or built.get(
                (sending.topic_ids.get(batch.topic, b""), batch.partition), size
            )
            records += count
            self.counted("record-retry" if batch.attempts > 1 else "record-send", count, batch.topic, now_ms)
            self.counted("compression-rate", sent / size, batch.topic, now_ms)
            self.of_topic("byte", batch.topic, sent, now_ms)
            self.record("batch-size", sent, now_ms)
            self.record("record-size", size / max(1, count), now_ms)
            self.record("record-queue-time", now_ms - batch.created_ms, now_ms)
        self.record("records-per-request", records, now_ms)

    def names(self) -> set[MetricName]:
        """Every metric there is now."""
        return self._metrics.names()

    def snapshot(self, now_ms: float) -> dict[str, float]:
        """Every metric by name; those of nodes and topics carry their tags in braces."""
        return by_text(self._metrics.read(now_ms))

    def prometheus(self, now_ms: float) -> str:
        """The snapshot in Prometheus' text format."""
        return prometheus(self._metrics, DOMAIN, now_ms, client_id=self._client_id)
