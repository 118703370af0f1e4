"""All metrics of one client or broker: names and present values.

A table says per sensor which of Kafka's metrics are read from it; registering a row makes them exist, with NaN or 0
before anything is recorded. `read` gives them by name, `prometheus` as text with TYPE and HELP, under the names that
Prometheus' JMX exporter gives to Kafka's own. (Kafka: Metrics, MetricName, JmxReporter.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from math import isfinite, isnan, nan
from typing import NamedTuple, TypeAlias

from partita.metrics.sensor import Sampled, Sensor

Tags: TypeAlias = tuple[tuple[str, str], ...]


class How(Enum):
    """The statistic of its sensor that a metric shows. Rates are per second."""

    AVG = "average"
    MAX = "maximum"
    MIN = "minimum"
    LAST = "last value"
    TOTAL = "sum for ever"
    COUNT = "count for ever"
    RATE = "sum per second"
    COUNT_RATE = "count per second"
    COUNT_PER_HOUR = "count per hour"
    RATIO = "milliseconds per millisecond"


class Row(NamedTuple):
    """One metric of a sensor: its name, statistic and meaning."""

    name: str
    how: How
    help: str


class MetricName(NamedTuple):
    """Key of a metric: Kafka's group and name, and its tags without the client id."""

    group: str
    name: str
    tags: Tags


class Gauge(NamedTuple):
    """A metric that is asked for when it is read; `read` may raise nothing."""

    read: Callable[[], float]
    help: str
    is_counter: bool


class Reading(NamedTuple):
    """A metric as it was read."""

    name: MetricName
    value: float
    help: str
    is_counter: bool


_GROWING = (How.TOTAL, How.COUNT)


class Metrics:
    """The sensors and gauges of one client or broker. Sensors are kept by the name a caller records them under."""

    def __init__(self, window_ms: float = 30_000, samples: int = 2) -> None:
        self._window_ms = window_ms
        self._samples = samples
        self._sensors: dict[tuple[str, Tags], tuple[Sensor, str, Sequence[Row]]] = {}
        """With the group and the rows of each: names are made when they are read, most never are."""
        self._gauges: dict[MetricName, Gauge] = {}

    def sensor(self, key: str, group: str, rows: Sequence[Row], /, **tags: str) -> Sensor:
        """The sensor of this key and tags; its metrics exist from the first call on."""
        place = (key, tuple(tags.items()))
        kept = self._sensors.get(place)
        if kept is None:
            kept = self._sensors[place] = (Sensor(self._window_ms, self._samples), group, rows)
        return kept[0]

    def gauge(self, group: str, name: str, help: str, read: Callable[[], float], /, **tags: str) -> None:
        """A metric whose value is asked for; a second call with the same name and tags replaces it."""
        self._gauges[MetricName(group, name, tuple(tags.items()))] = Gauge(read, help, is_counter=False)

    def counter(self, group: str, name: str, help: str, read: Callable[[], float], /, **tags: str) -> None:
        """A gauge whose value only ever grows."""
        self._gauges[MetricName(group, name, tuple(tags.items()))] = Gauge(read, help, is_counter=True)

    def forget(self, **tags: str) -> None:
        """Remove every metric that has all of these tags, such as those of a partition that was given up."""
        gone = set(tags.items())
        for key in [key for key in list(self._sensors) if gone <= set(key[1])]:
            del self._sensors[key]
        for name in [name for name in list(self._gauges) if gone <= set(name.tags)]:
            del self._gauges[name]

    def remove(self, group: str, name: str, /, **tags: str) -> None:
        """Remove one gauge or counter, if it is there."""
        self._gauges.pop(MetricName(group, name, tuple(tags.items())), None)

    def names(self) -> set[MetricName]:
        """Every metric there is."""
        kept = list(self._sensors.items())
        return {
            *self._gauges,
            *(MetricName(group, row.name, tags) for (_, tags), (_, group, rows) in kept for row in rows),
        }

    def read(self, now_ms: float) -> dict[MetricName, float]:
        """Every metric with its value now."""
        return {reading.name: reading.value for reading in self.walk(now_ms)}

    def walk(self, now_ms: float) -> Iterator[Reading]:
        """Every metric there is at the start, each read when it is its turn; between turns others may work."""
        for (_, tags), (sensor, group, rows) in list(self._sensors.items()):
            window = sensor.sampled(now_ms)
            for row in rows:
                value = value_of(row.how, sensor, window)
                yield Reading(MetricName(group, row.name, tags), value, row.help, row.how in _GROWING)
        for name, gauge in list(self._gauges.items()):
            yield Reading(name, float(gauge.read()), gauge.help, gauge.is_counter)


