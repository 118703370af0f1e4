"""Sensors and what is read from them: windows, rates over the time that has passed, text for Prometheus."""

from __future__ import annotations

from math import inf, isnan

import pytest

from partita.metrics.registry import How, Metrics, Row, avg_max, by_text, counted, meter, prometheus
from partita.metrics.sensor import Sensor

WINDOW_MS = 30_000


def sensor(*recorded: tuple[float, float]) -> Sensor:
    """A sensor that was given (time, value) pairs."""
    made = Sensor(WINDOW_MS, 2)
    for now_ms, value in recorded:
        made.record(value, now_ms)
    return made


@pytest.mark.parametrize(
    ("now_ms", "elapsed_ms"),
    [(0, 30_000), (1_000, 31_000), (29_999, 59_999), (30_000, 30_000), (45_000, 45_000), (59_999, 59_999)],
)
def test_a_rate_is_over_the_time_that_has_passed_and_one_window_at_least(now_ms: float, elapsed_ms: float) -> None:
    """Sources, item 7: Kafka's Rate adds the windows that are missing to the time that has passed."""
    assert sensor((0, 1)).sampled(now_ms).elapsed_ms == elapsed_ms


def test_what_is_older_than_all_windows_is_forgotten_and_totals_stay() -> None:
    recorded = sensor((0, 5), (35_000, 7))
    assert recorded.sampled(40_000)[:4] == (12, 2, 7, 5)
    assert recorded.sampled(61_000)[:4] == (7, 1, 7, 7)
    late = recorded.sampled(100_000)
    assert (late.total, late.recorded, isnan(late.most), isnan(late.least)) == (0, 0, True, True)
    assert (recorded.total, recorded.count, recorded.last, recorded.last_ms) == (12, 2, 7, 35_000)


def test_windows_are_used_again() -> None:
    recorded = sensor(*((ms, 1) for ms in range(0, 600_000, 1_000)))
    window = recorded.sampled(599_000)
    assert window.recorded == window.elapsed_ms / 1_000 + 1
    assert 30_000 <= window.elapsed_ms < 90_000


def test_extremes_may_be_negative_and_infinite() -> None:
    assert sensor((0, -3), (0, -inf)).sampled(0)[2:4] == (-3, -inf)


def test_metrics_exist_from_the_registration_on() -> None:
    metrics = Metrics()
    made = metrics.sensor("fetch", "g", (*avg_max("size", "size"), *meter("bytes", "bytes"), *counted("fetch", "f")))
    read = by_text(metrics.read(0))
    assert isnan(read.pop("size-avg"))
    assert isnan(read.pop("size-max"))
    assert read == {"bytes-rate": 0, "bytes-total": 0, "fetch-rate": 0, "fetch-total": 0}
    made.record(60, 0)
    made.record(30, 0)
    assert by_text(metrics.read(0)) == {
        "size-avg": 45, "size-max": 60, "bytes-rate": 3, "bytes-total": 90, "fetch-rate": 2 / 30, "fetch-total": 2
    }  # fmt: skip


@pytest.mark.parametrize(
    ("how", "value"), [(How.MIN, 1), (How.LAST, 1), (How.COUNT_PER_HOUR, 240), (How.RATIO, 4 / 30_000)]
)
def test_the_other_ways_to_read_a_sensor(how: How, value: float) -> None:
    metrics = Metrics()
    made = metrics.sensor("s", "g", [Row("m", how, "a metric")])
    made.record(3, 0)
    made.record(1, 0)
    assert by_text(metrics.read(0)) == {"m": value}


def test_the_same_key_and_tags_are_one_sensor() -> None:
    metrics = Metrics()
    assert metrics.sensor("s", "g", (), topic="a") is metrics.sensor("s", "g", (), topic="a")
    assert metrics.sensor("s", "g", (), topic="a") is not metrics.sensor("s", "g", (), topic="b")


def test_metrics_of_what_is_gone_are_forgotten() -> None:
    metrics = Metrics()
    for partition in ("0", "1"):
        metrics.sensor("lag", "g", [Row("lag", How.LAST, "lag")], topic="t", partition=partition)
        metrics.gauge("g", "lead", "lead", lambda: 1, topic="t", partition=partition)
    metrics.forget(topic="t", partition="0")
    assert {name.tags[1][1] for name in metrics.names()} == {"1"}


def test_prometheus_text_has_type_and_help_once_and_kafkas_exported_names() -> None:
    metrics = Metrics()
    metrics.gauge("consumer-metrics", "connection-count", "open connections", lambda: 2)
    for topic in ("a", 'odd"\n'):
        metrics.sensor("r", "consumer-metrics", meter("records", "records"), topic=topic).record(1.5, 0)
    assert prometheus(metrics, "kafka.consumer", 0, client_id="c").splitlines() == [
        "# HELP kafka_consumer_consumer_metrics_records_rate records per second",
        "# TYPE kafka_consumer_consumer_metrics_records_rate gauge",
        'kafka_consumer_consumer_metrics_records_rate{client_id="c",topic="a"} 0.05',
        'kafka_consumer_consumer_metrics_records_rate{client_id="c",topic="odd\\"\\n"} 0.05',
        "# HELP kafka_consumer_consumer_metrics_records_total records altogether",
        "# TYPE kafka_consumer_consumer_metrics_records_total counter",
        'kafka_consumer_consumer_metrics_records_total{client_id="c",topic="a"} 1.5',
        'kafka_consumer_consumer_metrics_records_total{client_id="c",topic="odd\\"\\n"} 1.5',
        "# HELP kafka_consumer_consumer_metrics_connection_count open connections",
        "# TYPE kafka_consumer_consumer_metrics_connection_count gauge",
        'kafka_consumer_consumer_metrics_connection_count{client_id="c"} 2',
    ]


def test_numbers_without_a_value_are_nan_as_prometheus_writes_it() -> None:
    metrics = Metrics()
    metrics.sensor("s", "g", avg_max("size", "size"))
    assert "kafka_g_size_avg NaN" in prometheus(metrics, "kafka", 0)
