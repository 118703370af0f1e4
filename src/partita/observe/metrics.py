"""What was seen of a cluster as a page for Prometheus: `METRICS` names every metric. A page has a bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from partita.metrics.registry import number_text, tags_text
from partita.observe.observed import Observed, Standing
from partita.observe.seen import GroupSeen, MemberSeen, TopicPartition
from partita.wording import printable

SERIES_MAX = 50_000
"""Of more, the groups that are least behind lose those of their members and partitions first, then their own."""


class Metric(NamedTuple):
    """One metric: its name, its labels separated by spaces, and its help. A name with `_total` is a counter."""

    name: str
    labels: str
    help: str


METRICS = (
    Metric("partita_up", "", "1 if the cluster is reached."),
    Metric("partita_last_look_timestamp_seconds", "", "When the cluster was looked at last."),
    Metric("partita_node_up", "node", "1 if the node answered when it was asked last."),
    Metric("partita_partitions", "", "Partitions of the cluster."),
    Metric("partita_partitions_failing", "", "Partitions that cannot be looked at."),
    Metric("partita_groups", "", "Groups of the cluster that are watched."),
    Metric("partita_groups_failing", "", "Groups that cannot be looked at; they keep what was seen of them before."),
    Metric("partita_series_left_out", "", "Series beyond the bound, which are not on this page."),
    Metric("partita_group_up", "group", "1 if the group was looked at, 0 if it keeps what was seen before."),
    Metric("partita_group_seen_timestamp_seconds", "group", "When the group was looked at last."),
    Metric("partita_group_state", "group type state", "1 for the state that the group is in."),
    Metric("partita_group_lag_records", "group", "Records between the committed offsets and the ends of the logs."),
    Metric("partita_group_lag_seconds", "group", "Age of the oldest record that is not read yet."),
    Metric("partita_group_members", "group", "Members of the group."),
    Metric("partita_group_epoch", "group", "Epoch of a group that has one; classic groups do not report theirs."),
    Metric("partita_group_commit_age_seconds", "group", "Time since the last committed offset of the group has moved."),
    Metric("partita_group_partitions", "group", "Partitions with a committed offset."),
    Metric("partita_group_topic_lag_records", "group topic", "Records that the group is behind in one topic."),
    Metric("partita_group_rebalances_total", "group", "Changes of members or their partitions that were seen."),
    Metric("partita_group_rebalances_by_cause_total", "group cause", "Rebalances by what began them."),
    Metric("partita_group_partition_lag_records", "group topic partition", "Records that a partition is behind."),
    Metric("partita_group_partition_lag_seconds", "group topic partition", "Age of the next record to read."),
    Metric(
        "partita_group_partition_offset", "group topic partition", "Committed offset; a share group's start offset."
    ),
    Metric(
        "partita_group_member_lag_records",
        "group member client_id host",
        "Records that a member is behind, where that is known.",
    ),
    Metric("partita_group_member_lag_seconds", "group member client_id host", "Lag in time of its slowest partition."),
    Metric("partita_group_member_partitions", "group member client_id host", "Partitions that a member holds."),
)
"""Every metric, in the order of the page."""


class Sample(NamedTuple):
    """One series of a metric, with the values of its labels in the metric's order."""

    metric: str
    labels: tuple[str, ...]
    value: float


def metrics_text(seen: Observed, series_max: int = SERIES_MAX) -> str:
    """The page in Prometheus' text format; of groups and their parts, at most `series_max` series."""
    by_lag = sorted(seen.groups.values(), key=lambda group: (-(_standing(seen, group).lag or 0), group.group_id))
    chosen: list[Sample] = []
    shown: set[str] = set()
    left_out = 0
    for samples_of in (_of_group, _of_parts):
        for group in by_lag:
            samples = list(samples_of(seen, group))
            has_place = samples_of is _of_group or group.group_id in shown
            if has_place and len(chosen) + len(samples) <= series_max:  # all or none: a sum over half would mislead
                chosen += samples
                shown.add(group.group_id)
            else:
                left_out += len(samples)
    return _page([*_of_cluster(seen), Sample("partita_series_left_out", (), left_out), *chosen])