def value_of(how: How, sensor: Sensor, window: Sampled) -> float:
    """One metric of a sensor whose windows hold `window`."""
    seconds = window.elapsed_ms / 1000
    match how:
        case How.AVG:
            return window.total / window.recorded if window.recorded else nan
        case How.MAX:
            return window.most
        case How.MIN:
            return window.least
        case How.LAST:
            return sensor.last
        case How.TOTAL:
            return sensor.total
        case How.COUNT:
            return sensor.count
        case How.RATE:
            return window.total / seconds
        case How.COUNT_RATE:
            return window.recorded / seconds
        case How.COUNT_PER_HOUR:
            return window.recorded / seconds * 3_600
        case How.RATIO:
            return window.total / window.elapsed_ms


def meter(base: str, what: str) -> tuple[Row, Row]:
    """`<base>-rate` and `<base>-total` of the recorded values. (Kafka: Meter)"""
    return Row(f"{base}-rate", How.RATE, f"{what} per second"), Row(f"{base}-total", How.TOTAL, f"{what} altogether")


def counted(base: str, what: str) -> tuple[Row, Row]:
    """`<base>-rate` and `<base>-total` of how often something was recorded."""
    return (
        Row(f"{base}-rate", How.COUNT_RATE, f"{what} per second"),
        Row(f"{base}-total", How.COUNT, f"{what} altogether"),
    )


def avg_max(base: str, what: str) -> tuple[Row, Row]:
    """`<base>-avg` and `<base>-max` of the recorded values."""
    return Row(f"{base}-avg", How.AVG, f"average {what}"), Row(f"{base}-max", How.MAX, f"largest {what}")


def by_text(values: Mapping[MetricName, float]) -> dict[str, float]:
    """Values by name alone; tags stand in braces behind it, as in `records-lag{topic="t",partition="0"}`."""
    return {name.name + tags_text(name.tags): value for name, value in values.items()}


class Page:
    """Prometheus' text format, filled metric by metric. `labels` stand before the tags of each.

    Names are those of the JMX exporter: domain, type and attribute, with `_` for every other sign.
    """

    def __init__(self, domain: str, **labels: str) -> None:
        self._domain = domain
        self._labels = tuple(labels.items())
        self._families: dict[tuple[str, str], tuple[str, list[str]]] = {}
        self._lines: dict[str, list[str]] = {}

    def add(self, reading: Reading) -> None:
        """Add one metric."""
        name = reading.name
        family = self._families.get(name[:2])
        if family is None:
            family = self._families[name[:2]] = self._begin(reading)
        exported, lines = family
        lines.append(f"{exported}{tags_text((*self._labels, *name.tags))} {number_text(reading.value)}\n")

    def _begin(self, reading: Reading) -> tuple[str, list[str]]:
        name = reading.name
        exported = exported_name(f"{self._domain}_{name.group}_{name.name}")
        lines = self._lines.get(exported)
        if lines is None:
            kind = "counter" if reading.is_counter else "gauge"
            lines = self._lines[exported] = [f"# HELP {exported} {reading.help}\n", f"# TYPE {exported} {kind}\n"]
        return exported, lines

    def text(self) -> str:
        """The page."""
        return "".join(line for lines in self._lines.values() for line in lines)


def prometheus(metrics: Metrics, domain: str, now_ms: float, **labels: str) -> str:
    """Every metric in Prometheus' text format, as a `Page`."""
    page = Page(domain, **labels)
    for reading in metrics.walk(now_ms):
        page.add(reading)
    return page.text()


@lru_cache(maxsize=4_096)
def exported_name(text: str) -> str:
    """A name as Prometheus wants it: letters, digits and underscores."""
    return "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in text)


def number_text(value: float) -> str:
    """A value as Prometheus wants it."""
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value == int(value) else repr(value)


def tags_text(tags: Iterable[tuple[str, str]]) -> str:
    """Tags as they follow a name: `{topic="flights"}`; nothing without tags."""
    inside = ",".join(f'{exported_name(name)}="{_escaped(value)}"' for name, value in tags)
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
