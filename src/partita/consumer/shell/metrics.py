"""Numbers about a consumer, by Kafka's names (consumer.md 14): a snapshot as a dict, or as Prometheus text.

Averages and maxima are over the sample window, rates per second over the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.request import Assigned, Lost, Note, Request, Revoked
from partita.now import Clock
from partita.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from partita.consumer.core import ConsumerCore

NEVER = -1.0
_LATENCIES = {
    "HeartbeatRequest": "heartbeat-response-time",
    "JoinGroupRequest": "join-time",
    "SyncGroupRequest": "sync-time",
    "OffsetCommitRequest": "commit-latency",
    "FetchRequest": "fetch-latency",
}
_COUNTS = {
    "HeartbeatRequest": "heartbeat",
    "JoinGroupRequest": "join",
    "SyncGroupRequest": "sync",
    "OffsetCommitRequest": "commit",
    "FetchRequest": "fetch",
}


class Sensor:
    """Values of the last window, and a total for ever."""

    __slots__ = ("last_ms", "total", "values", "window_ms")

    def __init__(self, window_ms: int) -> None:
        self.window_ms = window_ms
        self.values: deque[tuple[int, float]] = deque(maxlen=10_000)
        self.total = 0.0
        self.last_ms = -1

    def record(self, value: float, now_ms: int) -> None:
        """Add one value."""
        self.values.append((now_ms, value))
        self.total += value
        self.last_ms = now_ms

    def window(self, now_ms: int) -> list[float]:
        """The values of the sample window."""
        while self.values and self.values[0][0] < now_ms - self.window_ms:
            self.values.popleft()
        return [value for _, value in self.values]


class Metrics:
    """Filled by the shell; `snapshot(core)` adds what the core's state says now."""

    def __init__(self, config: ConsumerConfig, clock: Clock) -> None:
        self._clock = clock
        self._window_ms = config.values["metrics_sample_window_ms"] * config.values["metrics_num_samples"]
        self._client_id = config.client_id
        self._sensors: dict[tuple[str, str], Sensor] = {}
        self._poll_started_ms = -1
        self._poll_ended_ms = -1
        self._ns_totals = {"commit-sync-time-ns-total": 0, "committed-time-ns-total": 0}

    def record(self, name: str, value: float, tags: str = "") -> None:
        """Add one value to the sensor of this name and these tags."""
        sensor = self._sensors.get((name, tags))
        if sensor is None:
            sensor = self._sensors[name, tags] = Sensor(self._window_ms)
        sensor.record(value, self._clock.now().mono_ms)

    # What happens

    def answered(self, request: Request, response: Any, latency_ms: int) -> None:
        """A request was answered after `latency_ms`."""
        name = type(request.message).__name__
        if name in _LATENCIES:
            self.record(_LATENCIES[name], latency_ms)
            self.record(_COUNTS[name], 1)
        if isinstance(response, FetchResponse):
            self._fetched(response)

    def _fetched(self, response: FetchResponse) -> None:
        total = 0
        for topic in response.responses:
            size = sum(len(p.records) for p in topic.partitions if p.records)
            total += size
            if size and topic.topic:
                self.record("bytes-consumed", size, _tags(topic=topic.topic))
        self.record("fetch-size", total)
        self.record("bytes-consumed", total)
        self.record("fetch-throttle-time", response.throttle_time_ms)

    def poll_started(self) -> None:
        """The application called poll."""
        now = self._clock.now().mono_ms
        if self._poll_started_ms >= 0:
            self.record("time-between-poll", now - self._poll_started_ms)
        if self._poll_ended_ms >= 0 and now > self._poll_started_ms >= 0:
            inside = self._poll_ended_ms - self._poll_started_ms
            self.record("poll-idle-ratio", inside / (now - self._poll_started_ms))
        self._poll_started_ms = now

    def poll_ended(self) -> None:
        """The poll returned."""
        self._poll_ended_ms = self._clock.now().mono_ms

    def consumed(self, total: int, by_topic: Mapping[str, int]) -> None:
        """Records handed out, and as far as known of which topics."""
        self.record("records-consumed", total)
        self.record("records-per-request", total)
        for topic, count in by_topic.items():
            self.record("records-consumed", count, _tags(topic=topic))

    def committed(self) -> None:
        """A commit succeeded."""
        self.record("commits-succeeded", 1)

    def took(self, name: str, ms: int) -> None:
        """Add to commit-sync-time-ns-total or committed-time-ns-total."""
        self._ns_totals[name] += ms * 1_000_000

    def rebalance_callback(self, event: Assigned | Revoked | Lost, took_ms: int) -> None:
        """A rebalance callback took `took_ms`."""
        self.record(f"partition-{type(event).__name__.lower()}-latency", took_ms)

    def noted(self, note: Note) -> None:
        """Count a Note."""
        if note.kind == "rebalanced":
            self.record("rebalance-latency", note.fields["duration_ms"])
            self.record("rebalance", 1)
        elif note.kind in ("rebalance_failed", "poll_interval_exceeded", "poison", "no_progress"):
            self.record(note.kind.replace("_", "-"), 1)

    # Reading

    def snapshot(self, core: ConsumerCore) -> dict[str, float]:
        """Every metric by name; those of topics and partitions carry their tags in braces."""
        now = self._clock.now().mono_ms
        found: dict[str, float] = dict(self._ns_totals)
        for (name, tags), sensor in sorted(self._sensors.items()):
            values = sensor.window(now)
            found[f"{name}-total{tags}"] = sensor.total
            found[f"{name}-rate{tags}"] = sum(values) / (self._window_ms / 1000)
            if values:
                found[f"{name}-avg{tags}"] = sum(values) / len(values)
                found[f"{name}-max{tags}"] = max(values)
        for name in ("rebalance", "rebalance-failed"):
            found[f"{name}-rate-per-hour"] = found.get(f"{name}-rate", 0.0) * 3_600
        found["failed-rebalance-total"] = found.get("rebalance-failed-total", 0.0)
        found["failed-rebalance-rate-per-hour"] = found.pop("rebalance-failed-rate-per-hour")
        found |= self._ages(now)
        found |= _state(core)
        return found

    def _ages(self, now: int) -> dict[str, float]:
        def age(last_ms: int) -> float:
            return NEVER if last_ms < 0 else (now - last_ms) / 1000

        def last(name: str) -> int:
            return self._sensors[name, ""].last_ms if (name, "") in self._sensors else -1

        return {
            "last-poll-seconds-ago": age(self._poll_started_ms),
            "last-heartbeat-seconds-ago": age(last("heartbeat")),
            "last-rebalance-seconds-ago": age(last("rebalance")),
        }

    def prometheus(self, core: ConsumerCore) -> str:
        """The snapshot in Prometheus' text format."""
        lines = []
        for name, value in self.snapshot(core).items():
            base, brace, labels = name.partition("{")
            tags = f'client_id="{_escaped(self._client_id)}"' + (f",{labels.rstrip('}')}" if brace else "")
            lines.append(f"partita_consumer_{base.replace('-', '_')}{{{tags}}} {value:g}")
        return "\n".join(lines) + "\n"


def _state(core: ConsumerCore) -> dict[str, float]:
    found: dict[str, Any] = {"assigned-partitions": len(core.subscription.assignment)}
    found["fetch-buffer-bytes"] = core.buffer.size
    lags, leads = [], []
    for tp, state in core.subscription.assignment.items():
        tags = _tags(topic=tp.topic, partition=str(tp.partition))
        lag = state.lag(read_committed=core.config.read_committed)
        if lag is not None:
            lags.append(lag)
            found[f"records-lag{tags}"] = lag
        if state.position is not None and state.log_start_offset >= 0:
            leads.append(state.position.offset - state.log_start_offset)
            found[f"records-lead{tags}"] = leads[-1]
        found[f"preferred-read-replica{tags}"] = state.preferred_replica
    if lags:
        found["records-lag-max"], found["records-lag-avg"] = max(lags), sum(lags) / len(lags)
    if leads:
        found["records-lead-min"], found["records-lead-avg"] = min(leads), sum(leads) / len(leads)
    return found


def _tags(**tags: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in tags.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