def _page(samples: list[Sample]) -> str:
    lines: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
    names = {metric.name: metric.labels.split() for metric in METRICS}
    for name, labels, value in samples:
        tags = zip(names[name], map(printable, labels), strict=True)
        lines[name].append(f"{name}{tags_text(tags)} {number_text(value)}\n")
    return "".join(_head(metric) + "".join(lines[metric.name]) for metric in METRICS if lines[metric.name])


def _head(metric: Metric) -> str:
    kind = "counter" if metric.name.endswith("_total") else "gauge"
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {kind}\n"


def _of_cluster(seen: Observed) -> Iterator[Sample]:
    yield Sample("partita_up", (), seen.trouble is None and seen.seen_ms > 0)
    yield Sample("partita_last_look_timestamp_seconds", (), seen.seen_ms / 1000)
    for node in seen.nodes.values():
        yield Sample("partita_node_up", (str(node.id),), node.error is None)
    yield Sample("partita_partitions", (), len(seen.logs))
    yield Sample("partita_partitions_failing", (), sum(log.error is not None for log in seen.logs.values()))
    yield Sample("partita_groups", (), len(seen.groups))
    yield Sample("partita_groups_failing", (), sum(group.error is not None for group in seen.groups.values()))


def _of_group(seen: Observed, group: GroupSeen) -> Iterator[Sample]:
    def one(name: str, value: float | None, *labels: str) -> Iterator[Sample]:
        if value is not None:
            yield Sample(f"partita_group_{name}", (group.group_id, *labels), value)

    yield from one("up", group.error is None)
    if not group.seen_ms:
        return
    standing = _standing(seen, group)
    moved_ms = max((commit.moved_ms for commit in group.commits), default=None)
    yield from one("seen_timestamp_seconds", group.seen_ms / 1000)
    yield from one("state", 1, group.type, group.state)
    yield from one("lag_records", standing.lag)
    yield from one("lag_seconds", None if standing.behind is None else standing.behind.ms / 1000)
    yield from one("members", len(group.members))
    yield from one("epoch", group.epoch)
    yield from one("commit_age_seconds", None if moved_ms is None else max(0, group.seen_ms - moved_ms) / 1000)
    yield from one("partitions", len(group.commits))
    by_topic: dict[str, int] = {}
    for commit, log in seen.known_logs(group):
        by_topic[commit.topic] = by_topic.get(commit.topic, 0) + commit.lag_at(log.end or 0)
    for topic, lag in by_topic.items():
        yield from one("topic_lag_records", lag, topic)
    yield from one("rebalances_total", seen.history.rebalances_total(group.group_id))
    for cause, number in seen.history.causes(group.group_id).items():
        yield from one("rebalances_by_cause_total", number, cause)


def _of_parts(seen: Observed, group: GroupSeen) -> Iterator[Sample]:
    lags: dict[TopicPartition, tuple[int, float | None]] = {}
    for commit, log in seen.known_logs(group):
        behind = seen.behind(group, commit, log)
        lag, seconds = commit.lag_at(log.end or 0), None if behind is None else behind.ms / 1000
        lags[commit.topic, commit.partition] = (lag, seconds)
        place = (group.group_id, commit.topic, str(commit.partition))
        yield Sample("partita_group_partition_lag_records", place, lag)
        yield Sample("partita_group_partition_offset", place, commit.offset)
        if seconds is not None:
            yield Sample("partita_group_partition_lag_seconds", place, seconds)
    for member_labels, members in _by_name(group).items():
        held = {key for member in members for key in member.partitions}
        of_member = [lags[key] for key in held if key in lags]
        labels = (group.group_id, *member_labels)
        yield Sample("partita_group_member_partitions", labels, len(held))
        if of_member or not held:
            yield Sample("partita_group_member_lag_records", labels, sum(lag for lag, _ in of_member))
        known = [seconds for _, seconds in of_member if seconds is not None]
        if known:
            yield Sample("partita_group_member_lag_seconds", labels, max(known))


def _by_name(group: GroupSeen) -> dict[tuple[str, str, str], list[MemberSeen]]:
    """The members by their labels: a static member keeps its series over a restart."""
    found: dict[tuple[str, str, str], list[MemberSeen]] = {}
    for member in group.members:
        labels = (member.instance_id or member.member_id, member.client_id, member.host)
        found.setdefault(labels, []).append(member)
    return found


def _standing(seen: Observed, group: GroupSeen) -> Standing:
    return seen.standings.get(group.group_id, Standing())
