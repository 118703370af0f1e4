"""Numbers about the connections of a client, by Kafka's names: the group of the client's network thread, and nodes.

Mirrors Selector's and NetworkClient's sensors. The times of `io-*` come from the CPU clock of the thread that does the
network's work: the time it worked is I/O, the rest is waiting (decision 190).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from math import nan

from partita.metrics.registry import How, Metrics, Row, avg_max, counted, meter
from partita.metrics.sensor import Sensor

COORDINATOR_FROM = 2**31 - 1
"""Kafka's node id of the connection to a coordinator is this minus the broker's."""

_TRAFFIC = (
    (
        "request",
        (
            *avg_max("request-size", "size of a request in bytes"),
            *counted("request", "requests sent"),
            *meter("outgoing-byte", "bytes sent"),
        ),
    ),
    ("response", (*counted("response", "answers received"), *meter("incoming-byte", "bytes received"))),
)
_LATENCY = ("request-latency", avg_max("request-latency", "time until an answer in ms"))
_CONNECTIONS = (
    ("network-io", counted("network-io", "reads and writes")),
    ("select", counted("select", "wake-ups of the network thread")),
    ("connection-creation", counted("connection-creation", "connections opened")),
    ("connection-close", counted("connection-close", "connections closed")),
    ("successful-authentication", counted("successful-authentication", "logins and handshakes that succeeded")),
    ("failed-authentication", counted("failed-authentication", "logins and handshakes that failed")),
    ("successful-reauthentication", counted("successful-reauthentication", "logins renewed")),
    ("failed-reauthentication", counted("failed-reauthentication", "logins that could not be renewed")),
    ("reauthentication-latency", avg_max("reauthentication-latency", "time of renewing a login in ms")),
    (
        "no-reauth",
        (
            Row(
                "successful-authentication-no-reauth-total",
                How.COUNT,
                "logins at brokers that do not ask for their renewal",
            ),
        ),
    ),
)


class Traffic:
    """One connection's measurements, for its client's numbers and its node's. Times are milliseconds."""

    __slots__ = ("_latency", "_network", "_sensors")

    def __init__(self, network: NetworkMetrics, sensors: tuple[dict[str, Sensor], ...]) -> None:
        self._network = network
        self._sensors = sensors
        self._latency = [one["request-latency"] for one in sensors if "request-latency" in one]

    def sent(self, size: int, now_ms: float) -> None:
        """A request of this many bytes left."""
        for sensors in self._sensors:
            sensors["request"].record(size, now_ms)
        self._network.count("network-io", now_ms)

    def answered(self, size: int, latency_ms: float, now_ms: float) -> None:
        """An answer of this many bytes came, so long after its request."""
        for sensors in self._sensors:
            sensors["response"].record(size, now_ms)
        for latency in self._latency:
            latency.record(latency_ms, now_ms)
        self._network.count("network-io", now_ms)

    def renewed(self, latency_ms: float | None, now_ms: float) -> None:
        """A login was renewed within this time, or with None could not be renewed."""
        if latency_ms is None:
            self._network.count("failed-reauthentication", now_ms)
        else:
            self._network.count("successful-reauthentication", now_ms)
            self._network.count("reauthentication-latency", now_ms, latency_ms)


class NetworkMetrics:
    """The sensors of one client's connections. `kind` is "consumer", "producer" or "admin-client"."""

    def __init__(
        self, metrics: Metrics, kind: str, open_count: Callable[[], int], *, has_latency: bool = False
    ) -> None:
        self.metrics = metrics
        self._kind = kind
        self._nodes: dict[str, Traffic] = {}
        group = f"{kind}-metrics"
        rows = (*_TRAFFIC, _LATENCY) if has_latency else _TRAFFIC
        self._own = {key: metrics.sensor(key, group, some) for key, some in rows}
        self._connections = {key: metrics.sensor(key, group, some) for key, some in _CONNECTIONS}
        metrics.gauge(group, "connection-count", "open connections", open_count)
        self._thread = ThreadTimes(lambda: self._connections["select"].count)
        self._thread.register(metrics, group)

    def count(self, what: str, now_ms: float, value: float = 1) -> None:
        """Record something about connections, by the key of its sensor."""
        self._connections[what].record(value, now_ms)

    def authenticated(self, now_ms: float, *, is_renewed: bool) -> None:
        """A connection logged in; `is_renewed` says whether its login ends and is renewed."""
        self.count("successful-authentication", now_ms)
        if not is_renewed:
            self.count("no-reauth", now_ms)

    def runs_on(self, thread_id: int) -> None:
        """The thread with this identity does the network's work."""
        self._thread.runs_on(thread_id)

    def traffic(self, key: Hashable) -> Traffic:
        """Sensor of the connection with this key of a pool."""
        node_id = f"node-{_node_number(key)}"
        traffic = self._nodes.get(node_id)
        if traffic is None:
            group = f"{self._kind}-node-metrics"
            rows = (*_TRAFFIC, _LATENCY)
            of_node = {name: self.metrics.sensor(name, group, some, node_id=node_id) for name, some in rows}
            traffic = self._nodes[node_id] = Traffic(self, (self._own, of_node))
        return traffic


class ThreadTimes:
    """Working and waiting time of a thread, by its CPU clock. NaN where the system has no such clock."""

    def __init__(self, wake_ups: Callable[[], int]) -> None:
        self._wake_ups = wake_ups
        self._clock: int | None = None
        self._started_ns = 0
        self._cpu_at_start_ns = 0
        self._last_ns = 0

    def register(self, metrics: Metrics, group: str) -> None:
        """Make the metrics exist."""
        for base, what, read in (
            ("io", "working on the network", self.io_ns),
            ("io-wait", "waiting for the network", self.wait_ns),
        ):
            self._register_one(metrics, group, base, what, read)

    def _register_one(self, metrics: Metrics, group: str, base: str, what: str, read: Callable[[], float]) -> None:
        metrics.gauge(group, f"{base}-time-ns-total", f"nanoseconds {what}", read)
        metrics.gauge(
            group, f"{base}-time-ns-avg", f"nanoseconds {what} per wake-up", lambda: read() / max(1, self._wake_ups())
        )
        metrics.gauge(group, f"{base}-ratio", f"share of the time {what}", lambda: read() / max(1, self.elapsed_ns()))

    def runs_on(self, thread_id: int) -> None:
        """Measure this thread from now on."""
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        if clock_of is not None:
            self._clock = clock_of(thread_id)
            self._started_ns = time.monotonic_ns()
            self._cpu_at_start_ns = time.clock_gettime_ns(clock_of(thread_id))

    def elapsed_ns(self) -> float:
        """Time since the thread began."""
        return nan if self._clock is None else time.monotonic_ns() - self._started_ns

    def io_ns(self) -> float:
        """Time the thread worked. A thread that has ended keeps its last value."""
        if self._clock is None:
            return nan
        with suppress(OSError):
            self._last_ns = time.clock_gettime_ns(self._clock) - self._cpu_at_start_ns
        return self._last_ns

    def wait_ns(self) -> float:
        """Time the thread waited."""
        return max(0.0, self.elapsed_ns() - self.io_ns())


def _node_number(key: Hashable) -> int:
    """Kafka's number for a connection: the node's, counted down for coordinators, negative for bootstrap servers."""
    if isinstance(key, int):
        return key
    if isinstance(key, tuple) and key[0] == "coordinator" and isinstance(key[1], int):
        return COORDINATOR_FROM - key[1]
    return -1
