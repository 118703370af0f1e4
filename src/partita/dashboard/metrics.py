"""The observer's state as Prometheus metrics. A scrape reads memory, as a page does; labels are bounded in number."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from partita.dashboard.models.rows import GroupRow, GroupRows
from partita.wording import printable

GROUPS_MAX = 2_000
"""With more groups, those that need attention most are reported, with the number of those left out."""
PER_GROUP = (
    ("lag_records", "Records between the committed offsets and the ends of the logs."),
    ("lag_seconds", "Age of the oldest record that is not read yet."),
    ("members", "Members of the group."),
    ("epoch", "Epoch of a group of the consumer protocol."),
    ("commit_age_seconds", "Time since the last committed offset of the group has moved."),
    ("partitions", "Partitions with a committed offset."),
)


class ObserverCollector(Collector):
    """Collects the state of the observer."""

    def __init__(self, rows: GroupRows) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        """All metrics of this moment."""
        yield from self._cluster()
        rows = sorted(self._rows.all().values(), key=lambda row: (row.rank, -(row.lag or 0), row.group_id))
        yield _gauge("groups", "Consumer groups.", len(rows))
        yield _gauge("groups_left_out", "Groups that are not among the metrics.", max(0, len(rows) - GROUPS_MAX))
        yield from self._groups(rows[:GROUPS_MAX])

    def _cluster(self) -> Iterator[Metric]:
        seen = self._rows.observed
        yield _gauge("up", "1 if the cluster is reached.", int(seen.trouble is None and seen.seen_ms > 0))
        yield _gauge("last_look_timestamp_seconds", "When the cluster was looked at last.", seen.seen_ms / 1000)
        nodes = GaugeMetricFamily("partita_node_up", "1 if the node answered when it was asked last.", labels=["node"])
        for node in seen.nodes.values():
            nodes.add_metric([str(node.id)], int(node.error is None))
        yield nodes
        failing = sum(log.error is not None for log in seen.logs.values())
        yield _gauge("partitions", "Partitions of the cluster.", len(seen.logs))
        yield _gauge("partitions_failing", "Partitions that cannot be looked at.", failing)

    def _groups(self, rows: list[GroupRow]) -> Iterator[Metric]:
        seen = self._rows.observed
        gauges = {name: GaugeMetricFamily(f"partita_group_{name}", text, labels=["group"]) for name, text in PER_GROUP}
        about_topics = "Records that the group is behind in one topic."
        topics = GaugeMetricFamily("partita_group_topic_lag_records", about_topics, labels=["group", "topic"])
        counted = CounterMetricFamily(
            "partita_group_rebalances", "Rebalances that were seen since the start.", labels=["group"]
        )
        about_state = "1 for the state that the group is in."
        state = GaugeMetricFamily("partita_group_state", about_state, labels=["group", "state"])
        for row in rows:
            label = [printable(row.group_id)]
            for name, value in _values(self._rows, row).items():
                if value is not None:
                    gauges[name].add_metric(label, value)
            counted.add_metric(label, seen.history.rebalances_total(row.group_id))
            state.add_metric([*label, row.state], 1)
            for topic, lag in _by_topic(self._rows, row).items():
                topics.add_metric([*label, topic], lag)
        yield from (*gauges.values(), topics, counted, state)


def metrics_text(rows: GroupRows) -> bytes:
    """The metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(ObserverCollector(rows))
    return generate_latest(registry)


def _values(rows: GroupRows, row: GroupRow) -> dict[str, float | None]:
    group = rows.observed.groups[row.group_id]
    moved_ms = max((commit.moved_ms for commit in group.commits), default=None)
    return {
        "lag_records": row.lag,
        "lag_seconds": None if row.behind is None else row.behind.ms / 1000,
        "members": row.members,
        "epoch": row.epoch,
        "commit_age_seconds": None if moved_ms is None else (group.seen_ms - moved_ms) / 1000,
        "partitions": len(group.commits),
    }


def _by_topic(rows: GroupRows, row: GroupRow) -> dict[str, int]:
    lags: dict[str, int] = {}
    for commit in rows.observed.groups[row.group_id].commits:
        log = rows.observed.logs.get((commit.topic, commit.partition))
        if log is not None and log.end is not None:
            lags[commit.topic] = lags.get(commit.topic, 0) + max(0, log.end - commit.offset)
    return lags


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"partita_{name}", text, value=value)
