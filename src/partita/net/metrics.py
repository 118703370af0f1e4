"""Numbers about a client: values of a sample window and totals, read as a dict or as Prometheus text.

Names are Kafka's without their group: `request-latency-avg`, `record-send-total{topic="flights"}`. Averages, maxima and
rates per second are over the window (metrics.sample.window.ms times metrics.num.samples). (Kafka: Sensor, Metrics.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

VALUES_MAX = 10_000
"""Values of a window that a sensor keeps; at higher rates averages are over the last ones."""


class Sensor:
    """The values of the last window, and the total since the start."""

    __slots__ = ("count", "total", "values")

    def __init__(self) -> None:
        self.values: deque[tuple[float, float]] = deque(maxlen=VALUES_MAX)
        self.total = 0.0
        self.count = 0

    def record(self, value: float, now_ms: float) -> None:
        """Add one value."""
        self.values.append((now_ms, value))
        self.total += value
        self.count += 1

    def window(self, since_ms: float) -> list[float]:
        """The values recorded at or after `since_ms`; older ones are forgotten."""
        while self.values and self.values[0][0] < since_ms:
            self.values.popleft()
        return [value for _, value in self.values]


class Measures:
    """The sensors of one client, by name and tags. Times are milliseconds of a monotonic clock."""

    def __init__(self, window_ms: int) -> None:
        self.window_ms = window_ms
        self._counts: dict[tuple[str, str], Sensor] = {}
        self._averages: dict[tuple[str, str], Sensor] = {}

    def count(self, name: str, amount: float, now_ms: float, **tags: str) -> None:
        """Add to `<name>-total` and `<name>-rate`."""
        self._sensor(self._counts, name, tags).record(amount, now_ms)

    def average(self, name: str, value: float, now_ms: float, **tags: str) -> None:
        """Add a value to `<name>-avg` and `<name>-max`."""
        self._sensor(self._averages, name, tags).record(value, now_ms)

    def snapshot(self, now_ms: float) -> dict[str, float]:
        """Every number by its name; tags stand in braces behind it."""
        since = now_ms - self.window_ms
        found: dict[str, float] = {}
        for (name, tags), sensor in sorted(self._counts.items()):
            found[f"{name}-total{tags}"] = sensor.total
            found[f"{name}-rate{tags}"] = sum(sensor.window(since)) / (self.window_ms / 1000)
        for (name, tags), sensor in sorted(self._averages.items()):
            values = sensor.window(since)
            if values:
                found[f"{name}-avg{tags}"] = sum(values) / len(values)
                found[f"{name}-max{tags}"] = max(values)
        return found

    @staticmethod
    def _sensor(sensors: dict[tuple[str, str], Sensor], name: str, tags: Mapping[str, str]) -> Sensor:
        key = (name, tags_text(tags))
        sensor = sensors.get(key)
        if sensor is None:
            sensor = sensors[key] = Sensor()
        return sensor


def tags_text(tags: Mapping[str, str]) -> str:
    """Tags as they follow a name: `{topic="flights"}`; nothing without tags."""
    if not tags:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in tags.items()) + "}"


def prometheus(numbers: Mapping[str, float], prefix: str, client_id: str) -> str:
    """The numbers in Prometheus' text format, each name with its TYPE line."""
    by_name: dict[str, list[str]] = {}
    for name, value in numbers.items():
        base, brace, labels = name.partition("{")
        tags = f'client_id="{_escaped(client_id)}"' + (f",{labels.rstrip('}')}" if brace else "")
        exported = f"{prefix}_{base.replace('-', '_')}"
        by_name.setdefault(exported, []).append(f"{exported}{{{tags}}} {value:g}")
    lines = []
    for exported, samples in by_name.items():
        kind = "counter" if exported.endswith("_total") else "gauge"
        lines += [f"# TYPE {exported} {kind}", *samples]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
