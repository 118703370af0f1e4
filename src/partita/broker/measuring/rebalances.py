"""The causes of rebalances, and how long members waited in their phases: counted from the broker's notes.

Kafka counts completed rebalances only. Names are those of a histogram of Prometheus: `..._bucket` with the label `le`,
`..._sum` and `..._count`, all in milliseconds.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from partita.metrics.registry import Metrics

OWN = "partita_Groups"
BOUNDS_MS = (10, 100, 1_000, 5_000, 30_000, 120_000)
PHASES = {
    "join_phase_ms": "how long rebalances of classic groups waited for members to join",
    "sync_phase_ms": "how long rebalances of classic groups waited for the assignment",
}


class RebalanceMetrics:
    """A counter for each cause that there has been, and a histogram for each phase of classic groups."""

    def __init__(self, registry: Metrics) -> None:
        self._registry = registry
        self._begun: Counter[tuple[str, str]] = Counter()
        self._phases = {phase: Histogram(registry, phase, help) for phase, help in PHASES.items()}

    def hear(self, note: dict[str, Any]) -> None:
        """Take in one note; most change nothing. A rebalance counts under the cause that began it."""
        if note["note"] == "Rebalanced":
            causes = note["causes"]
            self._begin("classic", causes[0]["what"] if causes else "unknown")
            for phase, times in self._phases.items():
                times.add(note[phase])
        elif note["note"] == "GroupEpochBumped":
            self._begin(note["protocol"], note["cause"]["what"])

    def _begin(self, protocol: str, cause: str) -> None:
        """Causes are few: they are the constants of `partita.group.notes`."""
        if (protocol, cause) not in self._begun:
            help = "rebalances by what began them; of KIP-848 groups, new epochs"
            read = partial(self._begun.__getitem__, (protocol, cause))
            self._registry.counter(OWN, "rebalances", help, read, cause=cause, protocol=protocol)
        self._begun[protocol, cause] += 1


class Histogram:
    """Counts times up to each bound, all of them, and their sum."""

    def __init__(self, registry: Metrics, name: str, help: str) -> None:
        self._counts = dict.fromkeys(BOUNDS_MS, 0)
        self._count = self._sum = 0
        for bound in BOUNDS_MS:
            read = partial(self._counts.__getitem__, bound)
            registry.counter(OWN, f"{name}_bucket", help, read, le=str(bound))
        registry.counter(OWN, f"{name}_bucket", help, lambda: self._count, le="+Inf")
        registry.counter(OWN, f"{name}_sum", help, lambda: self._sum)
        registry.counter(OWN, f"{name}_count", help, lambda: self._count)

    def add(self, ms: int) -> None:
        """Count one time."""
        self._count += 1
        self._sum += ms
        for bound in BOUNDS_MS:
            if ms <= bound:
                self._counts[bound] += 1
